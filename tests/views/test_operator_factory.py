from __future__ import annotations

import sys
from typing import Any

import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.graph.adjacency import Totals
from ripplevec.views.gpu import usable_cupy
from ripplevec.views.operator_factory import DEVICE_VARIABLE, make_operator
from ripplevec.views.operators import Operator
from ripplevec.views.spectral import SpectralView


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    usable_cupy.cache_clear()


def operator_type(sample: Any, device: str) -> type:
    return type(make_operator(device, sample.adjacency, sample.rows, 0.5, 1))


def test_make_operator_by_default_uses_the_cpu(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    assert operator_type(randomly(0), "auto") is operator_type(randomly(0), "cpu") is Operator
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    assert operator_type(randomly(0), "auto") is Operator


@pytest.mark.usefixtures("no_cupy")
def test_make_operator_without_cupy_raises_with_the_extra(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtraError, match=r"device=\"cuda\" needs .*pip install .*\[gpu\]'"):
        operator_type(randomly(0), "cuda")
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda")
    with pytest.raises(MissingExtraError):
        operator_type(randomly(0), "auto")
    assert operator_type(randomly(0), "cpu") is Operator  # the view overrides the environment


def test_make_operator_with_an_unknown_device_raises(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "abacus")
    with pytest.raises(InvalidValueError, match=f"{DEVICE_VARIABLE}: expected one of 'cpu', 'cuda', got 'abacus'"):
        operator_type(randomly(0), "auto")


def test_make_operator_of_a_remote_graph_delegates_to_it() -> None:
    class RemoteGraph:
        def totals(self, rows: int) -> Totals:
            return Totals(endpoints=20, strength=40.0, active=5)

        def operator(self, tau: float) -> Any:
            return tau

    assert make_operator("cuda", RemoteGraph(), 7, 0.5, 1) == 0.5
    assert SpectralView(tau=0.5)._make_operator(RemoteGraph(), 7, 1) == 1.0  # half the mean weight
    assert SpectralView(tau_per_degree=0.5)._make_operator(RemoteGraph(), 7, 1) == 4.0  # half the mean strength
