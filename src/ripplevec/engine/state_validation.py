"""Checks of a saved state before it is restored: the arrays come from files and may contain anything.

Kernels do not check indices and sizes. Everything that they rely on is checked here first, in one pass per array.
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
from ripplevec.graph._edge_kernels import EXACT_SUM_DEGREE
from ripplevec.graph._id_kernels import FREE
from ripplevec.graph.adjacency import SUM_TOLERANCE
from ripplevec.graph.graph import strip_prefix
from ripplevec.influence.cascade import CachedCascade
from ripplevec.rules.base import Rule
from ripplevec.rules.correction_workspace import count_spare_columns
from ripplevec.rules.device_correction import SNAPSHOT_PREFIX, kind_of_correction
from ripplevec.rules.gradual_correction import (
    MAX_FRESH_PASSES,
    STAGES,
    GradualCorrection,
    describe_saved_arrays,
    describe_saved_blocks,
    is_correction,
)
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.ripple import RippleRule
from ripplevec.rules.scaled_filter import even_degree
from ripplevec.temporal.decay import RESCALE_HALF_LIVES
from ripplevec.temporal.edge_aging import EdgeAging
from ripplevec.views.graph_sample import MAX_VERTICES
from ripplevec.views.recipes import Recipes
from ripplevec.views.view_choice import read_recipe

Arrays = Mapping[str, NDArray[Any]]
MAX_COUNT = 2**53
"""Upper bound of counters and arrival numbers: no real state reaches it."""

MAX_COORDINATE = 2.0**60
"""Upper bound of coordinates: no real state reaches it, and squares of larger ones overflow single precision."""

MAX_WEIGHTED_MEAN = 2.0**120
"""Upper bound of coordinates averaged with edge weights, which are at most 1e30."""

_ORTHOGONALITY_TOLERANCE = 1e-6
_BLOCK_ROWS = 16_384  # rows checked at a time
_EDGE_FAULTS = {
    kernels.BAD_NEIGHBOR: "a neighbor is not a row of the graph",
    kernels.SELF_LOOP: "a vertex is its own neighbor",
    kernels.DUPLICATE_NEIGHBOR: "a neighbor occurs twice",
    kernels.BAD_WEIGHT: "a weight is not a positive finite number",
    kernels.BAD_DIRECTIONS: "the weights of the two directions do not add up",
    kernels.BAD_STRENGTH: "a strength is not the sum of the weights",
    kernels.BAD_IN_STRENGTH: "an in-strength is not the sum of the incoming weights",
}

_COMMON_NUMBERS = (
    "stage",
    "passes",
    "since",
    "fresh",
    "ready",
    "filter_step",
    "column_part",
    "column_parts",
    "stopped_early",
    "waited",
    "solve_cost",
    "first_new",
    "planned_rows",
)
"""Numbers of a gradual correction that are equal on all shards; otherwise, they would wait for each other."""

MALFORMED_STATE_ERRORS = (ArithmeticError, AttributeError, LookupError, RipplevecError, TypeError, ValueError)
"""Exceptions that a malformed saved state may raise: from the checks here, or where a wrong value is first used."""


def check_dim(parameters: Mapping[str, Any], arrays: Arrays) -> None:
    """Check that the dimension matches the vectors, before anything of that size is created."""
    shape, dim = arrays["vectors"].shape if "vectors" in arrays else (), parameters["dim"]
    columns = parameters.get("attribute_dim", "auto")
    dim -= 0 if columns == "auto" else columns
    if shape and (len(shape) != 2 or shape[1] != dim):
        raise FormatError(f"vectors: expected {dim} columns, got shape {shape}")


def check_state(state: Arrays, *, dim: int, directed: bool, rule: Rule, aging: EdgeAging | None) -> None:
    """Check that arrays are the state of a model with these parameters; raise `FormatError` if not."""
    rows, next_arrival = check_graph(strip_prefix("graph_", dict(state)), directed)
    check_vectors(state, rows, dim, rule.precision)
    _check_free_rows(state)
    sequence = check_counters(state.get("counters"))
    _check_rule(strip_prefix("rule_", dict(state)), rule, rows, next_arrival)
    if aging is not None:
        _check_edge_aging(strip_prefix("memory_", dict(state)), aging, rows, next_arrival)
    if is_correction(pending := strip_prefix("pending_", dict(state))):
        _check_correction(pending, rule, rows, next_arrival, sequence)


def check_shards(
    shards: Sequence[Arrays], driver: Arrays, *, dim: int, directed: bool, rule: Rule, aging: EdgeAging | None
) -> None:
    """Check the arrays of a sharded model, those of each shard and those of the driver."""
    next_arrival = _get_count(driver, "next_arrival")
    graphs = [strip_prefix("graph_", dict(shard)) for shard in shards]
    rows = np.array([check_rows(graph, directed, next_arrival) for graph in graphs], np.int64)
    key, balance = secrets.randbits(64), 0
    for number, (graph, shard) in enumerate(zip(graphs, shards, strict=True)):
        balance += check_edges(graph, directed, GraphPart(rows, number), key)
        check_vectors(shard, int(rows[number]), dim, rule.precision)
        _check_free_rows(shard)
        if aging is not None and aging.window is not None:
            _check_window(strip_prefix("window_", dict(shard)), directed, GraphPart(rows, number), next_arrival)
    check_balance(balance)
    _check_edge_counts(shards, graphs, directed)
    numbers = np.sort(np.concatenate([graph["arrival"][graph["arrival"] >= 0] for graph in graphs]))
    _reject_if((np.diff(numbers) == 0).any(), "two vertices have the same arrival number")
    sequence = check_counters(driver.get("counters"))
    _check_correction_on_shards(shards, driver, rule, rows.tolist(), next_arrival, sequence)
    row_codes = int(rows.max(initial=0)) * len(shards)
    _check_rule(strip_prefix("rule_", dict(driver)), rule, row_codes, next_arrival)
    if aging is not None:
        _check_clock(strip_prefix("memory_", dict(driver)), aging)


def _check_edge_counts(shards: Sequence[Arrays], graphs: Sequence[Arrays], directed: bool) -> None:
    """Check the number of edges. A shard that lost edges which others counted may have a negative count."""
    counted = sum(int(_get_scalar(shard, "edges", np.int64)) for shard in shards)
    endpoints = sum(
        int((graph["edges_outgoing"] > 0).sum()) if directed else graph["edges_neighbor"].size for graph in graphs
    )
    _reject_if(counted * (1 if directed else 2) != endpoints, "shards count more or fewer edges than they have")


def check_graph(graph: Arrays, directed: bool) -> tuple[int, int]:
    """Check ids, arrival numbers and edges of a graph; return its number of rows and its next arrival number."""
    next_arrival = _get_count(graph, "next_arrival")
    rows = check_rows(graph, directed, next_arrival)
    balance = check_edges(graph, directed, GraphPart(np.array([rows]), 0), secrets.randbits(64))
    check_balance(balance)
    return rows, next_arrival


def check_rows(graph: Arrays, directed: bool, next_arrival: int) -> int:
    """Check the columns with one value per row; return the number of rows."""
    ends = _get_column(graph, "ids_end", np.int64)
    rows = ends.size
    arrival = _get_column(graph, "arrival", np.int64, rows)
    _get_column(graph, "edges_degree", np.int32, rows)
    for name in ("strength", "in_strength") if directed else ("strength",):
        _get_column(graph, f"edges_{name}", np.float64, rows)
    _reject_if((arrival < -1).any() or (arrival >= next_arrival).any(), "an arrival number is out of range")
    _reject_if(not np.array_equal(arrival < 0, ends == FREE), "a row has an id and no vertex, or a vertex and no id")
    live = arrival[arrival >= 0]
    ordered = live if (np.diff(live) > 0).all() else np.sort(live)
    _reject_if((np.diff(ordered) == 0).any(), "two vertices have the same arrival number")
    check_ids(strip_prefix("ids_", dict(graph)))
    return rows


def check_edges(graph: Arrays, directed: bool, part: GraphPart, key: int) -> int:
    """Check the edges of a graph, or of one part of it; return the balance of the part.

    An edge adds a hash with this key to the balance at one endpoint and subtracts it at the other. The balances of all
    parts add up to zero modulo 2⁶⁴ if every edge is stored equally at both endpoints.
    """
    degree = graph["edges_degree"]
    _reject_if((degree < 0).any(), "a degree is negative")
    size = int(degree.sum(dtype=np.int64))
    neighbor = _get_column(graph, "edges_neighbor", np.int32, size)
    weight = _get_column(graph, "edges_weight", np.float32, size)
    outgoing = incoming = weight
    strength = in_strength = graph["edges_strength"]
    if directed:
        outgoing, incoming = (
            _get_column(graph, f"edges_{direction}", np.float32, size) for direction in ("outgoing", "incoming")
        )
        in_strength = graph["edges_in_strength"]
    edges = SavedEdges(degree, strength, in_strength, neighbor, weight, outgoing, incoming)
    seen = np.full(int(part.row_counts.max(initial=0)) * part.row_counts.size, -1, np.int64)
    fault, row, balance = kernels.check_edges(
        edges, part, seen, EXACT_SUM_DEGREE, SUM_TOLERANCE, np.uint64(key), directed
    )
    if fault != kernels.OK:
        raise FormatError(f"the saved state is damaged: {_EDGE_FAULTS[fault]} (row {row:,})")
    return int(balance)


def check_balance(balance: int) -> None:
    """Check that, over all parts, every edge is stored equally at both of its endpoints."""
    _reject_if(balance % 2**64 != 0, "an edge is stored at one endpoint only, or differs between its endpoints")


def check_vectors(state: Arrays, rows: int, dim: int, precision: DTypeLike) -> None:
    """Check the vectors, and the flags of rows that have one."""
    _check_bounded(_get_matrix(state, "vectors", precision, (rows, dim)), "vectors")
    placed = _get_column(state, "placed", np.uint8, rows)
    _reject_if((placed > 1).any(), "placed is neither 0 nor 1")


def check_counters(counters: NDArray[Any] | None) -> int:
    """Check the counters; return the sequence number."""
    if counters is None or counters.dtype != np.int64 or counters.shape != (len(COUNTERS),):
        got = "nothing" if counters is None else f"{counters.dtype} of shape {counters.shape}"
        raise FormatError(f"the saved state is damaged: counters: expected {len(COUNTERS)} values of int64, got {got}")
    _reject_if((counters < 0).any() or (counters > MAX_COUNT).any(), "a counter is out of range")
    return int(counters[COUNTERS.index("sequence")])


def _check_free_rows(state: Arrays) -> None:
    free = state["graph_arrival"] < 0
    _reject_if(bool(state["graph_edges_degree"][free].any()), "a free row has edges")
    _reject_if(bool(state["placed"][free].any()), "a free row has a vector")


def check_ids(ids: Arrays) -> None:
    """Check that ids are UTF-8 text, or integers of more than 64 bits. `IdTable` checks their positions."""
    ends = _get_column(ids, "end", np.int64)
    keys, text = _get_column(ids, "key", np.int64, ends.size), _get_column(ids, "text", np.uint8)
    _get_column(ids, "free", np.int64)
    in_buffer = ends >= 0  # the others are 64-bit integers, or rows without an id
    begins, stops = keys[in_buffer], ends[in_buffer]
    bounds = np.concatenate([np.zeros(1, np.int64), stops])
    packed = np.array_equal(begins, bounds[:-1]) and (np.diff(bounds) >= 0).all() and bounds[-1] == text.size
    _reject_if(not packed, "ids do not fill the text buffer")
    data = text.tobytes() if (text == 0xFF).any() else b""
    if not data:
        texts = pa.LargeStringArray.from_buffers(
            len(stops), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(text))
        )
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            raise FormatError(f"the saved state is damaged: an id is not UTF-8 ({error})") from error
        return
    for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True):
        _reject_if(not _is_encoded_id(data[begin:stop]), "an id is neither UTF-8 nor an integer of more than 64 bits")


def _is_encoded_id(encoded: bytes) -> bool:
    """Return whether bytes are UTF-8 text, or 0xFF followed by an integer of more than 64 bits."""
    if encoded[:1] != b"\xff":
        try:
            encoded.decode()
        except UnicodeDecodeError:
            return False
        return True
    value = int.from_bytes(encoded[1:], "little", signed=True)
    return not -(2**63) <= value < 2**63 and len(encoded) == value.bit_length() // 8 + 2


def _check_rule(arrays: Arrays, rule: Rule, rows: int, next_arrival: int) -> None:
    if isinstance(rule, RippleRule):
        _check_coordinates(arrays, rule.dim, rule.recipes)
    elif isinstance(rule, PaperRule):
        units = _get_column(arrays, "units", np.int64, 2)
        _reject_if(not (0 <= units[0] <= rule.dim and units[1] in (0, 1)), "units are out of range")
        _check_finite(_get_matrix(arrays, "initial_gram", np.float64, (rule.dim, rule.dim)), "initial_gram")
        if isinstance(rule.cascade, CachedCascade):
            _check_cascade(strip_prefix("cascade_", dict(arrays)), rule.cascade.stored_rounds + 1, rows, next_arrival)


def _check_choice_of_views(arrays: Arrays, recipes: Recipes) -> None:
    """Check which of the recipes was chosen, and the sample of a choice in progress; or the density that decided."""
    if "recipe" not in arrays:
        mean_degree = _get_scalar(arrays, "mean_degree", np.float64)
        _reject_if(not (np.isfinite(mean_degree) and mean_degree >= 0), "mean_degree is not a finite number")
        if "bipartite" in arrays:
            _get_scalar(arrays, "bipartite", np.bool_)
        return
    read_recipe(_get_column(arrays, "recipe", np.uint8), recipes)
    _get_count(arrays, "recipe_edges")
    scores = _check_finite(_get_column(arrays, "recipe_scores", np.float64), "recipe_scores")
    _reject_if(scores.size not in (0, len(recipes)), "recipe_scores: expected one for each recipe")
    if "sample_pairs" in arrays:
        vertices, weights = _get_count(arrays, "sample_vertices"), _get_column(arrays, "sample_weights", np.float32)
        pairs = _get_matrix(arrays, "sample_pairs", np.int64, (weights.size, 2))
        valid = pairs.size == 0 or (pairs.min() >= 0 and pairs.max() < vertices)
        _reject_if(vertices > MAX_VERTICES or not valid, "sample_pairs: a vertex is out of range")
        _reject_if((pairs[:, 0] >= pairs[:, 1]).any(), "sample_pairs: a pair is not in order")
        _reject_if(not (np.isfinite(weights) & (weights > 0)).all(), "sample_weights: not a positive number")


def _check_coordinates(arrays: Arrays, dim: int, recipes: Recipes) -> None:
    """Check the coordinates of a rule. `Coordinates` checks that they fit its views."""
    weighted, coordinates = ("tau", "center"), ("mu", "longest")
    for name in weighted + coordinates:
        limit = MAX_WEIGHTED_MEAN if name in weighted else MAX_COORDINATE
        _check_bounded(_get_column(arrays, name, np.float64), name, limit)
    if "lowest" in arrays:
        lowest = _get_column(arrays, "lowest", np.float64)
        _reject_if(not ((lowest >= -1) & (lowest <= 1)).all(), "lowest is out of range")
    for name in ("tau", "longest"):
        _reject_if((arrays[name] < 0).any(), f"{name} is negative")
    _get_scalar(arrays, "ready", np.bool_)
    _check_choice_of_views(arrays, recipes)
    if "turn" in arrays:
        rotation = _check_finite(_get_matrix(arrays, "turn", np.float64, (dim, dim)), "turn")
        deviation = np.abs(rotation.T @ rotation - np.eye(dim)).max(initial=0.0)
        _reject_if(not deviation < _ORTHOGONALITY_TOLERANCE, "turn is not orthogonal")


def _check_cascade(sets: Arrays, columns: int, rows: int, next_arrival: int) -> None:
    """Check stored influenced sets: their owners, and that they occupy separate parts of `members`."""
    owner = _get_column(sets, "owner", np.int64)
    created = _get_column(sets, "made", np.int64, owner.size)
    begin = _get_matrix(sets, "begin", np.int64, (owner.size, columns))
    members = _get_column(sets, "members", np.int64)
    used = _get_count(sets, "used")
    _reject_if(used > members.size, "influenced sets: more members are in use than exist")
    _reject_if((owner < -1).any() or (owner >= next_arrival).any(), "influenced sets: an owner is out of range")
    _reject_if((owner[rows:] >= 0).any(), "influenced sets: an owner has no row")
    _reject_if(
        (created < 0).any() or (created > next_arrival).any(), "influenced sets: a creation number is out of range"
    )
    _reject_if((members[:used] < 0).any() or (members[:used] >= rows).any(), "influenced sets: a member is not a row")
    bounds = begin[owner >= 0]
    inside = bounds.size == 0 or (bounds.min() >= 0 and bounds.max() <= used)
    _reject_if(not inside or (np.diff(bounds, axis=1) < 0).any(), "influenced sets: a set is outside of the members")
    bounds = bounds[bounds[:, 0] < bounds[:, -1]]
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    _reject_if((bounds[1:, 0] < bounds[:-1, -1]).any(), "influenced sets: two sets overlap")


def _check_edge_aging(arrays: Arrays, aging: EdgeAging, rows: int, next_arrival: int) -> None:
    _check_clock(arrays, aging)
    if aging.window is not None:
        part = GraphPart(np.array([rows]), 0)
        _check_window(strip_prefix("window_", dict(arrays)), aging.window.directed, part, next_arrival)


def _check_clock(arrays: Arrays, aging: EdgeAging) -> None:
    """Check the event clock and the decay."""
    clock = _check_finite(_get_column(arrays, "clock", np.float64), "clock")
    _reject_if(clock.size not in (0, 2) or (np.abs(clock) > MAX_TIME).any(), "clock: expected two times or none")
    now = float(clock[1] - clock[0]) if clock.size else 0.0
    _reject_if(now < 0, "clock: the latest time is before the first")
    if aging.decay is not None:
        decay = _check_finite(_get_column(arrays, "decay", np.float64, 3), "decay")
        half_lives = now / aging.decay.half_life - decay[0]
        _reject_if((decay < 0).any() or not -2 <= half_lives <= RESCALE_HALF_LIVES + 1, "decay does not fit the clock")


def _check_window(window: Arrays, directed: bool, part: GraphPart, next_arrival: int) -> None:
    latest = _check_finite(_get_column(window, "latest", np.float64), "window")
    numbers, ends = (_get_matrix(window, name, np.int64, (latest.size, 2)) for name in ("numbers", "ends"))
    _reject_if((numbers < 0).any() or (numbers >= next_arrival).any(), "window: an arrival number is out of range")
    parts = part.row_counts.size  # of one machine or more: with more than one, `ends` are row codes
    inside = not (ends < 0).any() and (ends // parts < part.row_counts[ends % parts]).all()
    _reject_if(not inside, "window: an endpoint is not a row of the graph")
    _reject_if((ends[:, 0] % parts != part.number).any(), "window: an edge is on the wrong shard")
    first, second = numbers[:, 0], numbers[:, 1]
    _reject_if(
        (first == second).any() or (not directed and (first > second).any()), "window: endpoints are out of order"
    )
    later = (np.diff(first) > 0) | ((np.diff(first) == 0) & (np.diff(second) > 0))
    _reject_if(not later.all(), "window: edges are out of order, or one occurs twice")


def _check_correction(saved: Arrays, rule: Rule, rows: int, next_arrival: int, sequence: int) -> None:
    """Check a gradual correction that was in progress."""
    if not isinstance(rule, RippleRule):
        raise FormatError("the saved state is damaged: it has a correction, which the rule does not support")
    names = ("stage", "served", "cursor", "passes", "since", "filter_step", "column_part", "column_parts", "seed")
    stage_number, served, cursor, passes, since, step, part, parts, _ = (_get_count(saved, name) for name in names)
    valid = stage_number < len(STAGES) and served <= cursor <= rows and since <= sequence
    valid &= passes <= MAX_FRESH_PASSES and 1 <= parts <= GradualCorrection.most_column_parts
    valid = valid and part * count_spare_columns(rule.dim, parts) < rule.dim
    _reject_if(not valid, "correction: its position is out of range")
    stage = STAGES[stage_number]
    flags = ("swapped", "ready", "fresh", "stopped_early")
    swapped, ready, _, _ = (bool(_get_scalar(saved, name, np.bool_)) for name in flags)
    fits = swapped == (stage == "announce") and (swapped or not served)
    fits &= stage in ("catch_up", "announce") or not ready
    _reject_if(not fits, "correction: its stage and its rows do not fit")
    versions = [strip_prefix(prefix, dict(saved)) for prefix in ("old_", "new_")]
    for version in versions:
        _check_coordinates(version, rule.dim, rule.recipes)
    views = rule.coordinates_from_state(versions[1]).views
    _reject_if(step >= even_degree(views), "correction: its filter has too many steps")
    numbers = ("waited", "sampled_active", "pace", "credit", "paid_growth", "solve_cost")
    saved_blocks = kind_of_correction(saved).saved_blocks[stage]
    blocks = describe_saved_blocks(saved_blocks, rule.precision, rule.dim, parts)
    described = describe_saved_arrays(stage, blocks, rows, rule.dim, len(views))
    arrays = dict.fromkeys(numbers, (np.float64, ())) | described
    for name, (dtype, shape) in arrays.items():
        _check_finite(_get_matrix(saved, name, dtype, shape), f"correction: {name}")
    _check_correction_rows(saved, rule.dim, rows, next_arrival)
    if snapshot := strip_prefix(SNAPSHOT_PREFIX, dict(saved)):
        copied = cursor if stage == "copy" else None
        _check_snapshot(snapshot, rule.dim, rows, next_arrival, copied)


def _check_snapshot(snapshot: Arrays, dim: int, rows: int, next_arrival: int, copied: int | None) -> None:
    """Check the copy of the graph that a correction on a GPU reads; its edges may differ from those of the graph."""
    arrival = _get_column(snapshot, "arrival", np.int64, copied)
    _reject_if(arrival.size > rows, "correction: its snapshot has more rows than the graph")
    _reject_if((arrival < -1).any() or (arrival >= next_arrival).any(), "correction: an arrival number is out of range")
    _check_finite(_get_matrix(snapshot, "vectors", np.float32, (arrival.size, dim)), "correction: vectors")
    _check_finite(_get_column(snapshot, "strength", np.float64, arrival.size), "correction: strength")
    degree = _get_column(snapshot, "degree", np.int32, arrival.size)
    _reject_if((degree < 0).any(), "correction: a degree is negative")
    size = int(degree.sum(dtype=np.int64))
    neighbor = _get_column(snapshot, "neighbor", np.int32, size)
    limit = rows if copied is not None else arrival.size
    _reject_if((neighbor < 0).any() or (neighbor >= limit).any(), "correction: a neighbor is not in its snapshot")
    weight = _check_finite(_get_column(snapshot, "weight", np.float32, size), "correction: weight")
    _reject_if((weight <= 0).any(), "correction: a weight is not positive")
    _reject_if(not _get_scalar(snapshot, "effective_edges", np.float64) >= 0, "correction: its edges are out of range")


def _check_correction_on_shards(
    shards: Sequence[Arrays], driver: Arrays, rule: Rule, rows: list[int], next_arrival: int, sequence: int
) -> None:
    """Check the parts of a gradual correction on shards: none has one, or all of them are at the same position."""
    pace, parts = strip_prefix("pending_", dict(driver)), [strip_prefix("pending_", dict(shard)) for shard in shards]
    _reject_if(len({bool(part) for part in (pace, *parts)}) > 1, "correction: some of its parts are missing")
    of_this_version = [is_correction(part) for part in parts]
    _reject_if(any(of_this_version) and not all(of_this_version), "correction: its parts are of different versions")
    if not all(of_this_version):  # none is in progress, or it is dropped
        return
    for name in ("pace", "credit", "paid_growth", "solve_cost"):
        _check_finite(_get_matrix(pace, name, np.float64, ()), f"correction: {name}")
    for part, count in zip(parts, rows, strict=True):
        _check_correction(part, rule, count, next_arrival, sequence)
        _reject_if(_get_count(part, "first_new") > next_arrival, "correction: an arrival number is out of range")
        _get_count(part, "planned_rows")
    for name in _COMMON_NUMBERS:
        _reject_if(any(part[name] != parts[0][name] for part in parts), f"correction: {name} differs between shards")


def _check_correction_rows(saved: Arrays, dim: int, rows: int, next_arrival: int) -> None:
    """Check the columns and rows that a correction refers to."""
    columns, queue = _get_column(saved, "columns", np.int64, dim), _get_column(saved, "queue", np.int64)
    _reject_if((columns < -1).any() or (columns >= dim).any(), "correction: a column is out of range")
    _reject_if((queue < 0).any() or (queue >= rows).any(), "correction: a queued row is not in the graph")
    _get_column(saved, "marked", np.uint8, rows)
    unplaced = _get_array(saved, "unplaced", np.int64)
    _reject_if(unplaced.ndim != 2 or unplaced.shape[1:] != (2,), "correction: unplaced rows have the wrong shape")
    inside = (unplaced >= 0).all() and (unplaced < np.array([rows, next_arrival])).all()
    _reject_if(not inside, "correction: an unplaced row is not in the graph")


def _reject_if(faulty: Any, fault: str) -> None:
    if faulty:
        raise FormatError(f"the saved state is damaged: {fault}")


def _get_array(arrays: Arrays, name: str, dtype: DTypeLike) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.dtype != np.dtype(dtype):
        got = "nothing" if array is None else f"{array.dtype}"
        raise FormatError(f"the saved state is damaged: {name}: expected {np.dtype(dtype)}, got {got}")
    return array


def _get_matrix(arrays: Arrays, name: str, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array; raise `FormatError` if it is missing or has another dtype or shape."""
    array = _get_array(arrays, name, dtype)
    if array.shape != shape:
        raise FormatError(f"the saved state is damaged: {name}: expected shape {shape}, got {array.shape}")
    return array


