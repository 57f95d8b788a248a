from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ripplet.views._prefetch import prefetch


@njit
def ask(flat, index):  # type: ignore[no-untyped-def]
    prefetch(flat, index)
    return flat[0]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("index", [0, 3, 10**15, -(10**15)])
def test_any_address_may_be_asked_for(kind: type, index: int) -> None:
    assert ask(np.arange(7, 11).astype(kind), index) == 7
    assert "prefetch" in ask.inspect_llvm(ask.signatures[-1])
