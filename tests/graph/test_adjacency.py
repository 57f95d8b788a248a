"""Adjacency lists compared with a dict per row over random histories; memory, invariants and saved layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.errors import FormatError, InvalidValueError, RipplevecError
from ripplevec.graph import _block_kernels as blocks
from ripplevec.graph import _edge_kernels as kernels
from ripplevec.graph.adjacency import MAX_ROWS, Adjacency, WeightScale
from ripplevec.util.numba_intrinsics import CACHE_LINE_BYTES

ROWS = 7
ADD, REMOVE, REMOVE_VERTEX = 0, 1, 2
KINDS = [(directed, duplicates) for directed in (False, True) for duplicates in ("add", "ignore", "replace")]

rows = st.integers(0, ROWS - 1)
weights = st.floats(2**-10, 2**10, width=32)
histories = st.lists(
    st.tuples(st.sampled_from([ADD, ADD, ADD, REMOVE, REMOVE, REMOVE_VERTEX]), rows, rows, weights), max_size=80
)
Step = tuple[int, int, int, float]


class DictAdjacency:
    """Reference: a dict per row, in insertion order, of the outgoing weights."""

    def __init__(self, directed: bool, duplicates: str) -> None:
        self.directed, self.duplicates = directed, duplicates
        self.outgoing_weights: list[dict[int, np.float32]] = [{} for _ in range(ROWS)]

    def apply_step(self, op: int, u: int, v: int, weight: float) -> None:
        if op == ADD and u != v:
            self.add(u, v, np.float32(weight))
        elif op == REMOVE and self.has(u, v):
            self.remove(u, v)
        elif op == REMOVE_VERTEX:
            for other in self.outgoing_weights[u]:
                del self.outgoing_weights[other][u]
            self.outgoing_weights[u].clear()

    def add(self, u: int, v: int, weight: np.float32) -> None:
        stored = self.outgoing_weights[u].setdefault(v, np.float32(0))
        self.outgoing_weights[v].setdefault(u, np.float32(0))
        if stored and self.duplicates == "ignore":
            return
        self.outgoing_weights[u][v] = weight if self.duplicates == "replace" else stored + weight
        if not self.directed:
            self.outgoing_weights[v][u] = self.outgoing_weights[u][v]

    def remove(self, u: int, v: int) -> None:
        self.outgoing_weights[u][v] = np.float32(0)
        if not self.directed or not self.outgoing_weights[v][u]:
            del self.outgoing_weights[u][v], self.outgoing_weights[v][u]

    def has(self, u: int, v: int) -> bool:
        return bool(self.outgoing_weights[u].get(v, 0))

    def weights(self, u: int) -> list[np.float32]:
        return [
            weight + self.outgoing_weights[v][u] if self.directed else weight
            for v, weight in self.outgoing_weights[u].items()
        ]

    def strength(self, u: int) -> float:
        return sum(map(float, self.weights(u)))

    def edges(self) -> int:
        count = sum(weight > 0 for row in self.outgoing_weights for weight in row.values())
        return count if self.directed else count // 2


def apply(adjacency: Adjacency, history: list[Step]) -> None:
    """Apply a history, with all edge operations between two vertex removals in one call."""
    edges: list[Step] = []
    for step in [*history, None]:
        if step is not None and step[0] != REMOVE_VERTEX:
            edges.append(step)
            continue
        op = np.array([op for op, *_ in edges], np.int8)
        pairs = np.array([(u, v) for _, u, v, _ in edges], np.int64).reshape(-1, 2)
        adjacency.apply(op, pairs, np.array([weight for *_, weight in edges], np.float32))
        edges.clear()
        if step is not None:
            adjacency.remove_vertex(step[1])


def create_adjacency(count: int, directed: bool = False, duplicates: str = "add") -> Adjacency:
    adjacency = Adjacency(directed=directed, duplicates=duplicates)
    adjacency.ensure_rows(count)
    return adjacency


def apply_op(adjacency: Adjacency, pairs: NDArray[np.int64], op: int = ADD) -> None:
    adjacency.apply(np.full(len(pairs), op, np.int8), pairs, np.ones(len(pairs), np.float32))


def random_pairs(count: int, edges: int, seed: int = 0) -> NDArray[np.int64]:
    """Return distinct pairs of distinct rows; some rows are hubs."""
    drawn = (np.random.default_rng(seed).random((3 * edges, 2)) ** 2 * count).astype(np.int64)
    pairs = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    return np.random.default_rng(seed).permutation(pairs)[:edges]


def have_equal_content(one: Adjacency, other: Adjacency) -> bool:
    first, second = one.to_packed(), other.to_packed()
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(("directed", "duplicates"), KINDS)
@settings(max_examples=60)
@given(history=histories)
@example(
    history=[(kernels.ADD, 1, 0, 511.0), (kernels.ADD, 0, 1, 1.2009559869766235)]
)  # very different weights in the two directions
def test_adjacency_random_history_matches_dict_per_row(directed: bool, duplicates: str, history: list[Step]) -> None:
    adjacency, reference = create_adjacency(ROWS, directed, duplicates), DictAdjacency(directed, duplicates)
    apply(adjacency, history)
    for step in history:
        reference.apply_step(*step)

    adjacency.check()
    links = adjacency.links
    assert adjacency.edge_count == reference.edges()
    for u in range(ROWS):
        slots = slice(links.begin[u], links.begin[u] + links.degree[u])
        assert adjacency.neighbors(u).tolist() == list(reference.outgoing_weights[u])
        assert links.outgoing[slots].tolist() == list(reference.outgoing_weights[u].values())
        assert links.weight[slots].tolist() == reference.weights(u)
        assert links.strength[u] == reference.strength(u)
        incoming = sum(float(reference.outgoing_weights[v][u]) for v in reference.outgoing_weights[u])
        assert links.in_strength[u] == pytest.approx(incoming, rel=0, abs=1e-6 * links.strength[u])
        assert [adjacency.has_edge(u, v) for v in range(ROWS)] == [reference.has(u, v) for v in range(ROWS)]


@pytest.mark.parametrize(("directed", "duplicates"), KINDS)
@settings(max_examples=30)
@given(history=histories, later=histories)
def test_from_packed_random_history_continues_identically(
    directed: bool, duplicates: str, history: list[Step], later: list[Step]
) -> None:
    adjacency = create_adjacency(ROWS, directed, duplicates)
    apply(adjacency, history)
    again = Adjacency.from_packed(adjacency.to_packed(), directed=directed, duplicates=duplicates)
    again.check()
    assert have_equal_content(adjacency, again)
    assert again.edge_count == adjacency.edge_count
    apply(adjacency, later)
    apply(again, later)
    again.check()
    assert have_equal_content(adjacency, again)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("by_vertex", [False, True])
def test_adjacency_all_edges_removed_is_empty(directed: bool, by_vertex: bool) -> None:
    adjacency, pairs = create_adjacency(60, directed), random_pairs(60, 400)
    apply_op(adjacency, pairs)
    assert adjacency.edge_count == 400
    if by_vertex:
        for row in range(60):
            adjacency.remove_vertex(row)
    else:
        apply_op(adjacency, pairs[::-1], REMOVE)
    adjacency.check()
    assert adjacency.edge_count == 0
    assert adjacency.to_packed()["neighbor"].size == 0
    assert not adjacency.links.strength.any()
    assert not adjacency.links.in_strength.any()
    assert (adjacency.links.size_class == blocks.NO_BLOCK).all()


def _remove_in_order(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    apply_op(adjacency, pairs, REMOVE)


def _remove_in_reverse(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    apply_op(adjacency, pairs[::-1], REMOVE)


def _remove_by_vertex(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    for row in np.unique(pairs[:, 0]):
        adjacency.remove_vertex(row)


@pytest.mark.parametrize("remove_all", [_remove_in_order, _remove_in_reverse, _remove_by_vertex])
@pytest.mark.parametrize(
    "pairs", [np.stack([np.zeros(500, np.int64), np.arange(1, 501)], axis=1), random_pairs(501, 3000)]
)
def test_blocks_after_removal_are_reused(
    remove_all: Callable[[Adjacency, NDArray[np.int64]], None], pairs: NDArray[np.int64]
) -> None:
    adjacency, tops = create_adjacency(501), []
    for _ in range(6):
        apply_op(adjacency, pairs)
        remove_all(adjacency, pairs)
        tops.append(int(adjacency.links.allocator[blocks.ARENA_TOP]))
    adjacency.check()
    assert adjacency.edge_count == 0
    assert len(set(tops[1:])) == 1


def test_arena_changing_graph_of_constant_size_is_bounded() -> None:
    adjacency, tops = create_adjacency(300), []
    for seed in range(30):
        pairs = random_pairs(300, 2000, seed)
        apply_op(adjacency, pairs)
        apply_op(adjacency, np.random.default_rng(seed).permutation(pairs), REMOVE)
        tops.append(int(adjacency.links.allocator[blocks.ARENA_TOP]))
    assert tops[-1] < 1.25 * tops[4]


@pytest.mark.parametrize("directed", [False, True])
def test_vertex_record_fills_one_cache_line(directed: bool) -> None:
    adjacency = create_adjacency(1 << 17, directed)
    links = adjacency.links
    columns = [links.begin, links.degree, links.size_class, links.strength, links.in_strength, links.index_begin]
    columns += [adjacency.arrival, adjacency.seen, adjacency.placed]
    assert {column.strides for column in columns} == {(CACHE_LINE_BYTES,)}
    first = [column.ctypes.data for column in columns]
    last = [column.ctypes.data + column.itemsize - 1 for column in columns]
    assert len({address // CACHE_LINE_BYTES for address in first + last}) == 1


def test_memory_random_graph_is_below_two_and_a_half_csr_matrices() -> None:
    adjacency = create_adjacency(20_000)
    apply_op(adjacency, np.random.default_rng(0).integers(0, 20_000, (100_000, 2)))
    matrix = adjacency.to_csr()
    csr_bytes = matrix.nnz * (4 + 4) + 20_001 * 4
    allocated = sum(column.size * column.strides[0] for column in (adjacency.arrival, adjacency.links.neighbor))
    other_fields = adjacency.capacity * sum(
        column.itemsize for column in (adjacency.arrival, adjacency.seen, adjacency.placed)
    )
    assert 0.8 * allocated <= adjacency.nbytes <= allocated
    assert allocated - other_fields <= 2.5 * csr_bytes


def test_block_after_removals_shrinks() -> None:
    adjacency = create_adjacency(1001)
    star = np.stack([np.zeros(1000, np.int64), np.arange(1, 1001)], axis=1)
    apply_op(adjacency, star)
    apply_op(adjacency, star[10:], REMOVE)
    assert adjacency.links.size_class[0] <= 5
    assert adjacency.neighbors(0).tolist() == list(range(1, 11))


def test_neighbors_after_removal_stay_in_insertion_order() -> None:
    adjacency = create_adjacency(10)
    apply_op(adjacency, np.array([[0, 5], [0, 3], [7, 0], [0, 1], [0, 9]]))
    apply_op(adjacency, np.array([[3, 0]]), REMOVE)
    apply_op(adjacency, np.array([[0, 3], [0, 5]]))
    assert adjacency.neighbors(0).tolist() == [5, 7, 1, 9, 3]


@pytest.mark.parametrize("directed", [False, True])
def test_to_csr_is_symmetric_with_all_weights(directed: bool) -> None:
    adjacency = create_adjacency(4, directed)
    pairs = np.array([[0, 1], [1, 0], [2, 3]])
    adjacency.apply(np.zeros(3, np.int8), pairs, np.array([1, 2, 4], np.float32))
    dense = np.zeros((adjacency.capacity, adjacency.capacity))
    dense[0, 1] = dense[1, 0] = 3
    dense[2, 3] = dense[3, 2] = 4
    assert np.array_equal(adjacency.to_csr().toarray(), dense)
    assert adjacency.edge_count == (3 if directed else 2)


def test_in_strength_after_rounding_is_not_negative() -> None:
    adjacency = create_adjacency(4, directed=True)
    pairs, weights = np.array([[0, 1], [2, 1], [1, 3]]), np.array([1, 1e-17, 1], np.float32)
    adjacency.apply(np.zeros(3, np.int8), pairs, weights)
    apply_op(adjacency, pairs[:2], REMOVE)
    assert adjacency.links.in_strength[1] == 0.0


def test_has_edges_several_pairs_returns_each() -> None:
    adjacency = create_adjacency(4, directed=True)
    apply_op(adjacency, np.array([[0, 1], [2, 1]]))
    found = adjacency.has_edges(np.array([0, 1, 1, 2, 3]), np.array([1, 0, 2, 1, 3]))
    assert found.tolist() == [True, False, False, True, False]


def _damage_one_endpoint(adjacency: Adjacency) -> None:
    adjacency.links.neighbor[adjacency.links.begin[0]] = 4


def _list_neighbor_twice(adjacency: Adjacency) -> None:
    links = adjacency.links
    for row, other in ((3, 4), (4, 3)):
        links.neighbor[links.begin[row] + 1], links.weight[links.begin[row] + 1] = other, 1
    links.degree[3:5], links.strength[3:5] = 2, 2


def _set_cell(field: str, index: int, value: float) -> Callable[[Adjacency], None]:
    def damage(adjacency: Adjacency) -> None:
        getattr(adjacency.links, field)[index] = value

    return damage


def _set_weight(value: float) -> Callable[[Adjacency], None]:
    def damage(adjacency: Adjacency) -> None:
        adjacency.links.weight[adjacency.links.begin[3]] = value
        adjacency.links.weight[adjacency.links.begin[4]] = value
        adjacency.links.strength[3:5] = value

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_damage_one_endpoint, "one endpoint only"),
        (_list_neighbor_twice, "twice"),
        (_set_cell("strength", 0, 5.0), "sums of weights"),
        (_set_cell("allocator", blocks.EDGE_COUNT, 7), "number of edges"),
        (_set_cell("allocator", blocks.ARENA_TOP, 7), "overlap"),
        (_set_cell("begin", 3, 0), "overlap"),
        (_set_cell("size_class", 3, 2), "overlap"),
        (_set_weight(-1.0), "not positive"),
    ],
)
def test_check_damaged_adjacency_raises(damage: Callable[[Adjacency], None], message: str) -> None:
    adjacency = create_adjacency(5)
    apply_op(adjacency, np.array([[0, 1], [0, 2], [1, 2], [3, 4]]))
    adjacency.check()
    damage(adjacency)
    with pytest.raises(RipplevecError, match=message):
        adjacency.check()


def test_check_wrong_in_strength_raises() -> None:
    adjacency = create_adjacency(3, directed=True)
    apply_op(adjacency, np.array([[0, 1], [2, 1]]))
    adjacency.check()
    adjacency.links.in_strength[1] = 1.0
    with pytest.raises(RipplevecError, match="incoming"):
        adjacency.check()


def test_from_packed_inconsistent_arrays_raises() -> None:
    adjacency = create_adjacency(3)
    apply_op(adjacency, np.array([[0, 1]]))
    packed = adjacency.to_packed()
    packed["degree"][2] = 1
    with pytest.raises(FormatError, match="inconsistent"):
        Adjacency.from_packed(packed, directed=False, duplicates="add")


def test_adjacency_invalid_settings_raise() -> None:
    with pytest.raises(InvalidValueError, match="duplicates: expected one of 'add', 'ignore', 'replace', got 'sum'"):
        Adjacency(duplicates="sum")
    with pytest.raises(RipplevecError, match="at most 2,147,483,647 vertices"):
        Adjacency().ensure_rows(MAX_ROWS + 1)


def test_adjacency_empty_is_consistent() -> None:
    adjacency = Adjacency()
    adjacency.check()
    again = Adjacency.from_packed(adjacency.to_packed(), directed=False, duplicates="add")
    assert (again.capacity, again.edge_count, again.nbytes) == (0, 0, 0)


@pytest.mark.parametrize("directed", [False, True])
def test_copy_is_independent(directed: bool) -> None:
    one = Adjacency(directed=directed)
    one.ensure_rows(4)
    one.apply(np.zeros(2, np.int8), np.array([[0, 1], [1, 2]]), np.ones(2, np.float32))
    copy = one.copy()
    copy.apply(np.array([ADD, REMOVE], np.int8), np.array([[2, 3], [0, 1]]), np.ones(2, np.float32))
    one.check()
    copy.check()
    assert (one.edge_count, copy.edge_count) == (2, 2)
    assert (one.has_edge(0, 1), one.has_edge(2, 3)) == (True, False)
    assert (copy.has_edge(0, 1), copy.has_edge(2, 3)) == (False, True)


@pytest.mark.parametrize("directed", [False, True])
def test_hub_random_history_matches_dict(directed: bool) -> None:
    """Edges of one vertex with thousands of neighbors are added, repeated, removed and added again."""
    rng, leaves = np.random.default_rng(0), 5_000
    adjacency, stored = create_adjacency(leaves + 1, directed=directed), {}
    for repetition in range(4):
        added = rng.integers(1, leaves + 1, 3_000)
        weight = (2.0 ** rng.integers(-2, 3, added.size)).astype(np.float32)
        pairs = np.stack([np.zeros_like(added), added], axis=1)
        adjacency.apply(np.zeros(added.size, np.int8), pairs, weight)
        for leaf, extra in zip(added.tolist(), weight.tolist(), strict=True):
            stored[leaf] = stored.get(leaf, 0.0) + extra
        assert adjacency.links.index_begin[0] >= 0
        adjacency.check()
        removed = rng.choice(list(stored), 40, replace=False)
        apply_op(adjacency, np.stack([np.zeros_like(removed), removed], axis=1), REMOVE)
        for leaf in removed.tolist():
            del stored[leaf]
        assert adjacency.links.index_begin[0] == blocks.NO_INDEX, repetition
        adjacency.check()
    begin, count = int(adjacency.links.begin[0]), int(adjacency.links.degree[0])
    slots = slice(begin, begin + count)
    neighbors, weights = adjacency.links.neighbor[slots].tolist(), adjacency.links.weight[slots].tolist()
    assert dict(zip(neighbors, weights, strict=True)) == stored
    assert neighbors == list(stored)  # in insertion order
    copy = adjacency.copy()
    copy.check()
    apply_op(copy, np.array([[0, neighbors[0]]]))
    copy.check()
    adjacency.check()


def test_hub_index_after_removal_is_reused() -> None:
    adjacency, tops = create_adjacency(4_001), []
    leaves = np.arange(1, 4_001)
    for _ in range(6):
        apply_op(adjacency, np.stack([np.zeros_like(leaves), leaves], axis=1))
        adjacency.remove_vertex(0)
        tops.append(int(adjacency.links.allocator[blocks.INDEX_ARENA_TOP]))
    assert tops[-1] == tops[0]
    adjacency.check()


def test_hub_repeated_edges_has_correct_strength() -> None:
    adjacency = create_adjacency(5_000, directed=True)
    spokes = np.stack([np.arange(1, 5_000), np.zeros(4_999, np.int64)], axis=1)
    for _ in range(3):
        apply_op(adjacency, spokes)
    assert adjacency.links.size_class[0] >= blocks.HUB_SIZE_CLASS
    adjacency.check()
    assert adjacency.links.in_strength[0] == 3 * 4_999


def test_max_size_class_is_the_largest_of_all_rows() -> None:
    adjacency = create_adjacency(100)
    apply_op(adjacency, np.stack([np.zeros(99, np.int64), np.arange(1, 100)], axis=1))
    again = Adjacency.from_packed(adjacency.to_packed(), directed=False, duplicates="add")
    for each in (adjacency, adjacency.copy(), again):
        assert each.links.allocator[blocks.MAX_SIZE_CLASS] == each.links.size_class.max() == 7


@settings(max_examples=40)
@given(history=histories, kind=st.sampled_from(KINDS), seed=st.integers(0, 99))
def test_reorder_random_order_keeps_edges_and_their_order(
    history: list[Step], kind: tuple[bool, str], seed: int
) -> None:
    adjacency = create_adjacency(ROWS, *kind)
    apply(adjacency, history)
    order = np.random.default_rng(seed).permutation(ROWS)
    other = adjacency.reorder(order)
    other.check()
    for row, before in enumerate(order.tolist()):
        assert order[other.neighbors(row)].tolist() == adjacency.neighbors(before).tolist()
        assert other.links.strength[row] == adjacency.links.strength[before]
    assert other.totals(ROWS) == pytest.approx(adjacency.totals(ROWS))
    assert other.edge_count == adjacency.edge_count


@pytest.mark.parametrize("directed", [False, True])
def test_shrunk_hub_with_another_block_size_continues_identically(directed: bool) -> None:
    """A list that was longer has a larger block than the same list after saving and restoring."""
    rng = np.random.default_rng(0)
    one = Adjacency(directed=directed)
    one.ensure_rows(2_000)
    pairs = np.stack([np.zeros(1_500, np.int64), np.arange(1, 1_501)], axis=1)[:, ::-1].copy()
    one.apply(np.zeros(1_500, np.int8), pairs, (10 ** rng.uniform(-6, 6, 1_500)).astype(np.float32))
    one.apply(np.ones(700, np.int8), pairs[:700], np.ones(700, np.float32))
    other = Adjacency.from_packed(one.to_packed(), directed=directed, duplicates="add")
    assert one.links.size_class[0] > other.links.size_class[0]
    for adjacency in (one, other):
        weight = (10 ** np.random.default_rng(1).uniform(-6, 6, 300)).astype(np.float32)
        adjacency.apply(np.zeros(300, np.int8), pairs[800:1_100], weight)
        adjacency.check()
    assert one.links.strength[0] == other.links.strength[0]
    assert one.links.in_strength[0] == other.links.in_strength[0]


def create_path() -> Adjacency:
    adjacency = create_adjacency(4)
    apply_op(adjacency, np.array([[0, 1], [1, 2], [2, 3]]))
    return adjacency


def test_totals_without_decay_count_all_edges() -> None:
    adjacency = create_path()
    assert adjacency.weight_scale == WeightScale(1.0, np.inf)
    assert adjacency.totals(4) == (6, 6.0, 4)
    assert adjacency.totals(4).mean_degree == 1.5


def test_totals_with_decay_count_effective_edges_also_in_copies() -> None:
    adjacency = create_path()
    adjacency.weight_scale = WeightScale(4.0, 2.0)
    assert adjacency.totals(4) == (4, 6.0, 4)
    assert adjacency.copy().weight_scale == adjacency.weight_scale
    assert adjacency.reorder(np.array([2, 1, 0, 3])).weight_scale == adjacency.weight_scale
