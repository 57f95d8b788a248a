"""Kernels of weights that fade: all of them are halved together, now and then."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.graph.weight_scale import FAINTEST


@njit(cache=True, nogil=True, forceinline=True)
def _lighten(weights: NDArray[np.float32], at: int, factor: float) -> bool:
    """Make a weight lighter, but not lighter than the faintest; whether that stopped it. Zero stays zero."""
    if weights[at] == 0:
        return False
    lighter = weights[at] * factor
    weights[at] = max(lighter, FAINTEST)
    return lighter < FAINTEST


@njit(cache=True, nogil=True)
def fade(links: Links, rows: int, factor: float, directed: bool) -> None:
    """Multiply all weights and strengths by a power of two: exact, but where a weight would become too faint."""
    for row in range(rows):
        stopped = False
        total, incoming = 0.0, 0.0
        for at in range(links.begin[row], links.begin[row] + links.count[row]):
            if directed:
                stopped |= _lighten(links.outgoing, at, factor) | _lighten(links.incoming, at, factor)
                links.weight[at] = links.outgoing[at] + links.incoming[at]
                incoming += links.incoming[at]
            else:
                stopped |= _lighten(links.weight, at, factor)
            total += links.weight[at]
        links.strength[row] = total if stopped else links.strength[row] * factor
        if directed:
            links.in_strength[row] = incoming if stopped else links.in_strength[row] * factor
