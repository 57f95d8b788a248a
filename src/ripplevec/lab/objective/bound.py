"""The least homophily loss there can be: by Ky Fan, the sum of the k smallest eigenvalues of D − A.

No F with FᵀF = I and k columns has a smaller tr Fᵀ(D − A)F, and the eigenvectors reach it. With the smoothness loss,
which is not negative, γ_h times this is a bound of the whole objective too: one that knows nothing of the state before.

The eigenvalues of a graph are those of its components put together. Taking the components one by one finds values
that many small ones share, which an iteration on the whole graph may count once.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import lobpcg

DENSE = 3_000  # vertices: a component up to this size is solved as a dense matrix, in seconds
ITERATIONS, TOLERANCE = 400, 1e-5  # of LOBPCG on larger ones; the values are far better than the vectors
GUARD = 10  # more columns than wanted, because the last ones converge slowly


def least_homophily(adjacency: csr_array, columns: int) -> float:
    """The sum of the `columns` smallest eigenvalues of D − A."""
    return float(smallest_eigenvalues(adjacency, columns).sum())


def smallest_eigenvalues(adjacency: csr_array, count: int) -> NDArray[np.float64]:
    """The smallest eigenvalues of D − A, ascending: fewer where the graph has fewer vertices."""
    number, component = connected_components(adjacency, directed=False)
    order = np.argsort(component, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(component, minlength=number))[:-1])
    found = [_of_component(csr_array(adjacency[part][:, part]), count) for part in parts if part.size > 1]
    alone = np.zeros(sum(part.size == 1 for part in parts))
    return np.sort(np.concatenate([alone, *found]))[:count]


def _of_component(adjacency: csr_array, count: int) -> NDArray[np.float64]:
    size = adjacency.shape[0]
    count = min(count, size)
    matrix = csr_array(laplacian(adjacency.astype(np.float64)))
    if size <= max(DENSE, 5 * (count + GUARD)):
        values = eigh(matrix.toarray(), eigvals_only=True, subset_by_index=[0, count - 1])
    else:
        values = np.concatenate([[0.0], _iterated(matrix, count - 1)])
    return np.maximum(values, 0.0)  # what rounding puts below zero is zero


def _iterated(matrix: csr_array, count: int) -> NDArray[np.float64]:
    """The smallest eigenvalues of a large component but the first, by LOBPCG; the degrees are its preconditioner."""
    if not count:
        return np.empty(0)
    size = matrix.shape[0]
    start = np.random.default_rng(0).standard_normal((size, count + GUARD))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the guard columns need not converge
        values, _ = lobpcg(
            matrix,
            start,
            M=diags_array(1 / matrix.diagonal()),
            Y=np.full((size, 1), size**-0.5),
            largest=False,
            maxiter=ITERATIONS,
            tol=TOLERANCE * float(matrix.diagonal().max()),
        )
    return np.sort(values)[:count]
