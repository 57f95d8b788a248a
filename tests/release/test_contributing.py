"""The examples in CONTRIBUTING.md work: a rule, a source and a baseline can be added as described.

The rule is also tested by tests/contract, as the page asks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ripplevec
from ripplevec.io.registry import stream_from
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.experiments.measurements.method_scores import build_static_method, is_static

MAX_LINES = 60  # of a section: about a page


@pytest.fixture(autouse=True)
def in_temporary_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("heading", ["Add a rule", "Add a source", "Add a baseline"])
def test_example_code_fits_on_a_page(contributing: Any, heading: str) -> None:
    assert 20 < contributing.section(heading).count("\n") < MAX_LINES


def test_example_rule_works(contributing: Any) -> None:
    contributing.run("Add a rule")
    data = planted_partition(communities=3, size=30)
    model = ripplevec.Embedder(dim=4, rule="mean").fit(data.edges.tolist())
    before = model.vectors([0, 1])
    newcomer = model.add_vertex("new", [0, 1])
    np.testing.assert_allclose(newcomer, before.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(model.vectors([0, 1]), before)
    model.save("model")
    assert ripplevec.load("model").digest() == model.digest()


def test_example_source_works(contributing: Any) -> None:
    contributing.run("Add a source")
    with ripplevec.Session("state") as session:
        assert session.model.ids == list(range(41))
        assert session.run(stream_from("ticks://40")) == 0


def test_example_source_resumes_at_its_position(contributing: Any) -> None:
    contributing.run("Add a source")
    with ripplevec.Session("part", dim=4) as session:
        first = session.run(stream_from("ticks://30"), until=lambda: session.model.sequence >= 7)
    with ripplevec.Session("part") as session:
        assert first + session.run(stream_from("ticks://30")) == 30
        assert len(session.model) == 31


def test_example_baseline_works(contributing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    contributing.run("Add a baseline")
    assert float(capsys.readouterr().out) > 0.5
    assert is_static("projection")
    vectors = build_static_method("projection", {"dim": 6, "seed": 1}).embed(
        planted_partition(communities=2, size=20).adjacency()
    )
    assert (vectors.shape, vectors.dtype) == ((40, 6), np.float32)
