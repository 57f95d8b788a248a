from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.synthetic import preferential_attachment
from ripplevec.lab.experiments.measurements import MEASUREMENTS, check_trial, run_trial, timing
from ripplevec.lab.experiments.measurements.timing import _build_baselines, _limit_threads
from ripplevec.parameters import DEFAULT_ANCHOR_GROWTH
from ripplevec.util.parallel import resolve_threads

SECONDS = {
    "kind": "seconds",
    "dataset": "planted",
    "seed": 3,
    "dim": 8,
    "threads": 1,
    "shares": [0.3, 0.5],
    "baselines": {"deepwalk": {"walks": 2, "length": 5}, "node2vec": {"walks": 1, "length": 5}, "spectral": None},
}


def test_seconds_speedups_equal_ratios_of_seconds() -> None:
    metrics = run_trial(SECONDS).metrics
    assert metrics["fastest_walker"] == min(metrics["deepwalk"], metrics["node2vec"])
    for name in ("ripplevec", "ripplevec_no_anchor", "paper"):
        assert metrics[name] == pytest.approx((metrics[f"{name}@30"] + metrics[f"{name}@50"]) / 2)
        assert metrics[f"{name}_times_faster"] == pytest.approx(metrics["fastest_walker"] / metrics[name])
        arrival = metrics[f"{name}_arrival_us"] / 1e6
        assert metrics[f"{name}_arrival_times_faster"] == pytest.approx(metrics["fastest_walker"] / arrival)
    assert "spectral" in metrics


def test_seconds_time_streams_with_and_without_anchors_and_rule_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed: list[tuple[str, Any, float, int]] = []

    def planted_times(model: Any, dataset: Any, share: float = 0.5, seed: int = 0) -> Any:
        rule, anchors = model.get_params()["rule"], model.get_params()["anchor_growth"]
        streamed.append((rule, anchors, share, seed))
        spent = 2.0 if rule == "paper" else 1.0 if anchors == 0 else 3.0
        each = spent * share * np.arange(1, 102)
        return SimpleNamespace(start_seconds=10 * share, stream_seconds=101 * spent, arrival_seconds=each)

    monkeypatch.setattr(timing, "stream", planted_times)
    metrics = run_trial(SECONDS).metrics
    kinds = [("ripple", "auto"), ("ripple", 0), ("paper", "auto")]
    assert streamed[6:] == [(*kind, share, 3) for kind in kinds for share in (0.3, 0.5)], "after six warm-up streams"
    assert (metrics["ripplevec@30"], metrics["ripplevec@50"], metrics["ripplevec"]) == (306.0, 308.0, 307.0)
    assert (metrics["ripplevec_no_anchor"], metrics["paper"]) == (105.0, 206.0)
    arrivals = [metrics[f"{name}_arrival_us"] for name in ("ripplevec", "ripplevec_no_anchor", "paper")]
    assert arrivals == pytest.approx([3e6, 1e6, 2e6])
    for name, spent in (("ripplevec", 3.0), ("ripplevec_no_anchor", 1.0), ("paper", 2.0)):
        found = [metrics[f"{name}_{part}_us"] for part in ("p50", "p99", "maximum")]
        assert found == pytest.approx([1e6 * spent * 0.5 * step for step in (51, 100, 101)]), "from the middle share"


def test_seconds_without_walk_baselines_has_no_speedups() -> None:
    metrics = run_trial(SECONDS | {"baselines": {"spectral": {}}}).metrics
    assert {"spectral", "ripplevec", "ripplevec_arrival_us"} <= metrics.keys()
    assert not [name for name in metrics if "faste" in name]


def test_build_baselines_passes_common_parameters() -> None:
    found = _build_baselines(SECONDS | {"threads": 2})
    assert (found["deepwalk"].dim, found["deepwalk"].seed, found["deepwalk"].threads) == (8, 3, 2)
    assert (found["deepwalk"].walks, found["node2vec"].walks) == (2, 1)
    assert (found["spectral"].dim, found["spectral"].seed) == (8, 3)
    assert _build_baselines({"dim": 8}) == {}


def test_seconds_without_threads_use_all_cores() -> None:
    everything, own = resolve_threads(None), SECONDS | {"threads": None, "shares": [0.5]}
    check_trial(own)
    parameters = run_trial(own).parameters
    assert {parameters[name]["threads"] for name in ("ripplevec", "paper", "deepwalk")} == {everything}


def test_seconds_record_full_parameters_of_each_method() -> None:
    parameters = run_trial(SECONDS | {"shares": [0.5]}).parameters
    assert parameters["deepwalk"]["walks"] == 2
    assert parameters["spectral"] == {"dim": 8, "components": "together", "seed": 3}
    assert (parameters["ripplevec"]["dim"], parameters["ripplevec_no_anchor"]["anchor_growth"]) == (8, 0)
    assert parameters["paper"]["rule"] == "paper"


