"""Kernels that multiply a few rows by a small matrix, or by each other, without BLAS: a whole slice needs one call.

Every entry is summed in a fixed order (of columns or rows). The result therefore does not depend on how rows are
divided into calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.numba_intrinsics import allocation_free, multiply_add

ROWS_AT_ONCE = 4  # rows that are multiplied by a matrix together, so that its entries are loaded once for all


@allocation_free(inner=True)
def multiply_rows(
    rows: NDArray[np.float32],
    matrix: NDArray[np.float32],
    inputs: tuple[int, int],
    outputs: tuple[int, int],
    result: NDArray[np.float32],
) -> None:
    """Write result[q, j] = Σᵢ rows[q, i] · matrix[i, j] for `ROWS_AT_ONCE` (four) rows and ranges of i and j."""
    a, b, c, d = rows[0], rows[1], rows[2], rows[3]
    w, x, y, z = result[0], result[1], result[2], result[3]
    first, last, i = np.uint64(outputs[0]), np.uint64(outputs[1]), inputs[0]
    for j in range(first, last):
        w[j], x[j], y[j], z[j] = 0, 0, 0, 0
    while i + 4 <= inputs[1]:  # unrolled by four: the results are loaded and stored a quarter as often
        m, n, o, p = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        b0, b1, b2, b3 = b[i], b[i + 1], b[i + 2], b[i + 3]
        c0, c1, c2, c3 = c[i], c[i + 1], c[i + 2], c[i + 3]
        d0, d1, d2, d3 = d[i], d[i + 1], d[i + 2], d[i + 3]
        for j in range(first, last):
            mj, nj, oj, pj = m[j], n[j], o[j], p[j]
            w[j] = multiply_add(a3, pj, multiply_add(a2, oj, multiply_add(a1, nj, multiply_add(a0, mj, w[j]))))
            x[j] = multiply_add(b3, pj, multiply_add(b2, oj, multiply_add(b1, nj, multiply_add(b0, mj, x[j]))))
            y[j] = multiply_add(c3, pj, multiply_add(c2, oj, multiply_add(c1, nj, multiply_add(c0, mj, y[j]))))
            z[j] = multiply_add(d3, pj, multiply_add(d2, oj, multiply_add(d1, nj, multiply_add(d0, mj, z[j]))))
        i += 4
    while i < inputs[1]:
        m = matrix[i]
        for j in range(first, last):
            w[j] = multiply_add(a[i], m[j], w[j])
            x[j] = multiply_add(b[i], m[j], x[j])
            y[j] = multiply_add(c[i], m[j], y[j])
            z[j] = multiply_add(d[i], m[j], z[j])
        i += 1


@allocation_free(inner=True)
def add_products(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    columns: tuple[int, int],
    upper: bool,
    total: NDArray[np.float64],
) -> None:
    """Add Σᵣ left[r, i] · right[r, j] to total[i, j] for a range of columns.

    With `upper`, only the upper triangle is complete: of most entries below the diagonal, none is added. Four lines of
    the total at a time stay in the nearest cache while all rows are added.
    """
    i = columns[0]
    while i + 4 <= columns[1]:
        _add_to_four_lines(left, right, i, (i if upper else columns[0], columns[1]), total)
        i += 4
    for line in range(i, columns[1]):
        _add_to_line(left, right, line, (line if upper else columns[0], columns[1]), total)


@allocation_free(inner=True)
def _add_to_line(
    left: NDArray[np.float64], right: NDArray[np.float64], i: int, columns: tuple[int, int], total: NDArray[np.float64]
) -> None:
    """Add Σᵣ left[r, i] · right[r, j] to total[i, j] for a range of j."""
    first, last, out = np.uint64(columns[0]), np.uint64(columns[1]), total[i]
    for r in range(len(left)):
        a, m = left[r, i], right[r]
        for j in range(first, last):
            out[j] = multiply_add(a, m[j], out[j])


@allocation_free(inner=True)
def _add_to_four_lines(
    left: NDArray[np.float64], right: NDArray[np.float64], i: int, columns: tuple[int, int], total: NDArray[np.float64]
) -> None:
    """Do the same for lines i to i + 3 and, as long as there are as many, four rows at a time."""
    r, first, last = 0, np.uint64(columns[0]), np.uint64(columns[1])
    w, x, y, z = total[i], total[i + 1], total[i + 2], total[i + 3]
    while r + 4 <= len(left):
        m, n, o, p = right[r], right[r + 1], right[r + 2], right[r + 3]
        a0, a1, a2, a3 = left[r, i], left[r + 1, i], left[r + 2, i], left[r + 3, i]
        b0, b1, b2, b3 = left[r, i + 1], left[r + 1, i + 1], left[r + 2, i + 1], left[r + 3, i + 1]
        c0, c1, c2, c3 = left[r, i + 2], left[r + 1, i + 2], left[r + 2, i + 2], left[r + 3, i + 2]
        d0, d1, d2, d3 = left[r, i + 3], left[r + 1, i + 3], left[r + 2, i + 3], left[r + 3, i + 3]
        for j in range(first, last):
            mj, nj, oj, pj = m[j], n[j], o[j], p[j]
            w[j] = multiply_add(a3, pj, multiply_add(a2, oj, multiply_add(a1, nj, multiply_add(a0, mj, w[j]))))
            x[j] = multiply_add(b3, pj, multiply_add(b2, oj, multiply_add(b1, nj, multiply_add(b0, mj, x[j]))))
            y[j] = multiply_add(c3, pj, multiply_add(c2, oj, multiply_add(c1, nj, multiply_add(c0, mj, y[j]))))
            z[j] = multiply_add(d3, pj, multiply_add(d2, oj, multiply_add(d1, nj, multiply_add(d0, mj, z[j]))))
        r += 4
    while r < len(left):
        m = right[r]
        for j in range(first, last):
            w[j] = multiply_add(left[r, i], m[j], w[j])
            x[j] = multiply_add(left[r, i + 1], m[j], x[j])
            y[j] = multiply_add(left[r, i + 2], m[j], y[j])
            z[j] = multiply_add(left[r, i + 3], m[j], z[j])
        r += 1
