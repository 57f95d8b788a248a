"""Low-rank projection of attributes: weights of rows, the basis they are projected on, and its update.

The basis V spans the leading right singular vectors of (I + S) X, where X are the weighted rows and S is the normalized
adjacency matrix: directions in which neighbors agree count more. It is learned once by subspace iteration. Every later
row x adds x (xV + 4 sV) to the products C ≈ Xᵀ (I + S)² XV, where sV is the sum over its neighbors. So a refit,
V ← orthonormalized C, is one more step of the same iteration that does not need the rows. It is divided into slices of
a few attributes each, and the new basis is rotated to agree best with the old one: parts computed with either of them
can be compared.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array

from ripplevec.attributes import _kernels as kernels
from ripplevec.batch import AttributeRows
from ripplevec.graph.graph import strip_prefix
from ripplevec.graph.id_table import IdTable
from ripplevec.util.growable_array import GrowableArray, next_capacity
from ripplevec.util.parallel import limit_blas_to_one_thread

Kind = Literal["sparse", "dense"]
Part = NDArray[np.float32]

GUARD_COLUMNS = 10  # extra columns of the subspace iteration, because the last ones converge slowly
LEARN_STEPS, RELEARN_STEPS = 6, 2  # steps from a random basis, and from a learned one
NEIGHBOR_SHARE = 4.0  # weight of the neighbors in the products: an edge is counted in 2S, once instead of twice
SLICE_ATTRIBUTES = 128  # attributes per slice of a refit
RANK_TOLERANCE = 1e-9  # squared lengths below this share of the largest count as rank deficiency
NEW_NAME_LENGTH = 0.05  # length of the random direction of an unseen name, relative to the mean of learned ones


class Projection:
    """Projection of rows of attributes to `columns` numbers."""

    def __init__(self, columns: int, seed: int) -> None:
        self.columns, self.seed = columns, seed
        self.kind: Kind | None = None  # set by the first rows
        self.names = IdTable()  # of sparse attributes
        self.labels: list[Any] = []  # of dense attributes: the names of columns, if they have names
        self.total = 0.0  # rows counted
        self._basis = GrowableArray(np.float32, (columns,))
        self._products = GrowableArray(np.float32, (columns,))
        self._sums = GrowableArray(np.float64, (4,))  # count, or sum, sum of squares, mean and scale
        self.learned_names = 0  # attributes when the basis was learned
        self.position = -1  # progress of a refit, in attributes; −1: no refit
        self._gram = np.zeros((2, columns, columns))
        self._maps: NDArray[np.float64] | None = None  # of a refit; see `_refit_maps`

    @property
    def size(self) -> int:
        """Number of attributes seen."""
        return self.names.row_count if self.kind == "sparse" else len(self.sums)

    @property
    def basis(self) -> Part:
        """The basis, one row per attribute."""
        return self._basis.array

    @property
    def products(self) -> Part:
        """Sums over all rows of the outer product of the row and its projection."""
        return self._products.array

    @property
    def sums(self) -> NDArray[np.float64]:
        """Statistics per attribute."""
        return self._sums.array

    @property
    def learned(self) -> bool:
        """Whether there is a basis."""
        return self.learned_names > 0

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.basis.nbytes + self.products.nbytes + self.sums.nbytes + self.names.nbytes

    # ------------------------------------------------------------------ checks and names

    def check(self, rows: AttributeRows) -> None:
        """Raise `InvalidValueError` if rows are not of the kind or the width of the rows before."""
        if self.kind is not None:
            rows.check_like(self.kind, self.size if self.kind == "dense" else None, self.labels)

    def enter_columns(self, rows: AttributeRows) -> NDArray[np.int32]:
        """Return the attribute of every value. Names that were never seen get a small random direction."""
        self.kind = rows.kind
        if rows.names is None:
            self.labels = self.labels or rows.labels
            self._grow(rows.values.shape[1])
            return np.arange(self.size, dtype=np.int32)
        found = self.names.find_rows(rows.names)
        if found.size and found.min() < 0:
            before = self.size
            found = self.names.intern(rows.names, rows.names)[0]
            self._grow(self.size)
            if self.learned:
                kernels.fill_random_directions(self.basis[before : self.size], before, self.seed, self._unseen_length)
        return found.astype(np.int32)[rows.columns]

    def _grow(self, attributes: int) -> None:
        """Grow to this many attributes."""
        known = len(self.basis)
        if attributes > known:
            capacity = attributes if self.kind == "dense" else next_capacity(known, attributes, self._basis.row_bytes)
            for array in (self._basis, self._products, self._sums):
                array.grow(capacity)

    @property
    def _unseen_length(self) -> float:
        return float(NEW_NAME_LENGTH * np.sqrt(self.columns / self.learned_names))

    # ------------------------------------------------------------------ rows

    def count(self, columns: NDArray[np.int32], values: Part, sign: int = 1) -> None:
        """Count one row in the statistics, or remove it from them (sign −1)."""
        self.total += sign
        if self.kind == "sparse":
            self.sums[columns, 0] += sign
        else:
            wide = values.astype(np.float64)
            self.sums[:, 0] += sign * wide
            self.sums[:, 1] += sign * wide * wide

    def count_all(self, rows: int, columns: NDArray[np.int32], values: Part) -> None:
        """Count rows in the statistics."""
        self.total += rows
        if self.kind == "sparse":
            self.sums[: self.size, 0] += np.bincount(columns, minlength=self.size)
        else:
            self.sums[:, 0] += values.sum(axis=0, dtype=np.float64)
            self.sums[:, 1] += np.einsum("ij,ij->j", values, values, dtype=np.float64)

    def weigh(self, columns: NDArray[np.int32], values: Part) -> Part:
        """Return the weights of one row: tf-idf or standardized values, scaled to length one."""
        weights = np.empty(values.size, np.float32)
        if self.kind == "sparse":
            kernels.weigh_counts(columns, values, self.sums[:, 0], self.total, weights)
        else:
            kernels.standardize(values, self.sums[:, 2], self.sums[:, 3], weights)
        return weights

    def project(self, columns: NDArray[np.int32], values: Part, neighbors: Part | None = None) -> Part:
        """Return the projection of one row.

        If the normalized sum of its neighbors is given, the next refit takes the row into account.
        """
        part, weights = np.empty(self.columns, np.float32), self.weigh(columns, values)
        kernels.project_row(columns, weights, self.basis, part)
        if neighbors is not None:
            smoothed = part + np.float32(NEIGHBOR_SHARE) * neighbors
            kernels.add_products(columns, weights, smoothed, self.products)
        return part

    def preview(self, rows: AttributeRows) -> Part:
        """Return the projection that the first of these rows would have, without entering its names."""
        if rows.names is None:
            return self.project(np.arange(self.size, dtype=np.int32), rows.values[0])
        values = rows.values[: rows.begin[1]]
        columns = self.names.find_rows(rows.names)[rows.columns[: values.size]]
        known = columns >= 0
        counts, directions = np.zeros(values.size), np.empty((values.size, self.columns), np.float32)
        counts[known], directions[known] = self.sums[columns[known], 0], self.basis[columns[known]]
        unseen = np.empty((values.size - int(known.sum()), self.columns), np.float32)
        kernels.fill_random_directions(unseen, self.size, self.seed, self._unseen_length)
        directions[~known] = unseen
        entries, weights = np.arange(values.size, dtype=np.int32), np.empty(values.size, np.float32)
        part = np.empty(self.columns, np.float32)
        kernels.weigh_counts(entries, values, counts, self.total, weights)
        kernels.project_row(entries, weights, directions, part)
        return part

    # ------------------------------------------------------------------ learning

    def learn(
        self, begin: NDArray[np.int64], columns: NDArray[np.int32], values: Part, adjacency: csr_array | None = None
    ) -> Part:
        """Learn the basis from counted rows and the normalized adjacency matrix between them; return projections."""
        self.set_scales()
        rows = self._weigh_all(begin, columns, values)
        adjacency = csr_array((rows.shape[0], rows.shape[0]), dtype=np.float32) if adjacency is None else adjacency
        with limit_blas_to_one_thread():
            width = min(self.columns + GUARD_COLUMNS, *rows.shape)
            start, steps = self._start_basis(width)
            basis = np.zeros((self.size, self.columns))
            found = iterate_subspace(rows, adjacency, start, steps)[:, : self.columns]
            basis[:, : found.shape[1]] = found
            missing = np.linalg.norm(basis, axis=0) < 0.5
            basis += self._random_rows(0, self.size) * missing
            if self.learned:
                basis = basis @ _nearest_rotation(basis.T @ self.basis[: self.size].astype(np.float64))
        self.basis[: self.size] = basis
        self.learned_names = self.size
        parts: Part = (rows @ self.basis[: self.size]).astype(np.float32)
        self.products[: self.size] = rows.T @ _smooth(adjacency, _smooth(adjacency, parts))
        self.position, self._maps = -1, None
        return parts

    def _start_basis(self, width: int) -> tuple[NDArray[np.float64], int]:
        """Return columns to begin the subspace iteration with, and the number of steps."""
        random = np.empty((self.size, width), np.float32)
        kernels.fill_random_directions(random, 0, self.seed, 1.0)
        if not self.learned:
            return random.astype(np.float64), LEARN_STEPS
        known = min(self.columns, width)
        random[:, :known] = self.basis[: self.size, :known]
        return random.astype(np.float64), RELEARN_STEPS

    def _random_rows(self, first: int, last: int) -> NDArray[np.float64]:
        """Return small random rows, for columns without a direction: rows that arrive later may give them one."""
        rows = np.empty((last - first, self.columns), np.float32)
        length = NEW_NAME_LENGTH * np.sqrt(self.columns / max(self.size, 1))
        kernels.fill_random_directions(rows, first, self.seed + 1, length)
        return rows.astype(np.float64)

    def set_scales(self) -> None:
        """Set the mean and the scale of every dense attribute to those of the rows counted so far."""
        if self.kind != "dense" or not self.total:
            return
        mean = self.sums[:, 0] / self.total
        variance = np.maximum(self.sums[:, 1] / self.total - mean * mean, 0.0)
        constant = variance <= 1e-12 * (mean * mean + 1e-300)
        self.sums[:, 2] = mean
        self.sums[:, 3] = np.where(constant, 0.0, 1.0 / np.sqrt(np.where(constant, 1.0, variance)))

    def _weigh_all(self, begin: NDArray[np.int64], columns: NDArray[np.int32], values: Part) -> Any:
        """Return the weighted rows as a matrix."""
        if self.kind == "dense":
            weights = np.empty((len(values), self.size), np.float32)
            kernels.standardize_all(values, self.sums[:, 2], self.sums[:, 3], weights)
            return weights
        flat = np.empty(values.size, np.float32)
        kernels.weigh_all_counts(begin, columns, values, self.sums[:, 0], self.total, flat)
        return csr_array((flat, columns, begin), shape=(begin.size - 1, self.size))

    # ------------------------------------------------------------------ refit in slices

    def begin_refit(self) -> None:
        """Begin a refit of the basis."""
        self.position, self._maps = 0, None
        self._gram[:] = 0.0
        self.set_scales()

    def advance_refit(self, slices: int) -> bool:
        """Process some slices of a refit; return whether it is complete."""
        while slices > 0 and self.position >= 0:
            self._process_slice()
            slices -= 1
        return self.position < 0

    def _process_slice(self) -> None:
        """Sum the products of some attributes in the first pass; replace them in the second."""
        part = slice(self.position, min(self.position + SLICE_ATTRIBUTES, self.size))
        products = self.products[part].astype(np.float64)
        with limit_blas_to_one_thread():
            if self._maps is None:
                self._gram[0] += products.T @ products
                self._gram[1] += self.basis[part].astype(np.float64).T @ products
            else:
                random = self._random_rows(part.start, part.stop) @ self._maps[2]
                self.basis[part], self.products[part] = products @ self._maps[0] + random, products @ self._maps[1]
            self.position = part.stop
            if self.position >= self.size:
                self._end_pass()

    def _end_pass(self) -> None:
        if self._maps is not None:
            self.position, self._maps = -1, None
            self.learned_names = self.size
        else:
            self.position, self._maps = 0, _refit_maps(*self._gram)

    # ------------------------------------------------------------------ saving

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays."""
        described = {"kind": self.kind, "labels": self.labels}
        return {
            "description": np.frombuffer(json.dumps(described).encode(), np.uint8).copy(),
            "basis": self.basis[: self.size].copy(),
            "products": self.products[: self.size].copy(),
            "sums": self.sums[: self.size].copy(),
            "counters": np.array([self.total, self.learned_names, self.position]),
            "gram": self._gram.copy(),
            "maps": np.empty((0, self.columns, self.columns)) if self._maps is None else self._maps.copy(),
            **{f"names_{name}": array for name, array in self.names.state().items()},
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays of `state`."""
        described = json.loads(state["description"].tobytes())
        self.kind, self.labels = described["kind"], described["labels"]
        self.names = IdTable.from_state(strip_prefix("names_", state))
        size = len(state["sums"])
        self.total, learned_names, position = state["counters"].tolist()
        self.learned_names, self.position = int(learned_names), int(position)
        for array, name in ((self._basis, "basis"), (self._products, "products"), (self._sums, "sums")):
            array.grow(size)[:size] = state[name]
        self._gram = state["gram"].copy()
        self._maps = state["maps"].copy() if len(state["maps"]) else None


def iterate_subspace(matrix: Any, adjacency: csr_array, basis: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Return orthonormal columns that span about the leading right singular vectors of (I + S) X, strongest first."""
    for _ in range(steps):
        image = _smooth(adjacency, _smooth(adjacency, matrix @ basis))
        basis = _orthonormalize(np.asarray(matrix.T @ image, np.float64))
    image = np.asarray(_smooth(adjacency, matrix @ basis), np.float64)
    _, vectors = eigh(image.T @ image)
    return basis @ vectors[:, ::-1]


def _smooth(adjacency: csr_array, rows: NDArray[Any]) -> NDArray[Any]:
    return rows + adjacency @ rows


def _orthonormalize(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return orthonormal columns with the same span; zero columns where the rank is deficient."""
    return columns @ _inverse_root(columns.T @ columns)


def _inverse_root(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a matrix A with AᵀGA = I on the range of the positive semidefinite matrix G."""
    values, vectors = eigh(gram)
    keep = values > RANK_TOLERANCE * max(values[-1], 1e-300)
    scales = np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
    return vectors * scales


def _nearest_rotation(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the orthogonal matrix R that maximizes the trace of RᵀP: P is `new.T @ old`, and new @ R is near old."""
    left, _, right = np.linalg.svd(products)
    return left @ right


def _refit_maps(gram: NDArray[np.float64], overlap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the maps from products C to the new basis V' = CA, and to its products C' = XᵀXV' = CB.

    `gram` is CᵀC, and `overlap` is VᵀC. XᵀX is approximated by C (VᵀC)⁻¹ Cᵀ, which agrees with it on the old basis. The
    third map is that of random rows, which are added to columns without a direction.
    """
    root = _inverse_root(gram)
    rotation = _nearest_rotation(root.T @ overlap.T)
    to_basis = root @ rotation
    inverse = np.linalg.pinv((overlap + overlap.T) / 2, rcond=1e-6, hermitian=True)
    missing = np.abs(root).max(axis=0) == 0
    return np.stack([to_basis, inverse @ gram @ to_basis, missing[:, None] * rotation])
