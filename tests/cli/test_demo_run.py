from __future__ import annotations

import sys

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.batch import ids_to_list
from ripplevec.cli.console import progress
from ripplevec.cli.demo_run import Line, Result, Stream, first_part, judge, run, table
from ripplevec.errors import MissingExtraError
from ripplevec.lab.datasets.synthetic import growing_communities

DATA = growing_communities(500, 5, 4, 0.1, seed=1)


def test_the_first_part_has_all_its_vertices_and_the_edges_between_them():
    batch = first_part(DATA, 100)
    vertices = batch.op == 2
    assert ids_to_list(batch.src)[:100] == list(range(100))
    assert vertices.sum() == 100
    np.testing.assert_array_equal(
        np.column_stack([batch.src, batch.dst])[~vertices], DATA.edges[DATA.edges.max(axis=1) < 100]
    )


def test_a_stream_is_the_vertices_one_by_one():
    with progress() as bars:
        stream = Stream(DATA, Embedder(dim=8)).run("ripple", bars)
    by_hand = Embedder(dim=8).fit(first_part(DATA, 100))
    older, newer = DATA.edges.T
    arrivals = [by_hand.add_vertex(v, older[newer == v].tolist()) for v in range(100, 500)]
    np.testing.assert_array_equal(stream.on_arrival, arrivals)
    np.testing.assert_array_equal(stream.moments[-1], by_hand.vectors(range(500)))
    assert [len(vectors) for vectors in stream.moments] == [100, 200, 300, 400, 500]
    assert stream.seconds > 0


def test_perfect_vectors_are_judged_perfect():
    labels = np.arange(60) % 3
    vectors = np.eye(3, dtype=np.float32)[labels]
    assert judge(vectors[:20], vectors[20:], labels) == pytest.approx((1.0, 1.0))


def test_the_table_shows_every_line(capsys):
    lines = [Line(name, 0.5, 0.25, 1.0, micros) for name, micros in zip("abcd", (10.0, 10.0, 20.0, None), strict=True)]
    result = Result(7, 3, lines, [], np.zeros(5, np.int64))
    table(result)
    shown = capsys.readouterr().out
    assert "5 vertices, 7 edges, 3 arrivals" in shown
    assert shown.count("50.0%") == 4
    assert "100,000" in shown
    assert "3 arrivals, 10 µs each" in result.caption()


def test_a_missing_extra_is_named_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(MissingExtraError, match=r"ripplevec\[demo\]"), progress() as bars:
        run(500, 0, bars)
