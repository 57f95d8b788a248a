"""FastRP (Chen et al., 2019): powers of the transition matrix times a very sparse random matrix."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, random_array

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.base import as_weight_matrix, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class FastRP:
    """FastRP: the vectors are P³ B + w P⁴ B, where P is the transition matrix and B = diag(d^β) R.

    R is a random projection with entries ± 1 of density 1 / √n, scaled so that lengths are kept on average. The paper
    gives no weight to the first two powers and tunes w (`fourth_weight`) and β (`degree_power`, −1 to 0): below zero,
    vertices of high degree count less. Columns are standardized, as in the authors' program.
    """

    dim: int = 128
    fourth_weight: float = 1.0
    degree_power: int | float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self)
        if not isinstance(self.degree_power, Real) or not -1 <= self.degree_power <= 0:
            raise InvalidValueError.of("FastRP.degree_power", "a number from -1 to 0", self.degree_power)

    def embed(self, graph: csr_array) -> NDArray[np.float32]:
        """Project the powers; return a vector per row, zero for vertices without edges."""
        matrix = as_weight_matrix(graph)
        degrees = np.asarray(matrix.sum(axis=1)).ravel()
        linked = degrees > 0
        inverse = np.divide(1.0, degrees, where=linked, out=np.zeros_like(degrees))
        transition = csr_array(diags_array(inverse) @ matrix)
        scale = np.power(degrees, self.degree_power, where=linked, out=np.zeros_like(degrees))
        rows = (diags_array(scale) @ self._projection(degrees.size)).toarray()
        for _ in range(3):
            rows = transition @ rows
        rows += self.fourth_weight * (transition @ rows)
        return _standardize(rows, linked).astype(np.float32)

    def _projection(self, size: int) -> csr_array:
        """Return a matrix of random signs with density 1 / √n."""
        generator = np.random.default_rng(self.seed)
        density = 1 / np.sqrt(max(size, 1))

        def signs(size: int | tuple[int, ...]) -> NDArray[np.float64]:
            return generator.choice([-1.0, 1.0], size) / np.sqrt(density * self.dim)

        return csr_array(random_array((size, self.dim), density=density, rng=generator, data_sampler=signs))


def _standardize(rows: NDArray[np.float64], linked: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the rows of linked vertices with mean zero and variance one in every column; other rows are zero."""
    if not linked.any():
        return rows
    centered = np.where(linked[:, None], rows - rows[linked].mean(axis=0), 0.0)
    deviation = rows[linked].std(axis=0)
    return centered / np.where(deviation > 0, deviation, 1.0)
