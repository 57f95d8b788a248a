"""LINE (Tang et al., 2015): edges sampled by weight, their ends drawn together, against vertices sampled as noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _kernels as kernels
from ripplevec.lab.baselines.base import check_settings, checked
from ripplevec.util.parallel import for_each_block

BLOCK = 65_536
ORDERS = ("first", "second", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class LINE:
    """First order: neighbors are alike. Second order: vertices with the same neighbors are. Both: side by side.

    Each part has rows of length one, as the authors' program makes them, and half of the columns where there are two.
    A part learns from `samples` sampled edges per vertex. With one thread the same seed gives the same vectors; with
    more, updates race each other.
    """

    dim: int = 128
    order: str = "both"
    samples: int = 2_000
    negatives: int = 5
    rate: float = 0.025
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_settings(self)
        check_choice("LINE.order", self.order, ORDERS)
        if self.order == "both" and self.dim < 2:
            raise InvalidValueError.of("LINE.dim", "at least 2 for both orders", self.dim)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Learn each part; vertices without edges keep zero vectors."""
        matrix = checked(graph)
        if not matrix.nnz:
            return np.zeros((matrix.shape[0], self.dim), np.float32)
        arcs, half = _arcs(matrix), self.dim // 2
        widths = {"first": (self.dim, 0), "second": (0, self.dim), "both": (self.dim - half, half)}[self.order]
        parts = [self._learn(arcs, matrix, order, width) for order, width in zip(ORDERS, widths, strict=False) if width]
        return np.hstack(parts)

    def _learn(self, arcs: kernels.Arcs, matrix: csr_array, order: str, columns: int) -> NDArray[np.float32]:
        linked, second = np.diff(matrix.indptr) > 0, ORDERS.index(order)
        noise = np.random.default_rng([self.seed, second]).random((len(linked), columns), np.float32)
        vectors = (noise - np.float32(0.5)) / np.float32(columns) * linked[:, None]
        contexts = np.zeros_like(vectors) if second else vectors
        plan = kernels.Plan(self.samples * int(linked.sum()), self.negatives, float(self.rate))
        key = draw_key(self.seed, 0, second)

        def work(first: int, last: int) -> None:
            kernels.learn_arcs(arcs, vectors, contexts, plan, key, first, last)

        for_each_block(work, plan.samples, size=BLOCK, threads=self.threads)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.where(lengths > 0, lengths, 1)
        return unit


def _arcs(matrix: csr_array) -> kernels.Arcs:
    """Both directions of every edge by weight; noise by strength to the power ¾, as in word2vec."""
    coordinates = matrix.tocoo()
    ends = np.column_stack([coordinates.row, coordinates.col]).astype(np.int64)
    strength = np.asarray(matrix.sum(axis=0)).ravel()
    return kernels.Arcs(ends, kernels.alias_table(matrix.data), kernels.alias_table(strength**0.75))
