from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.synthetic import preferential_attachment
from ripplevec.lab.experiments.measurements import MEASUREMENTS, growth, run_trial
from ripplevec.parameters import DEFAULT_ANCHOR_GROWTH
from ripplevec.util.parallel import resolve_threads

GROWTH = {
    "kind": "growth",
    "dataset": "preferential_attachment",
    "seed": 3,
    "vertices": 200,
    "arrivals": 50,
    "dim": 4,
    "threads": 1,
}


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The data sets that were streamed, and what came of it."""
    seen: list[tuple[Any, Any]] = []
    whole = growth.stream

    def noted(model: Any, dataset: Any, *rest: Any, **options: Any) -> Any:
        seen.append((dataset, whole(model, dataset, *rest, **options)))
        return seen[-1][1]

    monkeypatch.setattr(growth, "stream", noted)
    return seen


def test_the_last_vertices_arrive_in_the_order_the_graph_grew(streams: list[tuple[Any, Any]]) -> None:
    measured = run_trial(GROWTH)
    dataset, result = streams[1]
    np.testing.assert_array_equal(dataset.edges, preferential_attachment(200, seed=3).edges)
    np.testing.assert_array_equal(result.order, np.arange(200))
    assert (result.start, len(result.arrival_seconds)) == (150, 50)
    assert measured.metrics["start_seconds"] == result.start_seconds
    assert measured.metrics["arrival_us"] == pytest.approx(1e6 * result.arrival_seconds.mean())
    ours = measured.parameters["ripplevec"]
    assert (ours["dim"], ours["threads"], ours["anchor_growth"]) == (4, 1, 0)


def test_half_of_a_small_graph_arrives_at_most(streams: list[tuple[Any, Any]]) -> None:
    run_trial(GROWTH | {"arrivals": 10_000})
    assert streams[1][1].start == 100


def test_start_and_anchor_are_measured_once_more_with_all_threads(
    streams: list[tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    anchor = Embedder.anchor
    monkeypatch.setattr(
        Embedder, "anchor", lambda model: threads.append(model.get_params()["threads"]) or anchor(model)
    )
    figures = run_trial(GROWTH).metrics
    everything = resolve_threads(None)
    assert threads == [1, 1, everything], "one more before, to compile with"
    (_, usual), (_, wide) = streams[1:]
    assert (usual.start, wide.start) == (150, 150)
    assert figures["start_all_threads_seconds"] == wide.start_seconds != usual.start_seconds
    assert 0 < figures["anchor_all_threads_seconds"] != figures["anchor_seconds"]
    assert run_trial(GROWTH | {"threads": None}).parameters["ripplevec"]["threads"] == everything


def test_an_anchor_is_shared_out_over_the_arrivals_between_two() -> None:
    figures = run_trial(GROWTH).metrics
    assert figures["anchor_share_us"] == pytest.approx(1e6 * figures["anchor_seconds"] / (DEFAULT_ANCHOR_GROWTH * 200))


def test_baselines_are_retrained_on_the_same_graph(embedded: list[int]) -> None:
    plain = run_trial(GROWTH).metrics
    assert not embedded
    measured = run_trial(GROWTH | {"baselines": {"spectral": None, "deepwalk": {"walks": 1, "length": 5}}})
    assert embedded == [1000, 200, 1000, 200], "each on a small graph first, to compile with"
    assert measured.parameters["deepwalk"]["walks"] == 1
    assert measured.metrics.keys() - plain.keys() == {"spectral_seconds", "deepwalk_seconds"}


def test_nothing_may_run_beside_it() -> None:
    assert MEASUREMENTS["growth"].exclusive


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dataset": "cora"}, "dataset: expected one of 'preferential_attachment', got 'cora'"),
        ({"dataset": "nested_communities"}, "dataset: expected one of 'preferential_attachment'"),
        ({"vertices": 0}, "vertices: expected a whole number ≥ 1, got 0"),
        ({"arrivals": 0.5}, "arrivals: expected a whole number ≥ 1, got 0.5"),
        ({"dim": 0}, "dim: expected"),
        ({"depth": 2}, "parameters: expected only .*got 'depth'"),
        ({"baselines": {"shallowwalk": {}}}, "baseline: expected one of"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    check(GROWTH)
    with pytest.raises(InvalidValueError, match=expected):
        check(GROWTH | change)
