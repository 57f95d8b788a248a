"""Id table compared with a dict and a list."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ripplevec.batch import Id, id_column, ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.graph import id_table
from ripplevec.graph._id_kernels import MOVED_PER_ID
from ripplevec.graph.id_table import IdTable

EDGE_CASES: list[Id] = [
    1, "1", 0, "", -1, "\0", "a\0", "\0a", 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 2**70, -(2**70),
    "ÿ", "é", "e\u0301", "😀", "x" * 300, str(2**70),
]  # fmt: skip
names = st.sampled_from(EDGE_CASES) | st.integers(-20, 20) | st.text(max_size=3) | st.integers()
columns = st.lists(names, max_size=12) | st.lists(st.integers(0, 30), max_size=12) | st.lists(st.text("ab", max_size=3))


class DictTable:
    """Reference implementation of `IdTable` with Python objects."""

    def __init__(self) -> None:
        self.rows: dict[Id, int] = {}
        self.free: list[int] = []
        self.capacity = 0

    def intern(self, name: Id) -> tuple[int, bool]:
        if name in self.rows:
            return self.rows[name], False
        row = self.free.pop() if self.free else self.capacity
        self.capacity = max(self.capacity, row + 1)
        self.rows[name] = row
        return row, True

    def remove(self, rows: list[int]) -> None:
        by_row = {row: name for name, row in self.rows.items()}
        for row in rows:
            del self.rows[by_row[row]]
            self.free.append(row)


class CompareWithDictTable(RuleBasedStateMachine):
    """Compare any sequence of calls with the reference."""

    @initialize()
    def begin(self) -> None:
        self.ids, self.model = IdTable(), DictTable()

    @rule(src=columns, dst=columns)
    def intern(self, src: list[Id], dst: list[Id]) -> None:
        length = min(len(src), len(dst))
        pairs = list(zip(src[:length], dst[:length], strict=True))
        expected = [(self.model.intern(a), self.model.intern(b)) for a, b in pairs]
        src_rows, dst_rows, new = self.ids.intern(id_column(src[:length]), id_column(dst[:length]))
        assert src_rows.tolist() == [a[0] for a, _ in expected]
        assert dst_rows.tolist() == [b[0] for _, b in expected]
        assert new.tolist() == [row for pair in expected for row, is_new in pair if is_new]

    @rule(name=names)
    def intern_one(self, name: Id) -> None:
        assert self.ids.intern_one(name) == self.model.intern(name)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        live = sorted(self.model.rows.values())
        rows = data.draw(st.lists(st.sampled_from(live), unique=True)) if live else []
        self.model.remove(rows)
        self.ids.remove(np.array(rows, np.int64))

    @rule(column=columns)
    def find(self, column: list[Id]) -> None:
        expected = [self.model.rows.get(name, -1) for name in column]
        assert self.ids.find_rows(id_column(column)).tolist() == expected
        assert self.ids.find_rows(column).tolist() == expected

    @rule(name=names)
    def find_one(self, name: Id) -> None:
        assert self.ids.find_row(name) == self.model.rows.get(name, -1)
        assert (name in self.ids) == (name in self.model.rows)

    @rule()
    def save_and_load(self) -> None:
        self.ids = IdTable.from_state(self.ids.state())

    @invariant()
    def has_same_ids(self) -> None:
        live = list(self.model.rows)
        rows = np.array(list(self.model.rows.values()), np.int64)
        assert (len(self.ids), self.ids.row_count) == (len(live), self.model.capacity)
        assert self.ids.to_list(rows) == live
        assert ids_to_list(self.ids.to_column(rows)) == live
        assert self.ids.find_rows(live).tolist() == rows.tolist()


TestIdTable = CompareWithDictTable.TestCase
TestIdTable.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_intern_edge_cases_are_different_ids() -> None:
    ids, cases = IdTable(), [*EDGE_CASES, 10**5000]  # longer than Python would print
    rows, _, new = ids.intern(cases, cases)
    assert rows.tolist() == new.tolist() == list(range(len(cases)))
    assert ids.to_list(rows) == cases
    assert ids.find_row(10**5000) == rows[-1]


def test_intern_assigns_rows_by_first_mention_source_before_target() -> None:
    src, dst, new = IdTable().intern(id_column(["a", "c", "a"]), id_column(["b", "a", "d"]))
    assert (src.tolist(), dst.tolist(), new.tolist()) == ([0, 2, 0], [1, 0, 3], [0, 1, 2, 3])


def test_intern_columns_of_different_types_are_combined() -> None:
    src, dst, new = IdTable().intern(id_column([1, 2, 1]), id_column(["1", "2", "1"]))
    assert (src.tolist(), dst.tolist(), new.tolist()) == ([0, 2, 0], [1, 3, 1], [0, 1, 2, 3])


def test_intern_reuses_latest_freed_row_first() -> None:
    ids = IdTable()
    ids.intern(np.arange(3), np.arange(3, 6))
    ids.remove(np.array([4, 0]))
    ids.remove(np.array([2]))
    for restored in ids, IdTable.from_state(ids.state()):
        _, _, new = restored.intern(id_column(["w", "y"]), id_column(["x", "z"]))
        assert new.tolist() == [2, 0, 4, 6]


def test_remove_free_row_changes_nothing() -> None:
    ids = IdTable()
    ids.intern(np.arange(3), np.arange(3))
    ids.remove(np.array([1, 1, -1, 3, 10**9]))
    assert (len(ids), ids.row_count, ids.state()["free"].tolist()) == (2, 3, [1])


def test_find_rows_changes_nothing() -> None:
    ids = IdTable()
    ids.intern(id_column(["a"]), id_column(["b"]))
    before = ids.state()
    ids.find_rows(id_column(["a", "c"]))
    ids.find_row("d")
    assert all(np.array_equal(before[name], part) for name, part in ids.state().items())


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["zero", "a", "", "b", "last"], pa.large_string()).slice(1, 3),
        pa.array([], pa.large_string()),
        pa.array(["x"], pa.large_string()).slice(1),
        pa.array(["", ""], pa.large_string()),
        np.arange(12)[::-3],
        np.broadcast_to(np.int64(5), 4),
        np.empty(0, np.int64),
        [],
    ],
    ids=["sliced text", "no text", "sliced to none", "empty texts", "strided", "broadcast", "no integers", "no list"],
)
def test_intern_unusual_memory_layout_gives_the_same_rows(column: Any) -> None:
    ids, plain = IdTable(), ids_to_list(column)
    rows, _, new = ids.intern(column, column)
    assert ids.to_list(rows) == plain
    assert ids.to_list(new) == list(dict.fromkeys(plain))
    assert ids.find_rows(column).tolist() == rows.tolist()


def test_to_column_type_depends_on_ids() -> None:
    ids = IdTable()
    ids.intern([1, 2, 2**70], ["a", "é", "b"])
    integers, texts, mixed, big = (ids.to_column(np.array(rows)) for rows in ([0, 2], [3, 1], [0, 1], [4, 1]))
    assert isinstance(integers, np.ndarray)
    assert (integers.dtype, integers.tolist()) == (np.int64, [1, 2])
    assert texts.equals(pa.array(["é", "a"], pa.large_string()))
    assert (mixed, big) == ([1, "a"], [2**70, "a"])
    assert len(ids.to_column(np.empty(0, np.int64))) == 0


@pytest.mark.parametrize("row", [-1, 1, 2, 10**9])
def test_to_list_free_row_raises(row: int) -> None:
    ids = IdTable()
    ids.intern(np.arange(2), np.arange(2))
    ids.remove(np.array([1]))
    with pytest.raises(InvalidValueError, match=str(row)):
        ids.to_list(np.array([0, row]))


@pytest.mark.parametrize("text", [False, True])
def test_intern_many_ids_grows_the_table(text: bool) -> None:
    numbers = np.random.default_rng(0).permutation(2_000_000)[:200_000] * 1_000_003 - 10**12
    column = id_column([f"vertex {number}" for number in numbers.tolist()] if text else numbers)
    ids = IdTable()
    rows, again, new = ids.intern(column, column)
    assert all(np.array_equal(part, np.arange(200_000)) for part in (rows, again, new))
    ids.remove(rows[::2])
    assert len(ids) == 100_000
    assert np.array_equal(ids.find_rows(column), np.where(rows % 2, rows, -1))
    assert ids_to_list(ids.to_column(rows[1::2])) == ids_to_list(column)[1::2]
    assert ids.nbytes < 130 * 200_000


def test_arena_mostly_garbage_is_compacted() -> None:
    ids = IdTable()
    kept, _ = ids.intern_one("kept" * 100)
    sizes = []
    for number in range(200):
        row, new = ids.intern_one(f"{number} " * 1000)
        assert new
        ids.remove(np.array([row]))
        sizes.append(ids.nbytes)
    assert max(sizes[50:]) < 100_000
    assert ids.to_list(np.array([kept])) == ["kept" * 100]
    assert ids.find_row("kept" * 100) == kept


def test_state_after_round_trip_is_equal() -> None:
    ids = IdTable()
    rows, _, _ = ids.intern(EDGE_CASES, EDGE_CASES)
    ids.remove(rows[3:9])
    ids.intern(["late", 7], [8, 2**80])
    state = ids.state()
    again = IdTable.from_state(state).state()
    assert all(part.dtype.kind in "iu" and part.ndim == 1 for part in state.values())
    assert all(np.array_equal(state[name], again[name]) for name in state)


def test_from_state_copies_the_arrays() -> None:
    ids = IdTable()
    ids.intern(["a", 1], ["b", 2])
    state = {name: part.copy() for name, part in ids.state().items()}
    restored = IdTable.from_state(state)
    for part in state.values():
        part[:] = 99
    assert restored.to_list(np.arange(4)) == ["a", "b", 1, 2]


def create_damaged_state(name: str, part: list[int] | None) -> dict[str, Any]:
    ids = IdTable()
    ids.intern(["a", "bc", 5], [7, 8, 9])
    ids.remove(np.array([3]))
    state = ids.state()
    if part is None:
        del state[name]
    else:
        state[name] = np.array(part, state[name].dtype)
    return state


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("key", None),
        ("free", None),
        ("key", [0, 7, 1, 0, 5]),
        ("key", [0, 7, 1, 0, 5, 7]),
        ("key", [1, 7, 1, 0, 5, 9]),
        ("end", [1, -1, 3, -2, -1]),
        ("end", [1, -1, 4, -2, -1, -1]),
        ("end", [1, -1, 3, -3, -1, -1]),
        ("end", [1, -1, 3, -1, -1, -1]),
        ("text", [97]),
        ("text", [97, 98, 99, 100]),
        ("free", []),
        ("free", [3, 3]),
        ("free", [17]),
    ],
)
def test_from_state_inconsistent_raises(name: str, part: list[int] | None) -> None:
    with pytest.raises(FormatError, match="saved vertex ids"):
        IdTable.from_state(create_damaged_state(name, part))


@pytest.mark.parametrize("part", [np.zeros(6), np.zeros((6, 1), np.int64), np.zeros(6, np.int32)])
def test_from_state_wrong_types_raises(part: Any) -> None:
    with pytest.raises(FormatError, match="an array 'key' of int64"):
        IdTable.from_state(create_damaged_state("text", [97, 98, 99]) | {"key": part})


@given(st.lists(names, unique=True, min_size=1), st.data())
def test_remove_in_reverse_restores_row_assignment(known: list[Id], data: st.DataObject) -> None:
    """Rows freed in reverse order are assigned again in the same order."""
    ids = IdTable()
    ids.intern(known, known)
    batch = data.draw(columns)
    first = ids.intern(batch, batch)
    ids.remove(first[2][::-1])
    second = ids.intern(batch, batch)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def grow_table(text: bool, count: int = 640) -> tuple[IdTable, DictTable]:
    """Return a table of 1,024 slots that is full, so that the next id makes it grow, and its reference."""
    ids, model = IdTable(), DictTable()
    for number in range(count):
        name: Id = f"vertex {number}" if text and number % 2 else number
        assert ids.intern_one(name) == model.intern(name)
    return ids, model


@settings(max_examples=40, deadline=None)
@given(
    operations=st.lists(st.tuples(st.sampled_from(["add", "remove", "copy", "bulk"]), st.integers(0, 10**6))),
    text=st.booleans(),
)
def test_growing_table_finds_every_id_at_every_moment(operations: list[tuple[str, int]], text: bool) -> None:
    ids, model = grow_table(text)
    for number, (operation, choice) in enumerate([("add", 0), *operations]):
        live = list(model.rows)
        if operation == "remove" and live:
            row = model.rows[live[choice % len(live)]]
            model.remove([row])
            ids.remove(np.array([row]))
        elif operation == "copy":
            ids = ids.copy()
        elif operation == "bulk":
            with patch.object(id_table, "MIN_BULK_PAIRS", 1):
                rows, _, _ = ids.intern([f"bulk {choice}", choice], [f"bulk {choice}", choice])
            assert rows.tolist() == [model.intern(f"bulk {choice}")[0], model.intern(choice)[0]]
        else:
            assert ids.intern_one(f"new {number}") == model.intern(f"new {number}")
        names = [*model.rows, "unknown", -5]
        assert ids.find_rows(names).tolist() == [*model.rows.values(), -1, -1]
        assert ids.find_rows(np.arange(640)).tolist() == [model.rows.get(key, -1) for key in range(640)]
        restored = IdTable.from_state(ids.state())
        assert restored.find_rows(names).tolist() == [*model.rows.values(), -1, -1]


def test_growing_table_moves_few_entries_per_id_and_releases_the_old_slots() -> None:
    ids, _ = grow_table(text=False)
    for added in range(1, 64):
        ids.intern_one(f"new {added}")
        table = ids._table
        assert (len(table.slots), len(table.old_slots)) == (2_048, 1_024)
        assert np.count_nonzero(table.slots[:, 1]) <= added + MOVED_PER_ID * added
    ids.intern_one("last")
    assert len(ids.table.old_slots) == 0
    assert np.count_nonzero(ids.table.slots[:, 1]) == len(ids) == 704


def test_large_table_allocates_slots_before_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_table, "ROW_STEP", 100)
    ids, _ = grow_table(text=False, count=600)
    assert (len(ids.table.spans), ids._next_slots) == (600, None)
    ids.intern_one("another")
    assert len(ids.table.spans) == 640
    prepared = ids._next_slots
    assert prepared is not None
    ids.intern(np.arange(1_000, 1_040), np.arange(1_000, 1_040))
    assert ids.table.slots is prepared
    assert len(ids.table.spans) == 700
