from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec import Batch, Embedder
from ripplevec.engine import correction_schedule
from ripplevec.engine.state_validation import check_state
from ripplevec.errors import FormatError

Arrays = dict[str, NDArray[Any]]
Change = Callable[[Arrays], None]


def create_model(**parameters: Any) -> Embedder:
    model = Embedder(**{"dim": 4, "start_size": 8, "threads": 1, **parameters})
    random, timed = np.random.default_rng(3), "expire_after" in parameters or "half_life" in parameters
    for number in range(12):
        src, dst = (number + random.integers(0, 6, 5)).tolist(), [f"v{i}" for i in range(5)]
        model.partial_fit(Batch.of(src, dst, time=np.full(5, float(number)) if timed else None))
    model.remove_vertex("v2")
    return model


def check(model: Embedder, state: Arrays) -> None:
    engine = model.engine
    directed = engine.graph.directed
    check_state(state, dim=model.dim, directed=directed, rule=engine.rule, aging=engine.aging)


def put(name: str, at: Any, value: Any) -> Change:
    def change(state: Arrays) -> None:
        state[name] = state[name].copy()
        state[name][at] = value

    return change


def redirect_one_endpoint(state: Arrays) -> None:
    """Redirect an edge at one of its endpoints only."""
    first = int(np.flatnonzero(state["graph_edges_degree"])[0])
    known = set(state["graph_edges_neighbor"][: state["graph_edges_degree"][first]].tolist())
    named = np.flatnonzero(state["graph_arrival"] >= 0).tolist()
    put("graph_edges_neighbor", 0, next(row for row in named if row not in known and row != first))(state)


def reweight_one_endpoint(state: Arrays) -> None:
    """Make an edge heavier at one of its endpoints, and adapt the strength there."""
    put("graph_edges_weight", 0, state["graph_edges_weight"][0] * 2)(state)
    row, degree = int(np.flatnonzero(state["graph_edges_degree"])[0]), state["graph_edges_degree"]
    weights = state["graph_edges_weight"][: degree[row]].astype(np.float64)
    put("graph_edges_strength", row, np.cumsum(weights)[-1])(state)


def twice(state: Arrays) -> None:
    put("graph_edges_neighbor", 1, state["graph_edges_neighbor"][0])(state)


def drop(name: str) -> Change:
    def change(state: Arrays) -> None:
        del state[name]

    return change


def cast(name: str, kind: str) -> Change:
    return lambda state: state.update({name: state[name].astype(kind)})


