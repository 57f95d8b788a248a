"""Saved attributes come from files: every change that kernels could not bear is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.attributes.state_check import check_attributes
from ripplevec.errors import FormatError

COLUMNS, KEPT_FROM = 3, 12
Arrays = dict[str, Any]


def save_attributes() -> Arrays:
    tags = {i: {f"t{i % 3}": 1.0, f"u{i % 4}": 2.0} for i in range(10)}
    edges = [(i, j) for i in range(12) for j in range(i) if (i + j) % 3]
    return Embedder(dim=8, attribute_dim=COLUMNS).fit(edges, attributes=tags).engine.attributes.state()


def text(value: str) -> Any:
    return np.frombuffer(value.encode(), np.uint8)


def put(name: str, position: Any, value: Any) -> Callable[[Arrays], None]:
    def change(state: Arrays) -> None:
        state[name] = state[name].copy()
        state[name][position] = value

    return change


def test_unchanged_state_is_accepted() -> None:
    check_attributes(save_attributes(), 12, COLUMNS, kept_from=KEPT_FROM)


CHECKED_HERE = [name for name in sorted(save_attributes()) if not name.startswith("projection_names_")]
"""The names are checked by `IdTable.from_state`."""


@pytest.mark.parametrize("name", CHECKED_HERE)
def test_missing_or_shorter_array_is_refused(name: str) -> None:
    state = save_attributes()
    array = state.pop(name)
    with pytest.raises(FormatError):
        check_attributes(state, 12, COLUMNS)
    if array.size:
        with pytest.raises(FormatError):
            check_attributes(state | {name: array[:-1]}, 12, COLUMNS)


@pytest.mark.parametrize(
    "change",
    [
        put("parts", (0, 0), np.nan),
        put("projection_basis", (0, 0), np.inf),
        put("status", 0, 9),
        put("kept_columns", 0, 10_000),
        put("kept_columns", 0, -1),
        put("kept_begin", 1, 10_000),
        put("counters", 2, 13),
        put("counters", 0, -2),
        put("weight", 0, 0.0),
        put("projection_counters", 2, 10_000),
        lambda state: state.update(projection_description=text("no JSON")),
        lambda state: state.update(projection_description=text("[1]")),
        lambda state: state.update(projection_description=text('{"kind": "odd"}')),
        lambda state: state.update(projection_description=text("{}")),
        lambda state: state.update(projection_maps=np.zeros((1, COLUMNS, COLUMNS))),
        lambda state: state.update(projection_description=text("[" * 200_000)),
        lambda state: state.update(projection_description=text('{"kind": "sparse", "labels": 5}')),
        lambda state: state.update(projection_description=text('{"kind": "dense", "labels": ["a"]}')),
        lambda state: state.update(projection_description=text('{"kind": null, "labels": []}')),
        put("parts", 0, 3e38),
        put("projection_basis", 0, -3e38),
        put("projection_products", 0, 3e38),
        put("projection_gram", 0, 1e300),
        put("projection_sums", (0, 0), -1.0),
        put("projection_sums", (0, 0), 0.0),  # fewer than the rows that are kept
        put("projection_sums", (0, 0), 1e300),
        put("projection_counters", 0, 0.5),
        put("projection_counters", 0, 1e300),
        put("counters", 0, 3),
        put("status", 0, 0),
    ],
)
def test_value_out_of_range_is_refused(change: Callable[[Arrays], None]) -> None:
    state = save_attributes()
    change(state)
    with pytest.raises(FormatError):
        check_attributes(state, 12, COLUMNS, kept_from=KEPT_FROM)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("count", [20, 200])
def test_states_of_streams_with_removals_are_accepted(dense: bool, count: int) -> None:
    random = np.random.default_rng(3)
    model = Embedder(dim=8, attribute_dim=COLUMNS)
    for vertex in range(count):
        value = 10.0 ** random.integers(-40, 15)
        attributes = (random.normal(size=4) * value / 10).tolist() if dense else {f"t{vertex % 5}": value}
        model.add_vertex(vertex, list({vertex // 2, vertex // 3} - {vertex}), attributes=attributes)
        if vertex % 3 == 2:
            model.remove_vertex(vertex - 1)
            pickle.loads(pickle.dumps(model))
    for vertex in model.ids:
        model.remove_vertex(vertex)
        pickle.loads(pickle.dumps(model))
