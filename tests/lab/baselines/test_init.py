from __future__ import annotations

import inspect

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab import baselines
from ripplevec.lab.baselines import DeepWalk, baseline
from ripplevec.lab.datasets.synthetic import planted_partition

NAMES = list(baselines.BASELINES)


def test_a_baseline_is_found_by_its_name() -> None:
    assert baseline("deepwalk") is DeepWalk


@pytest.mark.parametrize("name", NAMES)
def test_every_baseline_has_one_interface(name: str) -> None:
    graph = planted_partition(communities=2, size=20).adjacency()
    vectors = baseline(name)(dim=6, seed=3).embed(graph)
    assert vectors.shape == (40, 6)
    assert vectors.dtype == "float32"
    assert baseline(name).__name__ in baselines.__all__
    assert inspect.getdoc(baseline(name))


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="one of 'deepwalk'"):
        baseline("deeptalk")
