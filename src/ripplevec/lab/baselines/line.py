"""LINE (Tang et al., 2015): attracts the endpoints of sampled edges and repels sampled noise vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.influence._kernels import draw_key
from ripplevec.lab.baselines import _sampling_kernels as kernels
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.util.parallel import for_each_block

SAMPLES_PER_BLOCK = 65_536
ORDERS = ("first", "second", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class LINE:
    """LINE: first order makes neighbors similar, second order vertices with common neighbors; both are concatenated.

    Rows of each part have length one, as in the authors' program; with both orders each part has half of the columns.
    A part is trained on `samples` sampled edges per vertex. With one thread the same seed gives the same vectors; with
    more threads updates race.
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
        """Train each part; return a vector per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        if not matrix.nnz:
            return np.zeros((matrix.shape[0], self.dim), np.float32)
        sampler, half = build_sampler(matrix), self.dim // 2
        widths = {"first": (self.dim, 0), "second": (0, self.dim), "both": (self.dim - half, half)}[self.order]
        parts = [
            self._train(sampler, matrix, order, width) for order, width in zip(ORDERS, widths, strict=False) if width
        ]
        return np.hstack(parts)

    def _train(self, sampler: kernels.EdgeSampler, matrix: csr_array, order: str, columns: int) -> NDArray[np.float32]:
        linked, second_order = np.diff(matrix.indptr) > 0, ORDERS.index(order)
        noise = np.random.default_rng([self.seed, second_order]).random((len(linked), columns), np.float32)
        vectors = (noise - np.float32(0.5)) / np.float32(columns) * linked[:, None]
        contexts = np.zeros_like(vectors) if second_order else vectors
        schedule = kernels.TrainingSchedule(self.samples * int(linked.sum()), self.negatives, float(self.rate))
        key = draw_key(self.seed, 0, second_order)

        def train_block(first: int, last: int) -> None:
            kernels.train_on_edges(sampler, vectors, contexts, schedule, key, first, last)

        for_each_block(train_block, schedule.samples, size=SAMPLES_PER_BLOCK, threads=self.threads)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.where(lengths > 0, lengths, 1)
        return unit


def build_sampler(matrix: csr_array, noise_by: csr_array | None = None) -> kernels.EdgeSampler:
    """Sample stored entries by weight, and noise by strength to the power ¾, as in word2vec.

    The strengths are those of the matrix, or of another one.
    """
    coordinates = matrix.tocoo()
    endpoints = np.column_stack([coordinates.row, coordinates.col]).astype(np.int64)
    strength = np.asarray((matrix if noise_by is None else noise_by).sum(axis=0)).ravel()
    return kernels.EdgeSampler(
        endpoints, kernels.build_alias_table(matrix.data), kernels.build_alias_table(strength**0.75)
    )
