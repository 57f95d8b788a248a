from __future__ import annotations

import inspect

import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab import baselines
from ripplevec.lab.baselines import DeepWalk, get_baseline
from ripplevec.lab.datasets.synthetic import planted_partition

NAMES = list(baselines.BASELINES)
TORCH_METHODS = ("graphsage", "sdne")


def test_get_baseline_returns_class() -> None:
    assert get_baseline("deepwalk") is DeepWalk


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_baseline_embeds_with_common_interface(name: str) -> None:
    if name in TORCH_METHODS:
        pytest.importorskip("torch")
    graph = planted_partition(communities=2, size=20).adjacency()
    vectors = get_baseline(name)(dim=6, seed=3).embed(graph)
    assert vectors.shape == (40, 6)
    assert vectors.dtype == "float32"
    assert get_baseline(name).__name__ in baselines.__all__
    assert inspect.getdoc(get_baseline(name))


def test_get_baseline_with_unknown_name_raises() -> None:
    with pytest.raises(InvalidValueError, match="one of 'deepwalk'"):
        get_baseline("deeptalk")