def _get_column(arrays: Arrays, name: str, dtype: DTypeLike, size: int | None = None) -> NDArray[Any]:
    array = _get_array(arrays, name, dtype)
    return _get_matrix(arrays, name, dtype, (array.size if size is None else size,))


def _get_scalar(arrays: Arrays, name: str, dtype: DTypeLike) -> Any:
    return _get_matrix(arrays, name, dtype, ())[()]


def _get_count(arrays: Arrays, name: str) -> int:
    value = int(_get_scalar(arrays, name, np.int64))
    _reject_if(not 0 <= value <= MAX_COUNT, f"{name} is out of range")
    return value


def _check_finite(array: NDArray[Any], name: str) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise FormatError(f"the saved state is damaged: {name}: expected finite numbers, got NaN or infinity")
    return array


def _check_bounded(array: NDArray[Any], name: str, limit: float = MAX_COORDINATE) -> None:
    """Reject numbers that are not finite or exceed the limit, block by block to need little memory."""
    for first in range(0, len(array), _BLOCK_ROWS):
        part = array[first : first + _BLOCK_ROWS]
        if part.size and not (-limit <= float(part.min()) and float(part.max()) <= limit):  # false for NaN too
            raise FormatError(
                f"the saved state is damaged: {name}: expected magnitudes up to {limit:.0e}, got larger ones or NaN"
            )
