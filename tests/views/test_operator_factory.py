from __future__ import annotations

import sys
from typing import Any

import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.graph.adjacency import Totals
from ripplevec.views.gpu import usable_cupy
from ripplevec.views.operator_factory import VARIABLE, make_operator
from ripplevec.views.operators import Operator
from ripplevec.views.spectral import SpectralView


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    usable_cupy.cache_clear()


def chosen(sample: Any, device: str) -> type:
    return type(make_operator(device, sample.adjacency, sample.rows, 0.5, 1))


def test_a_gpu_is_never_chosen_unasked(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert chosen(randomly(0), "auto") is chosen(randomly(0), "cpu") is Operator
    monkeypatch.setenv(VARIABLE, "cpu")
    assert chosen(randomly(0), "auto") is Operator


@pytest.mark.usefixtures("no_cupy")
def test_a_missing_extra_names_itself(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtraError, match=r"device=\"cuda\".* pip install 'ripplevec\[gpu\]'"):
        chosen(randomly(0), "cuda")
    monkeypatch.setenv(VARIABLE, "cuda")
    with pytest.raises(MissingExtraError):
        chosen(randomly(0), "auto")
    assert chosen(randomly(0), "cpu") is Operator  # what a view says goes first


def test_another_device_is_refused(randomly: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "abacus")
    with pytest.raises(InvalidValueError, match=f"{VARIABLE}: expected one of 'cpu', 'cuda', got 'abacus'"):
        chosen(randomly(0), "auto")


def test_a_graph_elsewhere_makes_its_operator_itself() -> None:
    class Far:
        def totals(self, rows: int) -> Totals:
            return Totals(ends=20, strength=40.0, active=5)

        def operator(self, tau: float) -> Any:
            return tau

    assert make_operator("cuda", Far(), 7, 0.5, 1) == 0.5
    assert SpectralView(tau=0.5)._operator(Far(), 7, 1) == 1.0  # of the mean weight
    assert SpectralView(tau_per_degree=0.5)._operator(Far(), 7, 1) == 4.0  # of the mean strength
