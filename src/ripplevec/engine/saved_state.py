"""Checks of a saved state before it is restored: the arrays come from files, and may hold anything.

Kernels trust indices and sizes. So whatever they would follow is looked at here first, in one pass each.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from ripplevec.batch import MAX_TIME
from ripplevec.engine.counters import COUNTERS
from ripplevec.errors import FormatError, RipplevecError
from ripplevec.graph import _check_kernels as kernels
from ripplevec.graph._check_kernels import GraphPart, SavedEdges
from ripplevec.graph._id_kernels import FREE
from ripplevec.graph._edge_kernels import EXACT_SUM_DEGREE
from ripplevec.graph.adjacency import SUM_TOLERANCE
from ripplevec.graph.graph import strip_prefix
from ripplevec.influence.cached_cascade import CachedCascade
from ripplevec.rules.base import Rule
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.ripple import RippleRule
from ripplevec.temporal.decay import RESCALE_HALF_LIVES
from ripplevec.temporal.edge_aging import EdgeAging

Arrays = Mapping[str, NDArray[Any]]
LARGEST_COUNT = 2**53
"""No counter and no arrival number of a real state gets this far."""

LARGEST_COORDINATE = 2.0**60
"""No coordinate of a real state gets this far; squares of larger ones overflow single precision."""

LARGEST_SUM = 2.0**120
"""Nor do means over weights, of which the largest are 1e30."""

_NOT_ORTHOGONAL = 1e-6
_AT_ONCE = 16_384  # rows
_FAULTS = {
    kernels.BAD_NEIGHBOR: "a neighbor is not a row of the graph",
    kernels.SELF_LOOP: "a vertex is its own neighbor",
    kernels.DUPLICATE_NEIGHBOR: "a neighbor stands twice",
    kernels.BAD_WEIGHT: "a weight is not a positive finite number",
    kernels.BAD_DIRECTIONS: "the weights of the two directions do not add up",
    kernels.BAD_STRENGTH: "a strength is not the sum of the weights",
    kernels.BAD_IN_STRENGTH: "an in-strength is not the sum of the incoming weights",
}


MALFORMED_STATE_ERRORS = (ArithmeticError, AttributeError, LookupError, RipplevecError, TypeError, ValueError)
"""What values of the wrong kind in a saved model may raise, beside the checks here."""


def check_dim(parameters: Mapping[str, Any], arrays: Arrays) -> None:
    """Refuse a dimension that the vectors do not have, before anything is made for it."""
    shape, dim = arrays["vectors"].shape if "vectors" in arrays else (), parameters["dim"]
    if shape and (len(shape) != 2 or shape[1] != dim):
        raise FormatError(f"vectors: expected {dim} columns, got shape {shape}")


def check_state(state: Arrays, *, dim: int, directed: bool, rule: Rule, aging: EdgeAging | None) -> None:
    """Refuse arrays that are not the state of a model with these parameters, with a FormatError that says why."""
    rows, next_arrival = check_graph(strip_prefix("graph_", dict(state)), directed)
    check_vectors(state, rows, dim, rule.precision)
    _check_free_rows(state)
    sequence = check_counters(state.get("counters"))
    _check_rule(strip_prefix("rule_", dict(state)), rule, rows, next_arrival)
    if aging is not None:
        _check_edge_aging(strip_prefix("memory_", dict(state)), aging, rows, next_arrival)
    if pending := strip_prefix("pending_", dict(state)):
        _check_pending(pending, rule, rows, next_arrival, sequence)


def check_shards(shards: Sequence[Arrays], own: Arrays, *, directed: bool, rule: RippleRule) -> None:
    """Refuse arrays that are not the state of a model on shards: what each shard holds, and what the driver knows."""
    next_arrival = _number(own, "next_arrival")
    graphs = [strip_prefix("graph_", dict(shard)) for shard in shards]
    rows = np.array([check_rows(graph, directed, next_arrival) for graph in graphs], np.int64)
    key, balance = secrets.randbits(64), 0
    for number, (graph, shard) in enumerate(zip(graphs, shards, strict=True)):
        balance += check_ends(graph, directed, GraphPart(rows, number), key)
        check_vectors(shard, int(rows[number]), rule.dim, rule.precision)
        _check_free_rows(shard)
        _refuse(_number(shard, "edges") > graph["edges_neighbor"].size, "a shard counts more edges than it has ends")
    check_balance(balance)
    numbers = np.sort(np.concatenate([graph["arrival"][graph["arrival"] >= 0] for graph in graphs]))
    _refuse((np.diff(numbers) == 0).any(), "two vertices have the same arrival number")
    check_counters(own.get("counters"))
    _check_coordinates(strip_prefix("rule_", dict(own)), rule.dim)


def check_graph(graph: Arrays, directed: bool) -> tuple[int, int]:
    """Check names, arrival numbers and edges of a whole graph; its rows, and its next arrival number."""
    next_arrival = _number(graph, "next_arrival")
    rows = check_rows(graph, directed, next_arrival)
    balance = check_ends(graph, directed, GraphPart(np.array([rows]), 0), secrets.randbits(64))
    check_balance(balance)
    return rows, next_arrival


def check_rows(graph: Arrays, directed: bool, next_arrival: int) -> int:
    """Check the columns that have a value per row; the number of rows."""
    ends = _column(graph, "ids_end", np.int64)
    rows = ends.size
    arrival = _column(graph, "arrival", np.int64, rows)
    _column(graph, "edges_degree", np.int32, rows)
    for name in ("strength", "in_strength") if directed else ("strength",):
        _column(graph, f"edges_{name}", np.float64, rows)
    _refuse((arrival < -1).any() or (arrival >= next_arrival).any(), "an arrival number is out of range")
    _refuse(not np.array_equal(arrival < 0, ends == FREE), "a row has a name and no vertex, or a vertex and no name")
    live = arrival[arrival >= 0]
    ordered = live if (np.diff(live) > 0).all() else np.sort(live)
    _refuse((np.diff(ordered) == 0).any(), "two vertices have the same arrival number")
    _check_text(graph)
    return rows


def check_ends(graph: Arrays, directed: bool, part: GraphPart, key: int) -> int:
    """Check the edges of a graph, or of a part of it; what has to add up to zero over all parts with the same key."""
    degree = graph["edges_degree"]
    _refuse((degree < 0).any(), "a degree is negative")
    size = int(degree.sum(dtype=np.int64))
    neighbor = _column(graph, "edges_neighbor", np.int32, size)
    weight = _column(graph, "edges_weight", np.float32, size)
    outgoing = incoming = weight
    strength = in_strength = graph["edges_strength"]
    if directed:
        outgoing, incoming = (_column(graph, f"edges_{way}", np.float32, size) for way in ("outgoing", "incoming"))
        in_strength = graph["edges_in_strength"]
    edges = SavedEdges(degree, strength, in_strength, neighbor, weight, outgoing, incoming)
    seen = np.full(int(part.row_counts.max(initial=0)) * part.row_counts.size, -1, np.int64)
    fault, row, balance = kernels.check_edges(edges, part, seen, EXACT_SUM_DEGREE, SUM_TOLERANCE, np.uint64(key), directed)
    if fault != kernels.OK:
        raise FormatError(f"the saved state is damaged: {_FAULTS[fault]} (row {row:,})")
    return int(balance)


def check_balance(balance: int) -> None:
    """Refuse edges whose ends, over all parts, do not come in equal pairs."""
    _refuse(balance % 2**64 != 0, "an edge is known to one end only, or differs between its ends")


def check_vectors(state: Arrays, rows: int, dim: int, precision: DTypeLike) -> None:
    """Check the vectors, and which rows have one."""
    _bounded(_matrix(state, "vectors", precision, (rows, dim)), "vectors")
    placed = _column(state, "placed", np.uint8, rows)
    _refuse((placed > 1).any(), "placed is neither 0 nor 1")


def check_counters(counters: NDArray[Any] | None) -> int:
    """Check the counters; the sequence number."""
    if counters is None or counters.dtype != np.int64 or counters.shape != (len(COUNTERS),):
        raise FormatError(f"the saved state is damaged: counters: expected {len(COUNTERS)} whole numbers, got others")
    _refuse((counters < 0).any() or (counters > LARGEST_COUNT).any(), "a counter is out of range")
    return int(counters[COUNTERS.index("sequence")])


def _check_free_rows(state: Arrays) -> None:
    free = state["graph_arrival"] < 0
    _refuse(bool(state["graph_edges_degree"][free].any()), "a free row has edges")
    _refuse(bool(state["placed"][free].any()), "a free row has a vector")


def _check_text(graph: Arrays) -> None:
    """Check that texts are UTF-8, and that the integers among them need to be there; spans are checked by `Ids`."""
    keys, ends = _column(graph, "ids_key", np.int64, graph["ids_end"].size), graph["ids_end"]
    text = _column(graph, "ids_text", np.uint8)
    _column(graph, "ids_free", np.int64)
    spans = ends >= 0
    begins, stops = keys[spans], ends[spans]
    bounds = np.concatenate([np.zeros(1, np.int64), stops])
    packed = np.array_equal(begins, bounds[:-1]) and (np.diff(bounds) >= 0).all() and bounds[-1] == text.size
    _refuse(not packed, "names do not fill the text they lie in")
    data = text.tobytes() if (text == 0xFF).any() else b""
    if not data:
        names = pa.LargeStringArray.from_buffers(
            len(stops), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(text))
        )
        try:
            names.validate(full=True)
        except pa.ArrowInvalid as error:
            raise FormatError(f"the saved state is damaged: a name is not UTF-8 ({error})") from error
        return
    for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True):
        _refuse(not _is_name(data[begin:stop]), "a name is neither UTF-8 nor an integer of more than 64 bits")


def _is_name(name: bytes) -> bool:
    if name[:1] != b"\xff":
        try:
            name.decode()
        except UnicodeDecodeError:
            return False
        return True
    value = int.from_bytes(name[1:], "little", signed=True)
    return not -(2**63) <= value < 2**63 and len(name) == value.bit_length() // 8 + 2


def _check_rule(learned: Arrays, rule: Rule, rows: int, next_arrival: int) -> None:
    if isinstance(rule, RippleRule):
        _check_coordinates(learned, rule.dim)
    elif isinstance(rule, PaperRule):
        units = _column(learned, "units", np.int64, 2)
        _refuse(not (0 <= units[0] <= rule.dim and units[1] in (0, 1)), "units are out of range")
        _finite(_matrix(learned, "initial_gram", np.float64, (rule.dim, rule.dim)), "initial_gram")
        if isinstance(rule.cascade, CachedCascade):
            _check_cascade(strip_prefix("cascade_", dict(learned)), rule.cascade.stored_rounds + 1, rows, next_arrival)


def _check_coordinates(learned: Arrays, dim: int) -> None:
    """Check what a rule has learned of its views; that it fits them is checked by `Coordinates`."""
    sums, coordinates = ("tau", "center"), ("mu", "longest")
    for name in sums + coordinates:
        limit = LARGEST_SUM if name in sums else LARGEST_COORDINATE
        _bounded(_column(learned, name, np.float64), name, limit)
    for name in ("tau", "longest"):
        _refuse((learned[name] < 0).any(), f"{name} is negative")
    mean_degree = _scalar(learned, "mean_degree", np.float64)
    _refuse(not (np.isfinite(mean_degree) and mean_degree >= 0), "mean_degree is not a finite number")
    for name in ("ready", *(("bipartite",) if "bipartite" in learned else ())):
        _scalar(learned, name, np.bool_)
    if "turn" in learned:
        turn = _finite(_matrix(learned, "turn", np.float64, (dim, dim)), "turn")
        apart = np.abs(turn.T @ turn - np.eye(dim)).max(initial=0.0)
        _refuse(not apart < _NOT_ORTHOGONAL, "turn is not orthogonal")


def _check_cascade(sets: Arrays, columns: int, rows: int, next_arrival: int) -> None:
    """Check stored influenced sets: who they belong to, and that they lie side by side in `members`."""
    owner = _column(sets, "owner", np.int64)
    made = _column(sets, "made", np.int64, owner.size)
    begin = _matrix(sets, "begin", np.int64, (owner.size, columns))
    members = _column(sets, "members", np.int64)
    used = _number(sets, "used")
    _refuse(used > members.size, "influenced sets: more members are used than there are")
    _refuse((owner < -1).any() or (owner >= next_arrival).any(), "influenced sets: an owner is out of range")
    _refuse((owner[rows:] >= 0).any(), "influenced sets: an owner has no row")
    _refuse((made < 0).any() or (made > next_arrival).any(), "influenced sets: an age is out of range")
    _refuse((members[:used] < 0).any() or (members[:used] >= rows).any(), "influenced sets: a member is no row")
    kept = begin[owner >= 0]
    inside = kept.size == 0 or (kept.min() >= 0 and kept.max() <= used)
    _refuse(not inside or (np.diff(kept, axis=1) < 0).any(), "influenced sets: a set lies outside of the members")
    kept = kept[kept[:, 0] < kept[:, -1]]
    kept = kept[np.argsort(kept[:, 0], kind="stable")]
    _refuse((kept[1:, 0] < kept[:-1, -1]).any(), "influenced sets: two sets overlap")


def _check_edge_aging(kept: Arrays, aging: EdgeAging, rows: int, next_arrival: int) -> None:
    clock = _finite(_column(kept, "clock", np.float64), "clock")
    _refuse(clock.size not in (0, 2) or (np.abs(clock) > MAX_TIME).any(), "clock: expected two times, or none")
    now = float(clock[1] - clock[0]) if clock.size else 0.0
    _refuse(now < 0, "clock: the latest time lies before the first")
    if aging.decay is not None:
        decay = _finite(_column(kept, "decay", np.float64, 3), "decay")
        height = now / aging.decay.half_life - decay[0]
        _refuse((decay < 0).any() or not -2 <= height <= RESCALE_HALF_LIVES + 1, "decay does not fit the clock")
    if aging.window is not None:
        _check_window(strip_prefix("window_", dict(kept)), aging.window.directed, rows, next_arrival)


def _check_window(window: Arrays, directed: bool, rows: int, next_arrival: int) -> None:
    latest = _finite(_column(window, "latest", np.float64), "window")
    numbers, ends = (_matrix(window, name, np.int64, (latest.size, 2)) for name in ("numbers", "ends"))
    _refuse((numbers < 0).any() or (numbers >= next_arrival).any(), "window: an arrival number is out of range")
    _refuse((ends < 0).any() or (ends >= rows).any(), "window: an end is not a row of the graph")
    first, second = numbers[:, 0], numbers[:, 1]
    _refuse((first == second).any() or (not directed and (first > second).any()), "window: ends are out of order")
    later = (np.diff(first) > 0) | ((np.diff(first) == 0) & (np.diff(second) > 0))
    _refuse(not later.all(), "window: edges are out of order, or one stands twice")


def _check_pending(pending: Arrays, rule: Rule, rows: int, next_arrival: int, sequence: int) -> None:
    """Check a correction on its way, and which rows every batch since its beginning has touched."""
    if not isinstance(rule, RippleRule):
        raise FormatError("the saved state is damaged: a correction is on its way that the rule does not know")
    touched = strip_prefix("touched_", dict(pending))
    since, until = _column(touched, "batches", np.int64, 2).tolist()
    _refuse(not 0 <= since <= sequence or not 0 <= until <= LARGEST_COUNT, "pending batches")
    sizes = _column(touched, "sizes", np.int64, sequence - since)
    at, numbers = _column(touched, "rows", np.int64), _column(touched, "arrival", np.int64)
    whole = not (sizes < 0).any() and (sizes <= at.size).all() and int(sizes.sum()) == at.size == numbers.size
    _refuse(not whole, "pending rows: sizes do not add up")
    _refuse((at < 0).any() or (at >= rows).any(), "pending rows: a row is not one of the graph")
    arrival = _column(pending, "arrival", np.int64)
    _refuse(arrival.size > rows, "pending rows: there are more than the graph has")
    _refuse(_number(pending, "next_arrival") > next_arrival, "pending rows: an arrival number is out of range")
    _column(pending, "edged", np.bool_, arrival.size)
    _bounded(_matrix(pending, "rows", rule.precision, (arrival.size, rule.dim)), "pending rows")
    _check_coordinates(pending, rule.dim)


def _refuse(wrong: Any, what: str) -> None:
    if wrong:
        raise FormatError(f"the saved state is damaged: {what}")


def _array(arrays: Arrays, name: str, kind: DTypeLike) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype != np.dtype(kind):
        got = "nothing" if array is None else f"{array.dtype}"
        raise FormatError(f"the saved state is damaged: {name}: expected {np.dtype(kind)}, got {got}")
    return array


def _matrix(arrays: Arrays, name: str, kind: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    array = _array(arrays, name, kind)
    if array.shape != shape:
        raise FormatError(f"the saved state is damaged: {name}: expected shape {shape}, got {array.shape}")
    return array


def _column(arrays: Arrays, name: str, kind: DTypeLike, size: int | None = None) -> NDArray[Any]:
    array = _array(arrays, name, kind)
    return _matrix(arrays, name, kind, (array.size if size is None else size,))


def _scalar(arrays: Arrays, name: str, kind: DTypeLike) -> Any:
    return _matrix(arrays, name, kind, ())[()]


def _number(arrays: Arrays, name: str) -> int:
    value = int(_scalar(arrays, name, np.int64))
    _refuse(not 0 <= value <= LARGEST_COUNT, f"{name} is out of range")
    return value


def _finite(array: NDArray[Any], name: str) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise FormatError(f"the saved state is damaged: {name}: expected finite numbers, got others")
    return array


def _bounded(array: NDArray[Any], name: str, limit: float = LARGEST_COORDINATE) -> None:
    """Refuse numbers that are not finite or far too large; looked at in parts, to need little memory."""
    for first in range(0, len(array), _AT_ONCE):
        part = array[first : first + _AT_ONCE]
        if part.size and not (-limit <= float(part.min()) and float(part.max()) <= limit):  # NaN is neither
            raise FormatError(f"the saved state is damaged: {name}: expected numbers up to {limit:.0e}, got others")
