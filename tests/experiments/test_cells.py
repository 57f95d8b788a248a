from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplet import Embedder
from ripplet.datasets.synthetic import nested_communities, planted_partition
from ripplet.errors import InvalidValueError
from ripplet.evaluation import ageing, anchor_cosines, arrival, cluster, current, stream
from ripplet.experiments import cells
from ripplet.experiments.cells import check, load, measure

GRAPH = planted_partition(communities=4, size=60, inside=6, elsewhere=1)
STREAM = {"kind": "stream", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8}
RETRAINED = {"kind": "retrained", "baseline": "deepwalk", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8}


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cells.GENERATED, "planted", lambda seed: GRAPH)


def test_one_stream_tells_what_the_measures_tell_one_by_one() -> None:
    figures = measure(STREAM).figures
    result = stream(Embedder(dim=8, seed=3), GRAPH, seed=3)
    cosines = anchor_cosines(Embedder(dim=8, seed=3), GRAPH, seed=3)
    assert figures["current_micro"] == pytest.approx(100 * current(result).micro)
    assert figures["current_macro"] == pytest.approx(100 * current(result).macro)
    assert figures["arrival_micro"] == pytest.approx(100 * arrival(result).micro)
    assert figures["nmi"] == pytest.approx(100 * cluster(result.final_vectors, result.labels).nmi)
    assert figures["anchors"] == len(cosines) > 3
    assert figures["anchor_cosine_min"] == pytest.approx(min(cosines))
    assert figures["anchor_cosine_mean"] == pytest.approx(np.mean(cosines))
    assert figures["ageing_end"] == pytest.approx(100 * ageing(result).end.micro)


def test_exact_is_the_final_graph_embedded_with_the_views_of_the_stream() -> None:
    views = [{"tau": 2.0, "diffusion": 1.0}]
    measured = measure(STREAM | {"views": views, "depth": 2})
    figures, parameters = measured.figures, measured.parameters
    assert figures["exact_micro"] > 70
    assert figures["short_of_exact"] == pytest.approx(figures["exact_micro"] - figures["current_micro"])
    assert (parameters["views"][0]["tau"], parameters["depth"]) == (2.0, 2)


def test_default_views_are_spelt_out_and_each_can_be_changed() -> None:
    own = measure(STREAM).parameters["views"]
    changed = measure(STREAM | {"each_view": {"ridge": 7.0}}).parameters["views"]
    assert [view | {"ridge": 7.0} for view in own] == changed
    assert own != changed


def test_without_anchors_there_are_no_cosines() -> None:
    figures = measure(STREAM | {"anchor_growth": 0}).figures
    assert figures["anchors"] == 0
    assert "anchor_cosine_min" not in figures


def test_rule_paper_can_be_streamed() -> None:
    assert measure(STREAM | {"rule": "paper"}).parameters["views"] == "auto"


def test_a_baseline_sees_the_final_graph() -> None:
    measured = measure(RETRAINED | {"walks": 20})
    assert measured.figures["current_micro"] > 60
    assert measured.figures["retrain_seconds"] > 0
    assert (measured.parameters["walks"], measured.parameters["window"]) == (20, 7)


def test_generated_graphs_follow_the_seed() -> None:
    same = nested_communities(seed=1)
    np.testing.assert_array_equal(load("nested_communities", 1).edges, same.edges)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dim": 0}, "dim: expected"),
        ({"deep": 2}, "parameters: expected those of the kind.*'deep'"),
        ({"each_view": {"rigde": 1}}, "parameters: expected.*'rigde'"),
        ({"views": [{"tau": -1}]}, "SpectralView.tau"),
        ({"start": None}, "start: expected a share"),
        ({"dataset": "moon"}, "dataset: expected one of"),
    ],
)
def test_a_stream_that_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(STREAM | change)


@pytest.mark.parametrize(
    ("change", "expected"), [({"baseline": "shallowwalk"}, "baseline: expected one of"), ({"wlaks": 1}, "'wlaks'")]
)
def test_a_baseline_that_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(RETRAINED | change)
