"""node2vec (Grover and Leskovec, 2016): DeepWalk with walks that like to return (p) or to leave (q), or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.baselines import _kernels as kernels
from ripplevec.lab.baselines.deepwalk import DeepWalk


@dataclass(frozen=True, slots=True, kw_only=True)
class Node2Vec(DeepWalk):
    """DeepWalk whose walks remember one step: small p brings them back, small q takes them away.

    A walk that came from t to v goes on to x in proportion to the weight of (v, x), divided by p where x is t, and by
    q where x is not a neighbor of t. With p = q = 1 the walks are DeepWalk's, bit for bit.
    """

    p: float = 1.0
    q: float = 1.0

    def _walk(self, slots: kernels.Slots, starts: NDArray[np.int64], key: np.uint64, rows: NDArray[np.int64]) -> None:
        kernels.biased_walk(slots, (1 / self.p, 1.0, 1 / self.q), starts, key, rows)
