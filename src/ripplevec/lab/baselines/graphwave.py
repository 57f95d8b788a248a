"""GraphWave (Donnat et al., 2018): how heat that starts at a vertex is spread, whoever it reaches."""

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
from ripplevec.lab.baselines.base import check_settings, checked
from ripplevec.util.parallel import for_each_block

LEAST, MOST = 0.95, 0.85
"""How much of its heat a wave keeps at the shortest and at the longest scale, in the middle of the spectrum."""

REACH = 100.0
"""The characteristic function is sampled at evenly spaced points up to here, as the authors do."""

ENTRIES = 1 << 19
"""How many entries a block of columns holds: the n × n wavelets never stand in memory at once."""

TOLERANCE = 1e-9
"""Where the Chebyshev series of the heat kernel is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWave:
    """Heat kernels at `scales` scales, chosen from the spectrum; `dim` / 2 complex samples are shared among them.

    The seed starts the search for the ends of the spectrum, nothing else.
    """

    dim: int = 128
    scales: int = 2
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        check_settings(self)
        if self.dim % 2 or self.dim < 2 * self.scales:
            raise InvalidValueError.of("GraphWave.dim", "an even number, two or more for each of the scales", self.dim)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """The signatures with each column standardized, as the authors do before they compare them.

        They differ by parts in n of numbers near one, which neither single precision nor a cosine would see.
        """
        matrix = checked(graph)
        placed = np.flatnonzero(matrix.sum(axis=1))
        vectors = np.zeros((matrix.shape[0], self.dim), np.float32)
        if len(placed):
            signatures = self.signatures(matrix[placed][:, placed])
            signatures -= signatures.mean(axis=0)
            spread = signatures.std(axis=0)
            vectors[placed] = signatures / np.where(spread > TOLERANCE / len(placed), spread, np.inf)
        return vectors

    def signatures(self, graph: csr_array) -> NDArray[np.float64]:
        """The characteristic function of each vertex's wavelet, scale by scale: all real parts, then all imaginary.

        Every vertex must have an edge.
        """
        scaled = diags_array(1 / np.sqrt(graph.sum(axis=1)))
        operator = csr_array(scaled @ graph @ scaled)
        series = coefficients(heat_scales(operator, self.scales, self.seed))
        vertices = operator.shape[0]
        result = np.empty((vertices, self.dim))
        work = partial(self._sample, operator, series, result)
        for_each_block(work, vertices, size=max(ENTRIES // vertices, 1), threads=self.threads)
        return result

    def _sample(
        self, operator: csr_array, series: NDArray[np.float64], result: NDArray[np.float64], begin: int, end: int
    ) -> None:
        samples = np.array_split(np.arange(self.dim // 2), self.scales)
        for wavelet, columns in zip(wavelets(operator, series, begin, end), samples, strict=True):
            values = characteristic(wavelet, len(columns))
            result[begin:end, columns] = values.real
            result[begin:end, self.dim // 2 + columns] = values.imag


def heat_scales(operator: csr_array, count: int, seed: int = 0) -> NDArray[np.float64]:
    """Scales between the shortest and the longest of use, from the Laplacian's λ₂ and λ_N: −ln(kept) / √(λ₂ λ_N).

    Of the largest component: each further one would bring a λ₂ of zero.
    """
    component = connected_components(operator, directed=False)[1]
    largest = np.flatnonzero(component == np.bincount(component).argmax())
    second, last = _ends(operator[largest][:, largest], seed)
    return np.linspace(-np.log(LEAST), -np.log(MOST), count) / np.sqrt(second * last)


def _ends(operator: csr_array, seed: int) -> tuple[float, float]:
    """λ₂ and λ_N of the Laplacian of a connected graph, from its normalized adjacency."""
    vertices = operator.shape[0]
    if vertices <= 64:
        values = np.linalg.eigvalsh(operator.toarray())
        return max(1 - values[-2], TOLERANCE) if vertices > 1 else 1.0, max(1 - values[0], TOLERANCE)
    begin = np.random.default_rng(seed).standard_normal(vertices)
    find = partial(eigsh, operator, v0=begin, ncv=64, tol=1e-6, return_eigenvectors=False)
    top, bottom = find(k=2, which="LA"), find(k=1, which="SA")
    return max(1 - top.min(), TOLERANCE), 1 - bottom[0]


def coefficients(scales: NDArray[np.float64]) -> NDArray[np.float64]:
    """The Chebyshev series of exp(−s (1 − x)) for x in [−1, 1], a row per scale, as long as the longest needs."""
    order = np.arange(2 * int(scales.max()) + 60)
    series = np.where(order > 0, 2.0, 1.0) * ive(order, scales[:, None])
    return series[:, : np.flatnonzero((series > TOLERANCE).any(axis=0)).max() + 1]


def wavelets(operator: csr_array, series: NDArray[np.float64], begin: int, end: int) -> NDArray[np.float64]:
    """The columns `begin` to `end` of the heat kernel at each scale, by the Chebyshev recurrence."""
    before = np.zeros((operator.shape[0], end - begin))
    now = np.eye(operator.shape[0], end - begin, -begin)
    result = series[:, 0, None, None] * now
    for order, weights in enumerate(series.T[1:]):
        before, now = now, (2 if order else 1) * (operator @ now) - before
        for scale, weight in enumerate(weights):
            result[scale] += weight * now
    return result


def characteristic(wavelet: NDArray[np.float64], points: int) -> NDArray[np.complex128]:
    """The mean of exp(i t ψ) over each column, at evenly spaced t: powers of the first, a row per column."""
    turn = np.exp(1j * (REACH / points) * wavelet)
    power, values = np.ones_like(turn), np.empty((wavelet.shape[1], points), np.complex128)
    for point in range(points):
        power *= turn
        values[:, point] = power.mean(axis=0)
    return values
