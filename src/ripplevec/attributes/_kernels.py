"""Kernels of attributes: weights of a row, its projection, the products that update the projection, neighbor means."""

from __future__ import annotations

import numpy as np
from numba import uint64
from numpy.typing import NDArray

from ripplevec.graph._block_kernels import Links
from ripplevec.influence._kernels import draw_uniform, mix
from ripplevec.util.numba_intrinsics import kernel

OWN = 1  # status of a vertex with attributes


@kernel(inner=True)
def inverse_frequency(count: float, total: float) -> float:
    """Return the factor by which values of a rare attribute count more."""
    return np.log((1.0 + total) / (1.0 + count)) + 1.0


@kernel
def weigh_counts(
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    counts: NDArray[np.float64],
    total: float,
    weights: NDArray[np.float32],
) -> None:
    """Fill in the tf-idf weights of one sparse row, scaled to length one."""
    square = 0.0
    for entry in range(columns.size):
        weight = values[entry] * inverse_frequency(counts[columns[entry]], total)
        square += weight * weight
    scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0  # may exceed single precision, unlike the scaled weights
    for entry in range(columns.size):
        weights[entry] = values[entry] * inverse_frequency(counts[columns[entry]], total) * scale


@kernel
def standardize(
    values: NDArray[np.float32], mean: NDArray[np.float64], scale: NDArray[np.float64], weights: NDArray[np.float32]
) -> None:
    """Fill in the standardized values of one dense row, scaled to length one."""
    square = 0.0
    for column in range(values.size):
        weight = (values[column] - mean[column]) * scale[column]
        square += weight * weight
    length = np.sqrt(square) if square > 0.0 else 1.0  # may exceed single precision, unlike the scaled weights
    for column in range(values.size):
        weights[column] = (values[column] - mean[column]) * scale[column] / length


@kernel
def weigh_all_counts(
    begin: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    counts: NDArray[np.float64],
    total: float,
    weights: NDArray[np.float32],
) -> None:
    """Fill in the tf-idf weights of sparse rows."""
    for row in range(begin.size - 1):
        first, last = begin[row], begin[row + 1]
        weigh_counts(columns[first:last], values[first:last], counts, total, weights[first:last])


@kernel
def standardize_all(
    values: NDArray[np.float32], mean: NDArray[np.float64], scale: NDArray[np.float64], weights: NDArray[np.float32]
) -> None:
    """Fill in the standardized values of dense rows."""
    for row in range(len(values)):
        standardize(values[row], mean, scale, weights[row])


@kernel
def project_row(
    columns: NDArray[np.int32], weights: NDArray[np.float32], basis: NDArray[np.float32], part: NDArray[np.float32]
) -> None:
    """Fill in the product of one row of weights and the basis."""
    part[:] = 0.0
    for entry in range(columns.size):
        weight, direction = weights[entry], basis[columns[entry]]
        for column in range(part.size):
            part[column] += weight * direction[column]


@kernel
def add_products(
    columns: NDArray[np.int32], weights: NDArray[np.float32], part: NDArray[np.float32], products: NDArray[np.float32]
) -> None:
    """Add the outer product of a row of weights and its projection to the products."""
    for entry in range(columns.size):
        weight, target = weights[entry], products[columns[entry]]
        for column in range(part.size):
            target[column] += weight * part[column]


@kernel
def fill_random_directions(rows: NDArray[np.float32], first: int, seed: int, length: float) -> None:
    """Fill in random rows of about this length: hashes of the seed, the number of the row and the column."""
    scale = length * np.sqrt(3.0 / rows.shape[1])
    key = mix(uint64(seed))
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            rows[row, column] = scale * (2.0 * draw_uniform(key, first + row, column) - 1.0)


@kernel
def mean_of_neighbors(
    links: Links,
    row: int,
    status: NDArray[np.uint8],
    parts: NDArray[np.float32],
    limit: int,
    part: NDArray[np.float32],
) -> bool:
    """Fill in the weighted mean direction of the latest neighbors with attributes; return whether there are any."""
    begin, end = links.begin[row], links.begin[row] + links.degree[row]
    part[:] = 0.0
    found = False
    for slot in range(max(begin, end - limit), end):
        found |= add_direction(status, parts, links.neighbor[slot], links.weight[slot], part)
    return found


@kernel
def sum_of_neighbors(
    links: Links,
    row: int,
    status: NDArray[np.uint8],
    parts: NDArray[np.float32],
    limit: int,
    part: NDArray[np.float32],
) -> None:
    """Fill in the sum of the parts of the latest neighbors with attributes, divided by the roots of both strengths."""
    begin, end = links.begin[row], links.begin[row] + links.degree[row]
    part[:] = 0.0
    for slot in range(max(begin, end - limit), end):
        neighbor = links.neighbor[slot]
        if status[neighbor] == OWN:
            scale = np.float32(links.weight[slot] / np.sqrt(links.strength[row] * links.strength[neighbor]))
            for column in range(part.size):
                part[column] += scale * parts[neighbor, column]


@kernel
def mean_of_rows(
    rows: NDArray[np.int64],
    weights: NDArray[np.float32],
    status: NDArray[np.uint8],
    parts: NDArray[np.float32],
    part: NDArray[np.float32],
) -> bool:
    """Fill in the weighted mean direction of those rows that have attributes; return whether there are any."""
    part[:] = 0.0
    found = False
    for entry in range(rows.size):
        found |= add_direction(status, parts, rows[entry], weights[entry], part)
    return found


@kernel
def add_direction(
    status: NDArray[np.uint8],
    parts: NDArray[np.float32],
    row: int,
    weight: float,
    part: NDArray[np.float32],
) -> bool:
    """Add the direction of a row with attributes, times a weight; return whether it has attributes."""
    if status[row] != OWN:
        return False
    square = 0.0
    for column in range(part.size):
        square += np.float64(parts[row, column]) ** 2  # of weighted sums: may exceed single precision
    if square == 0.0:
        return False
    scale = weight / np.sqrt(square)
    for column in range(part.size):
        part[column] += np.float32(scale * parts[row, column])
    return True


@kernel
def join_rows(edge: NDArray[np.float32], parts: NDArray[np.float32], weight: float, out: NDArray[np.float32]) -> None:
    """Fill in rows [edge part | weight × unit attribute part], scaled to length one; edge parts have length 0 or 1."""
    middle = edge.shape[1]
    for row in range(len(edge)):
        square_edge, square_part = 0.0, 0.0
        for column in range(middle):
            square_edge += np.float64(edge[row, column]) ** 2
        for column in range(parts.shape[1]):
            square_part += np.float64(parts[row, column]) ** 2
        scale_edge = 1.0 / np.sqrt(square_edge) if square_edge > 0.0 else 0.0
        scale_part = weight / np.sqrt(square_part) if square_part > 0.0 else 0.0
        length = np.sqrt((1.0 if scale_edge > 0.0 else 0.0) + (weight * weight if scale_part > 0.0 else 0.0))
        if length > 0.0:
            scale_edge, scale_part = scale_edge / length, scale_part / length
        for column in range(middle):
            out[row, column] = scale_edge * edge[row, column]
        for column in range(parts.shape[1]):
            out[row, middle + column] = scale_part * parts[row, column]
