"""Checks of saved attributes before they are restored: the arrays come from files and may contain anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes._kernels import OWN
from ripplevec.attributes.input import MAX_VALUE
from ripplevec.errors import FormatError

Arrays = Mapping[str, NDArray[Any]]
MAX_ROWS = 2.0**53  # rows counted
MAX_NUMBER = 2.0**60  # coordinates and products: sums over many rows stay within single precision
MAX_SCALE = 1e50  # of a column of dense attributes: the inverse of its standard deviation


def check_attributes(
    state: Arrays, rows: int, columns: int, refresh_end: int | None = None, kept_from: int | None = None
) -> None:
    """Check the saved attributes of a graph with this many rows; raise `FormatError` if they cannot be restored.

    `refresh_end` is the largest position of a refresh; by default the number of rows. `kept_from` is the number of rows
    at a refit from which attributes need not be kept; by default this is not checked, as on one of several shards.

    Kernels do not check indices: every attribute of a kept row must have a row of the basis.
    """
    size = len(_array(state, "projection_sums", np.float64, (None, 4)))
    for name in ("basis", "products"):
        _array(state, f"projection_{name}", np.float32, (size, columns))
    _array(state, "projection_gram", np.float64, (2, columns, columns))
    maps = _array(state, "projection_maps", np.float64, (None, columns, columns))
    total, learned, position = _array(state, "projection_counters", np.float64, (3,)).tolist()
    kind = _read_kind(_array(state, "projection_description", np.uint8, (None,)), size)
    parts = _array(state, "parts", np.float32, (rows, columns))
    status = _array(state, "status", np.uint8, (rows,))
    counters = _array(state, "counters", np.int64, (4,))
    names = len(_array(state, "projection_names_end", np.int64, (None,)))
    names = names if kind == "sparse" else size
    _reject_if(names != size, "as many names as attributes do not exist")
    _reject_if(len(maps) not in (0, 3), "a refit has some of its maps")
    inside = -1 <= position <= size and 0 <= learned <= size and 0 <= total <= MAX_ROWS
    _reject_if(not (inside and learned.is_integer() and total.is_integer()), "a counter is out of range")
    _reject_if((status > 2).any(), "an unknown status")
    for array in (parts[status == OWN], state["projection_basis"], state["projection_products"]):
        _reject_if((np.abs(array) > MAX_NUMBER).any(), "a number is too large")
    for array in (state["projection_gram"], maps):
        _reject_if((np.abs(array) > MAX_NUMBER**2).any(), "a number is too large")
    refresh_end = rows if refresh_end is None else refresh_end
    _reject_if((counters < -1).any() or counters[2] > refresh_end, "a counter is out of range")
    weight = _array(state, "weight", np.float64, (None,))
    _reject_if(not weight.size or weight[0] <= 0, "the weight is not positive")
    _check_kept(state, rows, size)
    _check_sums(state["projection_sums"], kind, total, np.bincount(state["kept_columns"], minlength=size))
    if kept_from is not None:
        owners = np.flatnonzero(status == OWN)
        _reject_if(counters[0] != owners.size, "another number of vertices with attributes")
        lengths = np.diff(state["kept_begin"])
        _reject_if(bool(np.delete(lengths, owners).any()), "attributes of a vertex that has none")
        must_keep = counters[1] < kept_from and owners.size > 0
        complete = lengths[owners] == size if kind == "dense" else lengths[owners] > 0
        _reject_if(must_keep and not complete.all(), "attributes of some vertices are missing")


def _check_sums(sums: NDArray[np.float64], kind: str | None, total: float, kept: NDArray[np.int64]) -> None:
    """Check the statistics of attributes: numbers of rows, or sums, sums of squares, means and scales of values."""
    if kind == "sparse":
        inside = (sums[:, 0] >= kept) & (sums[:, 0] <= total)
    else:
        sum_, squares, mean, scale = sums.T
        largest = (total + 1) * MAX_VALUE  # one more: after removals, rounding errors are left
        inside = (np.abs(sum_) <= largest) & (np.abs(squares) <= largest * MAX_VALUE)
        inside &= (np.abs(mean) <= MAX_VALUE) & (scale >= 0) & (scale <= MAX_SCALE)
    _reject_if(not inside.all(), "a sum of attributes is out of range")


def _read_kind(description: NDArray[np.uint8], size: int) -> str | None:
    try:
        described = json.loads(description.tobytes())
    except (ValueError, RecursionError) as error:
        raise FormatError("attributes: the description is not JSON") from error
    _reject_if(not isinstance(described, dict) or described.keys() != {"kind", "labels"}, "an unknown description")
    _reject_if(described["kind"] not in (None, "sparse", "dense"), "an unknown kind of attributes")
    kind, labels = described["kind"], described["labels"]
    _reject_if(not isinstance(labels, list) or not all(isinstance(label, str) for label in labels), "unknown labels")
    _reject_if(bool(labels) and (kind != "dense" or len(labels) != size), "as many labels as columns do not exist")
    _reject_if(kind is None and size > 0, "attributes without a kind")
    return None if kind is None else str(kind)


def _check_kept(state: Arrays, rows: int, size: int) -> None:
    begin = _array(state, "kept_begin", np.int64, (rows + 1,))
    columns = _array(state, "kept_columns", np.int32, (None,))
    _array(state, "kept_values", np.float32, (columns.size,))
    _reject_if(begin[0] != 0 or begin[-1] != columns.size or (np.diff(begin) < 0).any(), "kept rows overlap")
    _reject_if(bool(columns.size) and not 0 <= columns.min() <= columns.max() < size, "a kept attribute is unknown")


def _array(state: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return a saved array of this type and shape, all finite; None stands for any length."""
    array = state[name] if name in state else np.empty(0, np.bool_)
    fits = array.ndim == len(shape) and all(e in (None, n) for e, n in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        expected = f"{np.dtype(dtype)} of shape {shape}"
        raise FormatError(f"attributes: expected {name} as {expected}, got {array.dtype} of shape {array.shape}")
    _reject_if(array.dtype.kind == "f" and not np.isfinite(array).all(), f"{name} is not finite")
    return array


def _reject_if(condition: bool | np.bool_, reason: str) -> None:
    if condition:
        raise FormatError(f"attributes: {reason}")