PLAIN: dict[str, tuple[Change, str]] = {
    "neighbor too large": (put("graph_edges_neighbor", 3, 2**31 - 1), "not a row"),
    "neighbor negative": (put("graph_edges_neighbor", 3, -5), "not a row"),
    "neighbor twice": (twice, "occurs twice"),
    "neighbor at one endpoint": (redirect_one_endpoint, "stored at one endpoint only"),
    "weight at one endpoint": (reweight_one_endpoint, "differs between its endpoints"),
    "weight zero": (put("graph_edges_weight", 2, 0), "positive finite"),
    "weight infinite": (put("graph_edges_weight", 2, np.inf), "positive finite"),
    "strength off": (put("graph_edges_strength", 1, 7.7), "sum of the weights"),
    "strength not a number": (put("graph_edges_strength", 1, np.nan), "sum of the weights"),
    "degree negative": (put("graph_edges_degree", 0, -1), "negative"),
    "degree too large": (put("graph_edges_degree", 0, 10_000), "expected shape"),
    "arrival beyond the next": (put("graph_arrival", 0, 10**6), "out of range"),
    "arrival twice": (put("graph_arrival", slice(0, 2), 0), "the same arrival number"),
    "arrival of a free row": (lambda s: put("graph_arrival", s["graph_ids_free"][0], 1)(s), "no id"),
    "arrivals counted too few": (lambda s: s.update(graph_next_arrival=np.array(1)), "out of range"),
    "text not UTF-8": (put("graph_ids_text", 0, 0xC0), "UTF-8"),
    "text of another length": (lambda s: s.update(graph_ids_text=s["graph_ids_text"][:-1]), "fill the text buffer"),
    "integer that fits 64 bits": (put("graph_ids_text", 0, 0xFF), "more than 64 bits"),
    "vectors not finite": (put("vectors", (0, 1), np.nan), "vectors"),
    "vectors too large": (put("vectors", (0, 1), 3e38), "vectors"),
    "vectors of another type": (cast("vectors", "f8"), "expected float32"),
    "vectors of another shape": (lambda s: s.update(vectors=s["vectors"][:-1]), "expected shape"),
    "placed neither": (put("placed", 0, 2), "neither 0 nor 1"),
    "placed free row": (lambda s: put("placed", s["graph_ids_free"][0], 1)(s), "free row has a vector"),
    "counter negative": (put("counters", 0, -1), "counter"),
    "counters too few": (lambda s: s.update(counters=s["counters"][:3]), "counters"),
    "tau negative": (put("rule_tau", 0, -1.0), "tau"),
    "mu not finite": (put("rule_mu", 0, np.inf), "mu"),
    "ready no flag": (lambda s: s.update(rule_ready=np.array(1)), "expected bool"),
    "strength missing": (drop("graph_edges_strength"), "got nothing"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_check_of_a_tampered_state_names_the_fault(case: str) -> None:
    model = create_model()
    state = model.engine.state()
    check(model, state)
    change, message = PLAIN[case]
    change(state)
    with pytest.raises(FormatError, match=message):
        check(model, state)


def test_check_of_directions_that_do_not_add_up_raises() -> None:
    model = create_model(directed=True)
    state = model.engine.state()
    check(model, state)
    for name, message in (("outgoing", "two directions"), ("in_strength", "incoming weights")):
        changed = dict(state)
        put(f"graph_edges_{name}", 0, 1.5)(changed)
        with pytest.raises(FormatError, match=message):
            check(model, changed)


def test_check_of_swapped_directions_at_one_endpoint_raises() -> None:
    model = Embedder(dim=2, start_size=100, directed=True).fit([(1, 2), (2, 3), (3, 1)])
    state = model.engine.state()
    state["graph_edges_outgoing"], state["graph_edges_incoming"] = (
        state[f"graph_edges_{direction}"].copy() for direction in ("outgoing", "incoming")
    )
    for name in ("outgoing", "incoming"):
        state[f"graph_edges_{name}"][0] = 1 - state[f"graph_edges_{name}"][0]
    state["graph_edges_in_strength"] = state["graph_edges_in_strength"] + np.array([1.0, 0, 0])
    with pytest.raises(FormatError, match="damaged"):
        check(model, state)


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        ({"half_life": 3.0}, put("memory_decay", 1, np.nan), "decay"),
        ({"half_life": 3.0}, put("memory_clock", 1, 1e99), "does not fit the clock"),
        ({"expire_after": 9.0}, put("memory_clock", 0, 1e99), "is before"),
        ({"expire_after": 9.0}, put("memory_window_ends", (0, 1), 10**6), "not a row"),
        ({"expire_after": 9.0}, put("memory_window_numbers", (0, 1), -1), "out of range"),
        ({"expire_after": 9.0}, put("memory_window_latest", 0, np.inf), "window"),
        ({"rule": "paper"}, put("rule_units", 0, 99), "units"),
        ({"rule": "paper"}, put("rule_initial_gram", (0, 0), np.nan), "initial_gram"),
        ({"rule": "paper", "depth": 3, "reuse_influence": True}, put("rule_cascade_members", 0, 10**6), "is not a row"),
        ({"rule": "paper", "depth": 3, "reuse_influence": True}, put("rule_cascade_begin", (0, 1), -9), "outside"),
        ({"rule": "paper", "depth": 3, "reuse_influence": True}, put("rule_cascade_owner", 1, 10**6), "owner"),
    ],
)
def test_check_of_tampered_times_or_influenced_sets_raises(
    parameters: dict[str, Any], change: Change, message: str
) -> None:
    model = create_model(**parameters)
    state = model.engine.state()
    check(model, state)
    if "cascade" in str(sorted(state)):  # a row that owns a set
        state["rule_cascade_owner"] = np.where(
            state["graph_arrival"] >= 0, state["rule_cascade_owner"][: len(state["placed"])], -1
        )
        state["rule_cascade_made"] = state["rule_cascade_made"][: len(state["placed"])]
        state["rule_cascade_begin"] = state["rule_cascade_begin"][: len(state["placed"])]
        check(model, state)
        state["rule_cascade_owner"][0] = max(state["graph_arrival"][0], 0)
    change(state)
    with pytest.raises(FormatError, match=message):
        check(model, state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("pending_queue", slice(None), 10**6), "queued row is not in the graph"),
        (put("pending_stage", (), 99), "position is out of range"),
        (put("pending_cursor", (), 10**6), "position is out of range"),
        (put("pending_since", (), 10**6), "position is out of range"),
        (put("pending_swapped", (), True), "its stage and its rows do not fit"),
        (put("pending_filter_step", (), 99), "too many steps"),
        (put("pending_column_part", (), 2), "position is out of range"),
        (put("pending_column_parts", (), 0), "position is out of range"),
        (put("pending_column_parts", (), 3), "position is out of range"),
        (put("pending_columns", 0, 50), "column is out of range"),
        (put("pending_block_current", (0, 0), np.nan), "block_current"),
        (put("pending_grams", (0, 0, 0), np.inf), "grams"),
        (put("pending_new_mu", 0, np.nan), "mu"),
        (put("pending_credit", (), np.nan), "credit"),
        (lambda s: s.update(pending_unplaced=np.array([[0, 10**6]])), "unplaced row is not in the graph"),
        (lambda s: s.update(pending_unplaced=np.array([0, 1])), "wrong shape"),
        (lambda s: s.update(pending_shifts=np.zeros((3, 3))), "shifts: expected shape"),
        (drop("pending_marked"), "marked"),
        (drop("pending_block_current"), "block_current"),
    ],
)
def test_check_of_a_tampered_correction_raises(change: Change, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)
    model = Embedder(dim=3, start_size=6, anchor_growth=0.3, threads=1)
    number, state = 0, dict[str, NDArray[Any]]()
    while "pending_block_current" not in state or not state["pending_queue"].size:
        model.partial_fit([(number, number + 1), (number, number + 2)])
        number, state = number + 1, model.engine.state()
    check(model, state)
    change(state)
    with pytest.raises(FormatError, match=message):
        check(model, state)


def test_restore_of_a_damaged_state_changes_nothing() -> None:
    model, other = create_model(), create_model()
    state = other.engine.state()
    put("graph_edges_neighbor", 0, 10**6)(state)
    before = model.digest()
    with pytest.raises(FormatError):
        model.engine.restore(state)
    assert model.digest() == before
