"""GraphWave (Donnat et al., 2018): describes a vertex by the distribution of heat diffused from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from scipy.special import ive

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings
from ripplevec.util.parallel import for_each_block

HEAT_KEPT_SHORTEST, HEAT_KEPT_LONGEST = 0.95, 0.85
"""Share of the heat kept at the shortest and the longest scale, in the middle of the spectrum."""

LAST_SAMPLE_POINT = 100.0
"""The characteristic function is sampled at evenly spaced points up to this one, as the authors do."""

ENTRIES_PER_BLOCK = 1 << 19
"""Matrix entries per block of columns, so that the n × n wavelets are never in memory as a whole."""

TOLERANCE = 1e-9
"""Coefficients at which the Chebyshev series of the heat kernel is truncated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWave:
    """GraphWave with `scales` heat kernels, whose scales are derived from the spectrum.

    The `dim` / 2 complex samples are divided among the scales. The seed only initializes the eigenvalue solver.
    """

    dim: int = 128
    scales: int = 2
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_settings(self)
        if self.dim % 2 or self.dim < 2 * self.scales:
            raise InvalidValueError.of("GraphWave.dim", "an even number, at least two per scale", self.dim)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Return the signatures with standardized columns, as the authors compare them.

        Raw signatures are near one and differ by parts in n, which neither single precision nor a cosine would resolve.
        Vertices without edges have zero vectors.
        """
        matrix = as_weight_matrix(graph)
        linked = np.flatnonzero(matrix.sum(axis=1))
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        if len(linked):
            signatures = self.compute_signatures(matrix[linked][:, linked])
            signatures -= signatures.mean(axis=0)
            deviation = signatures.std(axis=0)
            vectors[linked] = signatures / np.where(deviation > TOLERANCE / len(linked), deviation, np.inf)
        return vectors

    def compute_signatures(self, graph: csr_array) -> NDArray[np.float64]:
        """Return the sampled characteristic function of each vertex's wavelet, scale by scale.

        All real parts come first, then all imaginary parts. Every vertex must have an edge.
        """
        scaled = diags_array(1 / np.sqrt(graph.sum(axis=1)))
        operator = csr_array(scaled @ graph @ scaled)
        series = chebyshev_coefficients(choose_scales(operator, self.scales, self.seed))
        vertices = operator.shape[0]
        result = np.empty((vertices, self.dim))
        sample_block = partial(self._sample_block, operator, series, result)
        for_each_block(sample_block, vertices, size=max(ENTRIES_PER_BLOCK // vertices, 1), threads=self.threads)
        return result

    def _sample_block(
        self, operator: csr_array, series: NDArray[np.float64], result: NDArray[np.float64], begin: int, end: int
    ) -> None:
        samples = np.array_split(np.arange(self.dim // 2), self.scales)
        for wavelet, columns in zip(compute_wavelets(operator, series, begin, end), samples, strict=True):
            values = sample_characteristic(wavelet, len(columns))
            result[begin:end, columns] = values.real
            result[begin:end, self.dim // 2 + columns] = values.imag


def choose_scales(operator: csr_array, count: int, seed: int = 0) -> NDArray[np.float64]:
    """Return evenly spaced scales from the Laplacian's λ₂ and λ_N: −ln(heat kept) / √(λ₂ λ_N).

    Only the largest component counts, because each further component would add a zero eigenvalue.
    """
    component = connected_components(operator, directed=False)[1]
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    second, last = _extreme_eigenvalues(operator[largest][:, largest], seed)
    return np.linspace(-np.log(HEAT_KEPT_SHORTEST), -np.log(HEAT_KEPT_LONGEST), count) / np.sqrt(second * last)


def _extreme_eigenvalues(operator: csr_array, seed: int) -> tuple[float, float]:
    """Return λ₂ and λ_N of the Laplacian of a connected graph, given its normalized adjacency."""
    vertices = operator.shape[0]
    if vertices <= 64:
        values = np.linalg.eigvalsh(operator.toarray())
        return max(1 - values[-2], TOLERANCE) if vertices > 1 else 1.0, max(1 - values[0], TOLERANCE)
    initial = np.random.default_rng(seed).standard_normal(vertices)
    solve = partial(eigsh, operator, v0=initial, ncv=64, tol=1e-6, return_eigenvectors=False)
    top, bottom = solve(k=2, which="LA"), solve(k=1, which="SA")
    return max(1 - top.min(), TOLERANCE), 1 - bottom[0]


def chebyshev_coefficients(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Chebyshev series of exp(−s (1 − x)) for x in [−1, 1], one row per scale s."""
    order = np.arange(2 * int(scales.max()) + 60)
    series = np.where(order > 0, 2.0, 1.0) * ive(order, scales[:, None])
    return series[:, : np.flatnonzero((series > TOLERANCE).any(axis=0)).max() + 1]


def compute_wavelets(operator: csr_array, series: NDArray[np.float64], begin: int, end: int) -> NDArray[np.float64]:
    """Return the columns `begin` to `end - 1` of the heat kernel at each scale, by the Chebyshev recurrence."""
    previous = np.zeros((operator.shape[0], end - begin))
    current = np.eye(operator.shape[0], end - begin, -begin)
    result = series[:, 0, None, None] * current
    for order, weights in enumerate(series.T[1:]):
        previous, current = current, (2 if order else 1) * (operator @ current) - previous
        for scale, weight in enumerate(weights):
            result[scale] += weight * current
    return result


def sample_characteristic(wavelet: NDArray[np.float64], points: int) -> NDArray[np.complex128]:
    """Return the mean of exp(i t ψ) over each column at evenly spaced t, one row per column.

    The values at multiples of the first t are powers of exp(i t ψ).
    """
    factor = np.exp(1j * (LAST_SAMPLE_POINT / points) * wavelet)
    power, values = np.ones_like(factor), np.empty((wavelet.shape[1], points), np.complex128)
    for point in range(points):
        power *= factor
        values[:, point] = power.mean(axis=0)
    return values
