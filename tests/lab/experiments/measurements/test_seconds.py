from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ripplevec.lab.experiments.measurements.seconds import limited_to, retrainings
from threadpoolctl import threadpool_info

from ripplevec.errors import InvalidValueError
from ripplevec.lab.experiments.measurements import MEASUREMENTS, run_trial, seconds
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


def test_ratios_are_those_of_the_seconds_beside_them() -> None:
    figures = run_trial(SECONDS).metrics
    assert figures["fastest_walker"] == min(figures["deepwalk"], figures["node2vec"])
    for name in ("ripplevec", "ripplevec_no_anchor", "paper"):
        assert figures[name] == pytest.approx((figures[f"{name}@30"] + figures[f"{name}@50"]) / 2)
        assert figures[f"{name}_times_faster"] == pytest.approx(figures["fastest_walker"] / figures[name])
        arrival = figures[f"{name}_arrival_us"] / 1e6
        assert figures[f"{name}_arrival_times_faster"] == pytest.approx(figures["fastest_walker"] / arrival)
    assert "spectral" in figures


def test_ours_is_start_and_stream_with_anchors_and_without_and_by_rule_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed: list[tuple[str, Any, float, int]] = []

    def planted_times(model: Any, dataset: Any, share: float = 0.5, seed: int = 0) -> Any:
        rule, anchors = model.get_params()["rule"], model.get_params()["anchor_growth"]
        streamed.append((rule, anchors, share, seed))
        spent = 2.0 if rule == "paper" else 1.0 if anchors == 0 else 3.0
        each = spent * share * np.arange(1, 102)
        return SimpleNamespace(start_seconds=10 * share, stream_seconds=101 * spent, arrival_seconds=each)

    monkeypatch.setattr(seconds, "stream", planted_times)
    figures = run_trial(SECONDS).metrics
    kinds = [("ripple", "auto"), ("ripple", 0), ("paper", "auto")]
    assert streamed[6:] == [(*kind, share, 3) for kind in kinds for share in (0.3, 0.5)], "six before, to compile"
    assert (figures["ripplevec@30"], figures["ripplevec@50"], figures["ripplevec"]) == (306.0, 308.0, 307.0)
    assert (figures["ripplevec_no_anchor"], figures["paper"]) == (105.0, 206.0)
    arrivals = [figures[f"{name}_arrival_us"] for name in ("ripplevec", "ripplevec_no_anchor", "paper")]
    assert arrivals == pytest.approx([3e6, 1e6, 2e6])
    for name, spent in (("ripplevec", 3.0), ("ripplevec_no_anchor", 1.0), ("paper", 2.0)):
        found = [figures[f"{name}_{part}_us"] for part in ("p50", "p99", "maximum")]
        assert found == pytest.approx([1e6 * spent * 0.5 * step for step in (51, 100, 101)]), "from the middle share"


def test_without_walks_there_is_nothing_to_compare_with() -> None:
    figures = run_trial(SECONDS | {"baselines": {"spectral": {}}}).metrics
    assert {"spectral", "ripplevec", "ripplevec_arrival_us"} <= figures.keys()
    assert not [name for name in figures if "faste" in name]


def test_dimension_seed_and_threads_hold_for_all_that_take_them() -> None:
    found = retrainings(SECONDS | {"threads": 2})
    assert (found["deepwalk"].dim, found["deepwalk"].seed, found["deepwalk"].threads) == (8, 3, 2)
    assert (found["deepwalk"].walks, found["node2vec"].walks) == (2, 1)
    assert (found["spectral"].dim, found["spectral"].seed) == (8, 3)
    assert retrainings({"dim": 8}) == {}


def test_without_a_number_of_threads_all_cores_are_used() -> None:
    everything, own = resolve_threads(None), SECONDS | {"threads": None, "shares": [0.5]}
    check(own)
    parameters = run_trial(own).parameters
    assert {parameters[name]["threads"] for name in ("ripplevec", "paper", "deepwalk")} == {everything}


def test_settings_are_spelt_out_for_each_method() -> None:
    parameters = run_trial(SECONDS | {"shares": [0.5]}).parameters
    assert parameters["deepwalk"]["walks"] == 2
    assert parameters["spectral"] == {"dim": 8, "seed": 3}
    assert (parameters["ripplevec"]["dim"], parameters["ripplevec_no_anchor"]["anchor_growth"]) == (8, 0)
    assert parameters["paper"]["rule"] == "paper"


def test_linear_algebra_keeps_to_the_threads_too() -> None:
    for threads in (2, 1, None):
        with limited_to(threads):
            assert {pool["num_threads"] for pool in threadpool_info()} == {resolve_threads(threads)}


def test_nothing_may_run_beside_it() -> None:
    assert MEASUREMENTS["seconds"].exclusive


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shares": []}, "shares: expected a list of shares"),
        ({"dim": 0}, "dim: expected"),
        ({"start": 0.5}, "parameters: expected only seed, dim, threads, shares, baselines, got 'start'"),
        ({"baselines": {"shallowwalk": {}}}, "baseline: expected one of"),
        ({"baselines": {"deepwalk": {"wlaks": 1}}}, "parameters: expected those of the kind of cell.*'wlaks'"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    check(SECONDS)
    with pytest.raises(InvalidValueError, match=expected):
        check(SECONDS | change)
