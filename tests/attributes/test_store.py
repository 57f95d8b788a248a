"""The store of attribute parts: saving, copying, and arrays that do not depend on the layout of rows."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.attributes.store import DERIVED, NONE, OWN, AttributeStore, select_attribute_arrays
from ripplevec.batch import id_column

EDGES = [(i, j) for i in range(12) for j in range(i) if (i + j) % 3]


@pytest.fixture
def store() -> AttributeStore:
    tags = {i: {f"t{i % 3}": 1.0, f"u{i % 4}": 2.0} for i in range(10)}
    return Embedder(dim=8, attribute_dim=3).fit(EDGES, attributes=tags).engine.attributes


def test_parts_are_own_or_derived_from_the_directions_of_neighbors(store: AttributeStore) -> None:
    assert store.status[:12].tolist() == [OWN] * 10 + [DERIVED] * 2
    for vertex in (10, 11):
        neighbors = store.graph.rows_of(id_column([j for j in range(10) if (vertex + j) % 3]))
        parts = store.parts[neighbors].astype(float)
        expected = (parts / np.linalg.norm(parts, axis=1, keepdims=True)).sum(axis=0)
        (row,) = store.graph.rows_of(id_column([vertex]))
        derived = store.parts[row] / np.linalg.norm(store.parts[row])
        np.testing.assert_allclose(derived, expected / np.linalg.norm(expected), atol=1e-5)


def test_copy_has_the_same_state_and_shares_nothing(store: AttributeStore) -> None:
    copied, before = store.copy(store.graph), store.state()
    for name, array in copied.state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    copied.clear(np.arange(4))
    assert copied.rows == store.rows - 4
    for name, array in store.state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_clear_removes_parts_and_kept_attributes(store: AttributeStore) -> None:
    store.clear(np.array([2, 11]))
    assert store.status[[2, 11]].tolist() == [NONE, NONE]
    assert not store.parts[[2, 11]].any()
    assert store.kept.get(2)[0].size == 0


def test_digest_arrays_do_not_depend_on_the_order_of_rows(store: AttributeStore) -> None:
    state = store.state()
    order = np.random.default_rng(0).permutation(12)
    lengths = np.diff(state["kept_begin"])[order]
    pieces = [np.arange(state["kept_begin"][row], state["kept_begin"][row + 1]) for row in order]
    moved = state | {
        "parts": state["parts"][order],
        "status": state["status"][order],
        "kept_begin": np.concatenate([[0], np.cumsum(lengths)]),
        "kept_columns": state["kept_columns"][np.concatenate(pieces)],
        "kept_values": state["kept_values"][np.concatenate(pieces)],
    }
    one, other = select_attribute_arrays(state, np.arange(12)), select_attribute_arrays(moved, np.argsort(order))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