def test_limit_threads_applies_to_blas() -> None:
    for threads in (2, 1, None):
        with _limit_threads(threads):
            assert {pool["num_threads"] for pool in threadpool_info()} == {resolve_threads(threads)}


def test_seconds_is_exclusive() -> None:
    assert MEASUREMENTS["seconds"].exclusive


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shares": []}, "shares: expected a list of shares"),
        ({"dim": 0}, "dim: expected"),
        ({"start": 0.5}, "parameters: expected only seed, dim, threads, shares, baselines, got 'start'"),
        ({"baselines": {"shallowwalk": {}}}, "baseline: expected one of"),
        ({"baselines": {"deepwalk": {"wlaks": 1}}}, "parameters: expected those of the kind of measurement.*'wlaks'"),
    ],
)
def test_check_trial_with_invalid_seconds_raises(change: dict[str, Any], expected: str) -> None:
    check_trial(SECONDS)
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(SECONDS | change)


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
    """Return the data sets that were streamed, each with the result of the stream."""
    seen: list[tuple[Any, Any]] = []
    stream = timing.stream

    def recording_stream(model: Any, dataset: Any, *rest: Any, **options: Any) -> Any:
        seen.append((dataset, stream(model, dataset, *rest, **options)))
        return seen[-1][1]

    monkeypatch.setattr(timing, "stream", recording_stream)
    return seen


def test_growth_streams_last_vertices_in_index_order(streams: list[tuple[Any, Any]]) -> None:
    trial = run_trial(GROWTH)
    dataset, result = streams[1]
    np.testing.assert_array_equal(dataset.edges, preferential_attachment(200, seed=3).edges)
    np.testing.assert_array_equal(result.order, np.arange(200))
    assert (result.start, len(result.arrival_seconds)) == (150, 50)
    assert trial.metrics["start_seconds"] == result.start_seconds
    assert trial.metrics["arrival_us"] == pytest.approx(1e6 * result.arrival_seconds.mean())
    ours = trial.parameters["ripplevec"]
    assert (ours["dim"], ours["threads"], ours["anchor_growth"]) == (4, 1, 0)


def test_growth_limits_arrivals_to_half_of_graph(streams: list[tuple[Any, Any]]) -> None:
    run_trial(GROWTH | {"arrivals": 10_000})
    assert streams[1][1].start == 100


def test_growth_repeats_start_and_anchor_with_all_threads(
    streams: list[tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    anchor = Embedder.anchor
    monkeypatch.setattr(
        Embedder, "anchor", lambda model: threads.append(model.get_params()["threads"]) or anchor(model)
    )
    metrics = run_trial(GROWTH).metrics
    everything = resolve_threads(None)
    assert threads == [1, 1, everything], "one warm-up before"
    (_, usual), (_, wide) = streams[1:]
    assert (usual.start, wide.start) == (150, 150)
    assert metrics["start_all_threads_seconds"] == wide.start_seconds != usual.start_seconds
    assert 0 < metrics["anchor_all_threads_seconds"] != metrics["anchor_seconds"]
    assert run_trial(GROWTH | {"threads": None}).parameters["ripplevec"]["threads"] == everything


def test_growth_divides_anchor_among_arrivals() -> None:
    metrics = run_trial(GROWTH).metrics
    assert metrics["anchor_share_us"] == pytest.approx(1e6 * metrics["anchor_seconds"] / (DEFAULT_ANCHOR_GROWTH * 200))


def test_growth_trains_baselines_on_same_graph(embedded: list[int]) -> None:
    plain = run_trial(GROWTH).metrics
    assert not embedded
    trial = run_trial(GROWTH | {"baselines": {"spectral": None, "deepwalk": {"walks": 1, "length": 5}}})
    assert embedded == [1000, 200, 1000, 200], "each on a warm-up graph first"
    assert trial.parameters["deepwalk"]["walks"] == 1
    assert trial.metrics.keys() - plain.keys() == {"spectral_seconds", "deepwalk_seconds"}


def test_growth_is_exclusive() -> None:
    assert MEASUREMENTS["growth"].exclusive


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dataset": "cora"}, "dataset: expected one of 'preferential_attachment', got 'cora'"),
        ({"dataset": "nested_communities"}, "dataset: expected one of 'preferential_attachment'"),
        ({"vertices": 0}, "vertices: expected an integer ≥ 1, got 0"),
        ({"arrivals": 0.5}, "arrivals: expected an integer ≥ 1, got 0.5"),
        ({"dim": 0}, "dim: expected"),
        ({"depth": 2}, "parameters: expected only .*got 'depth'"),
        ({"baselines": {"shallowwalk": {}}}, "baseline: expected one of"),
    ],
)
def test_check_trial_with_invalid_growth_raises(change: dict[str, Any], expected: str) -> None:
    check_trial(GROWTH)
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(GROWTH | change)
