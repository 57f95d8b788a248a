from __future__ import annotations

import subprocess
import sys
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab import datasets
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import nested_communities, preferential_attachment
from ripplevec.lab.evaluation import Scores
from ripplevec.lab.evaluation.protocols import start_size
from ripplevec.lab.experiments.measurements.base import (
    arrival_seed,
    check_arrival_order,
    check_known_parameters,
    check_marks,
    check_share,
    check_shares,
    load_data,
    mark_sizes,
    remaining_parameters,
    score_metrics,
    share_suffix,
    warm_up_graph,
)
from ripplevec.views.solvers import MAX_DENSE_SIZE

TIMED = """
import gc
import sys

from numba.core.dispatcher import Dispatcher

from ripplevec.lab.experiments.measurements import run_trial, timing

kind = sys.argv[1]
warm_ups = {"seconds": 6, "growth": 1}[kind]
parameters = {"seconds": {"shares": [0.1, 0.5]}, "growth": {"vertices": 1200, "arrivals": 300}}[kind]
counts, stream, load_data = [], timing.stream, timing.load_data


def compiled():
    return {str(one): len(one.signatures) for one in gc.get_objects() if isinstance(one, Dispatcher)}


def counting_stream(*arguments, **options):
    counts.append(compiled())
    return stream(*arguments, **options)


timing.stream = counting_stream
timing.load_data = lambda configuration, **size: load_data(
    {"dataset": "preferential_attachment", "seed": 1}, vertices=1200
)
run_trial({"kind": kind, "dataset": "preferential_attachment", "seed": 0, "dim": 16, "threads": 1, **parameters})
before, after = counts[warm_ups], compiled()
late = {name for name, count in after.items() if count != before.get(name)}
assert sum(before.values()) > 10, "kernels are counted"
assert not late, late
"""
"""A trial in a new process, where no earlier test has compiled anything."""


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, graph: Dataset) -> list[str]:
    """Return the names of the published data sets that are read; all of them are the small graph here."""
    names: list[str] = []
    monkeypatch.setattr(datasets, "load", lambda name: names.append(name) or graph)
    return names


def test_load_data_generates_graph_of_seed_and_size() -> None:
    nested = load_data({"dataset": "nested_communities", "seed": 1})
    np.testing.assert_array_equal(nested.edges, nested_communities(seed=1).edges)
    hubs = load_data({"dataset": "preferential_attachment", "seed": 1}, vertices=50)
    np.testing.assert_array_equal(hubs.edges, preferential_attachment(50, seed=1).edges)


def test_load_data_reads_published_data_set_once(loaded: list[str]) -> None:
    name = f"published {uuid4()}"  # loaded data sets are kept for the rest of the process
    assert load_data({"dataset": name, "seed": 0}) is load_data({"dataset": name, "seed": 1})
    assert loaded == [name]


def test_arrival_seed_in_index_order_is_none() -> None:
    assert arrival_seed({"seed": 3}) == arrival_seed({"seed": 3, "arrival_order": "random"}) == 3
    assert arrival_seed({"seed": 3, "arrival_order": "index"}) is None


def test_warm_up_graph_exceeds_dense_solver() -> None:
    assert warm_up_graph().classes == 2
    assert start_size(warm_up_graph(), 0.5) > MAX_DENSE_SIZE, "not even its half is solved as small graphs are"


@pytest.mark.parametrize("kind", ["seconds", "growth"])
def test_timing_measurement_compiles_nothing_after_warm_up(kind: str) -> None:
    subprocess.run([sys.executable, "-c", TIMED, kind], check=True, timeout=600)


def test_remaining_parameters_drop_measurement_parameters() -> None:
    whole = {"kind": "shares", "dataset": "cora", "seed": 0, "shares": [0.5], "dim": 4}
    assert remaining_parameters(whole, "shares") == {"seed": 0, "dim": 4}


def test_score_metrics_are_percentages_and_suffix_names_share() -> None:
    assert score_metrics("current", Scores(0.5, 0.25)) == {"current_micro": 50.0, "current_macro": 25.0}
    assert (share_suffix(0.1), share_suffix(0.29), share_suffix(0.9)) == ("@10", "@29", "@90")


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, 1, None, "0.5", True])
def test_check_share_with_invalid_value_raises(value: object) -> None:
    with pytest.raises(InvalidValueError, match="start: expected a share between 0 and 1"):
        check_share("start", value)
    with pytest.raises(InvalidValueError, match="shares: expected a share between 0 and 1"):
        check_shares([0.5, value])


@pytest.mark.parametrize("values", [[], None, 0.5, (0.5,)])
def test_check_shares_with_invalid_list_raises(values: object) -> None:
    with pytest.raises(InvalidValueError, match="shares: expected a list of shares"):
        check_shares(values)


def test_check_arrival_order_with_unknown_order_raises() -> None:
    for known in ({}, {"arrival_order": "random"}, {"arrival_order": "index"}):
        check_arrival_order(known)
    with pytest.raises(InvalidValueError, match="arrival_order: expected one of 'random', 'index', got 'reverse'"):
        check_arrival_order({"arrival_order": "reverse"})


def test_check_known_parameters_with_unused_parameter_raises() -> None:
    check_known_parameters({"kind": "growth", "dataset": "cora", "seed": 0, "dim": 4}, "dim")
    with pytest.raises(InvalidValueError, match="parameters: expected only seed, dim, got 'depth'"):
        check_known_parameters({"kind": "growth", "dim": 4, "depth": 1}, "dim")


def test_mark_sizes_include_at_least_one_arrival(graph: Dataset) -> None:
    assert graph.vertices == 240
    found = mark_sizes({"start": 0.5, "marks": [0.501, 0.75, 1.0]}, graph)
    assert found == {0.501: 121, 0.75: 180, 1.0: 240}


@pytest.mark.parametrize("marks", [None, [], 0.7, [0.5], [0.8, 0.7], [0.7, 0.7], [0.9, 1.1]])
def test_check_marks_with_invalid_marks_raises(marks: Any) -> None:
    with pytest.raises(InvalidValueError, match="marks: expected a list of increasing shares"):
        check_marks({"start": 0.5, "marks": marks})


def test_check_marks_without_start_raises() -> None:
    check_marks({"start": 0.5, "marks": [1.0]})
    with pytest.raises(InvalidValueError, match="start: expected a share"):
        check_marks({"marks": [1.0]})
