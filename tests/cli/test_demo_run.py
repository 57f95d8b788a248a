from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.batch import ids_to_list
from ripplevec.cli.console import show_progress
from ripplevec.cli.demo_run import (
    Result,
    Score,
    StreamRun,
    print_summary,
    project_vectors,
    run_demo,
    score_vectors,
    select_first_vertices,
    write_html,
    write_png,
)
from ripplevec.errors import MissingExtraError
from ripplevec.install_hint import install_command
from ripplevec.lab.datasets.synthetic import growing_communities

DATA = growing_communities(500, 5, 4, 0.1, seed=1)
LABELS = np.arange(60) % 4
VECTORS = np.eye(4, dtype=np.float32)[LABELS] + 0.1 * np.random.default_rng(0).random((60, 4), np.float32)


def test_select_first_vertices_returns_vertices_and_edges_between_them():
    batch = select_first_vertices(DATA, 100)
    vertices = batch.op == 2
    assert ids_to_list(batch.src)[:100] == list(range(100))
    assert vertices.sum() == 100
    np.testing.assert_array_equal(
        np.column_stack([batch.src, batch.dst])[~vertices], DATA.edges[DATA.edges.max(axis=1) < 100]
    )


def test_stream_run_equals_adding_vertices_one_by_one():
    with show_progress() as bars:
        stream = StreamRun(DATA, Embedder(dim=8)).run("ripple", bars)
    reference = Embedder(dim=8).fit(select_first_vertices(DATA, 100))
    older, newer = DATA.edges.T
    arrivals = [reference.add_vertex(v, older[newer == v].tolist()) for v in range(100, 500)]
    np.testing.assert_array_equal(stream.vectors_on_arrival, arrivals)
    np.testing.assert_array_equal(stream.snapshots[-1], reference.vectors(range(500)))
    assert [len(vectors) for vectors in stream.snapshots] == [100, 200, 300, 400, 500]
    assert stream.seconds > 0


def test_score_vectors_of_perfect_vectors_is_one():
    labels = np.arange(60) % 3
    vectors = np.eye(3, dtype=np.float32)[labels]
    assert score_vectors(vectors[:20], vectors[20:], labels) == pytest.approx((1.0, 1.0))


def test_print_summary_shows_every_score(capsys):
    scores = [Score(name, 0.5, 0.25, 1.0, micros) for name, micros in zip("abcd", (10.0, 10.0, 20.0, 1e6), strict=True)]
    result = Result(7, 3, scores, [], np.zeros(5, np.int64))
    print_summary(result)
    shown = capsys.readouterr().out
    assert "5 vertices, 7 edges, 3 arrivals" in shown
    assert shown.count("50.0%") == 4
    assert "100,000" in shown
    assert "1,000,000" in shown  # microseconds for one arrival
    assert "1.0" in shown  # arrival per second
    assert "3 arrivals, 10 µs each" in result.format_caption()


def test_run_demo_without_extra_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("demo"))), show_progress() as bars:
        run_demo(500, 0, bars)


@pytest.fixture(scope="module")
def maps():
    return project_vectors([VECTORS[:20], VECTORS], LABELS)


def test_project_vectors_maps_equal_vectors_to_equal_points(maps):
    np.testing.assert_allclose(maps[0], maps[1][:20])


def test_project_vectors_separates_communities(maps):
    centers = np.array([maps[1][label == LABELS].mean(axis=0) for label in range(4)])
    spread = max(np.linalg.norm(maps[1] - centers[LABELS], axis=1))
    gaps = np.linalg.norm(centers[:, None] - centers[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 4 * spread
    assert np.abs(maps[1]).max() == 1


def test_write_png_writes_a_png_file(tmp_path, maps):
    write_png(tmp_path / "x.png", maps, LABELS, "a caption")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_write_html_writes_a_self_contained_page(tmp_path, maps):
    write_html(tmp_path / "x.html", maps, LABELS, "a caption")
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "a caption" in page
    assert "community 3" in page
    assert 'src="http' not in page
    assert len(page) > 1_000_000
