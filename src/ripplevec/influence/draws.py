"""The key of draws, as kernels take it from Python."""

from __future__ import annotations

import numpy as np

from ripplevec.influence._kernels import key_of


def draw_key(seed: int, sequence: int, turn: int) -> np.uint64:
    """`key_of` in the one type that kernels are compiled for: a Python int would be signed or not, as it happens."""
    return np.uint64(key_of(seed, sequence, turn))
