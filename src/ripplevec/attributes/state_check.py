"""Checks of saved attributes before they are restored: the arrays come from files and may contain anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import FormatError

Arrays = Mapping[str, NDArray[Any]]


def check_attributes(state: Arrays, rows: int, columns: int, refresh_end: int | None = None) -> None:
    """Check the saved attributes of a graph with this many rows; raise `FormatError` if they cannot be restored.

    `refresh_end` is the largest position of a refresh; by default the number of rows.

    Kernels do not check indices: every attribute of a kept row must have a row of the basis.
    """
    size = len(_array(state, "projection_sums", np.float64, (None, 4)))
    for name in ("basis", "products"):
        _array(state, f"projection_{name}", np.float32, (size, columns))
    _array(state, "projection_gram", np.float64, (2, columns, columns))
    maps = _array(state, "projection_maps", np.float64, (None, columns, columns))
    total, learned, position = _array(state, "projection_counters", np.float64, (3,)).tolist()
    kind = _read_kind(_array(state, "projection_description", np.uint8, (None,)))
    _array(state, "parts", np.float32, (rows, columns))
    status = _array(state, "status", np.uint8, (rows,))
    counters = _array(state, "counters", np.int64, (4,))
    names = len(_array(state, "projection_names_end", np.int64, (None,)))
    names = names if kind == "sparse" else size
    _reject_if(names != size, "as many names as attributes do not exist")
    _reject_if(len(maps) not in (0, 3), "a refit has some of its maps")
    _reject_if(not (-1 <= position <= size and 0 <= learned <= size and total >= 0), "a counter is out of range")
    _reject_if((status > 2).any(), "an unknown status")
    refresh_end = rows if refresh_end is None else refresh_end
    _reject_if((counters < -1).any() or counters[2] > refresh_end, "a counter is out of range")
    weight = _array(state, "weight", np.float64, (None,))
    _reject_if(not weight.size or weight[0] <= 0, "the weight is not positive")
    _check_kept(state, rows, size)


def _read_kind(description: NDArray[np.uint8]) -> str | None:
    try:
        described = json.loads(description.tobytes())
    except ValueError as error:
        raise FormatError("attributes: the description is not JSON") from error
    _reject_if(not isinstance(described, dict) or described.keys() != {"kind", "labels"}, "an unknown description")
    _reject_if(described["kind"] not in (None, "sparse", "dense"), "an unknown kind of attributes")
    kind: str | None = described["kind"]
    return kind


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
