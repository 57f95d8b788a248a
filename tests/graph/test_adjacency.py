"""The adjacency against a dict per row, over random histories; what it holds, what it takes, what it notices."""

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
from ripplevec.graph.adjacency import MAX_ROWS, Adjacency, grow_array
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


class Plain:
    """A dict per row, in order of insertion: the part of each weight that points away."""

    def __init__(self, directed: bool, duplicates: str) -> None:
        self.directed, self.duplicates = directed, duplicates
        self.away: list[dict[int, np.float32]] = [{} for _ in range(ROWS)]

    def do(self, op: int, u: int, v: int, weight: float) -> None:
        if op == ADD and u != v:
            self.add(u, v, np.float32(weight))
        elif op == REMOVE and self.has(u, v):
            self.remove(u, v)
        elif op == REMOVE_VERTEX:
            for other in self.away[u]:
                del self.away[other][u]
            self.away[u].clear()

    def add(self, u: int, v: int, weight: np.float32) -> None:
        known = self.away[u].setdefault(v, np.float32(0))
        self.away[v].setdefault(u, np.float32(0))
        if known and self.duplicates == "ignore":
            return
        self.away[u][v] = weight if self.duplicates == "replace" else known + weight
        if not self.directed:
            self.away[v][u] = self.away[u][v]

    def remove(self, u: int, v: int) -> None:
        self.away[u][v] = np.float32(0)
        if not self.directed or not self.away[v][u]:
            del self.away[u][v], self.away[v][u]

    def has(self, u: int, v: int) -> bool:
        return bool(self.away[u].get(v, 0))

    def weights(self, u: int) -> list[np.float32]:
        return [away + self.away[v][u] if self.directed else away for v, away in self.away[u].items()]

    def strength(self, u: int) -> float:
        return sum(map(float, self.weights(u)))

    def edges(self) -> int:
        count = sum(away > 0 for row in self.away for away in row.values())
        return count if self.directed else count // 2


def apply(adjacency: Adjacency, history: list[Step]) -> None:
    """A history, with everything between two removals of vertices in one call."""
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


def with_rows(count: int, directed: bool = False, duplicates: str = "add") -> Adjacency:
    adjacency = Adjacency(directed=directed, duplicates=duplicates)
    adjacency.ensure_rows(count)
    return adjacency


def add(adjacency: Adjacency, pairs: NDArray[np.int64], op: int = ADD) -> None:
    adjacency.apply(np.full(len(pairs), op, np.int8), pairs, np.ones(len(pairs), np.float32))


def random_pairs(count: int, edges: int, seed: int = 0) -> NDArray[np.int64]:
    """Different pairs of different rows, some of them hubs."""
    drawn = (np.random.default_rng(seed).random((3 * edges, 2)) ** 2 * count).astype(np.int64)
    pairs = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    return np.random.default_rng(seed).permutation(pairs)[:edges]


def same(one: Adjacency, other: Adjacency) -> bool:
    first, second = one.to_packed(), other.to_packed()
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(("directed", "duplicates"), KINDS)
@settings(max_examples=60)
@given(history=histories)
@example(
    history=[(kernels.ADD, 1, 0, 511.0), (kernels.ADD, 0, 1, 1.2009559869766235)]
)  # far apart, one way and the other
def test_agrees_with_a_dict_per_row(directed: bool, duplicates: str, history: list[Step]) -> None:
    adjacency, plain = with_rows(ROWS, directed, duplicates), Plain(directed, duplicates)
    apply(adjacency, history)
    for step in history:
        plain.do(*step)

    adjacency.check()
    links = adjacency.links
    assert adjacency.edge_count == plain.edges()
    for u in range(ROWS):
        slots = slice(links.begin[u], links.begin[u] + links.degree[u])
        assert adjacency.neighbors(u).tolist() == list(plain.away[u])
        assert links.outgoing[slots].tolist() == list(plain.away[u].values())
        assert links.weight[slots].tolist() == plain.weights(u)
        assert links.strength[u] == plain.strength(u)
        coming = sum(float(plain.away[v][u]) for v in plain.away[u])
        assert links.in_strength[u] == pytest.approx(coming, rel=0, abs=1e-6 * links.strength[u])
        assert [adjacency.has_edge(u, v) for v in range(ROWS)] == [plain.has(u, v) for v in range(ROWS)]


@pytest.mark.parametrize(("directed", "duplicates"), KINDS)
@settings(max_examples=30)
@given(history=histories, later=histories)
def test_packed_and_unpacked_goes_on_as_if_nothing_had_been(
    directed: bool, duplicates: str, history: list[Step], later: list[Step]
) -> None:
    adjacency = with_rows(ROWS, directed, duplicates)
    apply(adjacency, history)
    again = Adjacency.from_packed(adjacency.to_packed(), directed=directed, duplicates=duplicates)
    again.check()
    assert same(adjacency, again)
    assert again.edge_count == adjacency.edge_count
    apply(adjacency, later)
    apply(again, later)
    again.check()
    assert same(adjacency, again)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("by_vertex", [False, True])
def test_everything_in_and_out_again_leaves_nothing(directed: bool, by_vertex: bool) -> None:
    adjacency, pairs = with_rows(60, directed), random_pairs(60, 400)
    add(adjacency, pairs)
    assert adjacency.edge_count == 400
    if by_vertex:
        for row in range(60):
            adjacency.remove_vertex(row)
    else:
        add(adjacency, pairs[::-1], REMOVE)
    adjacency.check()
    assert adjacency.edge_count == 0
    assert adjacency.to_packed()["neighbor"].size == 0
    assert not adjacency.links.strength.any()
    assert not adjacency.links.in_strength.any()
    assert (adjacency.links.size_class == blocks.NO_BLOCK).all()


def _one_by_one(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    add(adjacency, pairs, REMOVE)


def _last_first(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    add(adjacency, pairs[::-1], REMOVE)


def _by_vertex(adjacency: Adjacency, pairs: NDArray[np.int64]) -> None:
    for row in np.unique(pairs[:, 0]):
        adjacency.remove_vertex(row)


@pytest.mark.parametrize("take_out", [_one_by_one, _last_first, _by_vertex])
@pytest.mark.parametrize(
    "pairs", [np.stack([np.zeros(500, np.int64), np.arange(1, 501)], axis=1), random_pairs(501, 3000)]
)
def test_blocks_are_used_again(
    take_out: Callable[[Adjacency, NDArray[np.int64]], None], pairs: NDArray[np.int64]
) -> None:
    adjacency, tops = with_rows(501), []
    for _ in range(6):
        add(adjacency, pairs)
        take_out(adjacency, pairs)
        tops.append(int(adjacency.links.allocator[blocks.ARENA_TOP]))
    adjacency.check()
    assert adjacency.edge_count == 0
    assert len(set(tops[1:])) == 1


def test_a_changing_graph_of_constant_size_takes_bounded_memory() -> None:
    adjacency, tops = with_rows(300), []
    for seed in range(30):
        pairs = random_pairs(300, 2000, seed)
        add(adjacency, pairs)
        add(adjacency, np.random.default_rng(seed).permutation(pairs), REMOVE)
        tops.append(int(adjacency.links.allocator[blocks.ARENA_TOP]))
    assert tops[-1] < 1.25 * tops[4]


@pytest.mark.parametrize("directed", [False, True])
def test_a_vertex_fills_one_line_of_memory(directed: bool) -> None:
    vertices = Adjacency(directed=directed)._vertices
    assert vertices.grow(1 << 17).strides == (CACHE_LINE_BYTES,)
    assert vertices.array.ctypes.data % CACHE_LINE_BYTES == 0, "where there are many of them, and waiting for lines is what costs"


def test_memory_is_within_two_and_a_half_packed_matrices() -> None:
    adjacency = with_rows(20_000)
    add(adjacency, np.random.default_rng(0).integers(0, 20_000, (100_000, 2)))
    packed = adjacency.to_csr()
    plain = packed.nnz * (4 + 4) + 20_001 * 4
    held = sum(table.array.nbytes for table in (adjacency._vertices, adjacency._slots))
    not_edges = adjacency.capacity * sum(
        column.itemsize for column in (adjacency.arrival, adjacency.seen, adjacency.placed)
    )
    assert 0.8 * held <= adjacency.nbytes <= held
    assert held - not_edges <= 2.5 * plain


def test_room_is_given_back() -> None:
    adjacency = with_rows(1001)
    star = np.stack([np.zeros(1000, np.int64), np.arange(1, 1001)], axis=1)
    add(adjacency, star)
    add(adjacency, star[10:], REMOVE)
    assert adjacency.links.size_class[0] <= 5
    assert adjacency.neighbors(0).tolist() == list(range(1, 11))


def test_neighbors_stay_in_order_of_insertion() -> None:
    adjacency = with_rows(10)
    add(adjacency, np.array([[0, 5], [0, 3], [7, 0], [0, 1], [0, 9]]))
    add(adjacency, np.array([[3, 0]]), REMOVE)
    add(adjacency, np.array([[0, 3], [0, 5]]))
    assert adjacency.neighbors(0).tolist() == [5, 7, 1, 9, 3]


@pytest.mark.parametrize("directed", [False, True])
def test_matrix_over_rows_is_symmetric_and_holds_every_weight(directed: bool) -> None:
    adjacency = with_rows(4, directed)
    pairs = np.array([[0, 1], [1, 0], [2, 3]])
    adjacency.apply(np.zeros(3, np.int8), pairs, np.array([1, 2, 4], np.float32))
    dense = np.zeros((adjacency.capacity, adjacency.capacity))
    dense[0, 1] = dense[1, 0] = 3
    dense[2, 3] = dense[3, 2] = 4
    assert np.array_equal(adjacency.to_csr().toarray(), dense)
    assert adjacency.edge_count == (3 if directed else 2)


def test_rounding_never_lets_an_in_strength_fall_below_zero() -> None:
    adjacency = with_rows(4, directed=True)
    pairs, weights = np.array([[0, 1], [2, 1], [1, 3]]), np.array([1, 1e-17, 1], np.float32)
    adjacency.apply(np.zeros(3, np.int8), pairs, weights)
    add(adjacency, pairs[:2], REMOVE)
    assert adjacency.links.in_strength[1] == 0.0


def test_many_pairs_are_looked_up_at_once() -> None:
    adjacency = with_rows(4, directed=True)
    add(adjacency, np.array([[0, 1], [2, 1]]))
    found = adjacency.has_edges(np.array([0, 1, 1, 2, 3]), np.array([1, 0, 2, 1, 3]))
    assert found.tolist() == [True, False, False, True, False]


def _one_sided(adjacency: Adjacency) -> None:
    adjacency.links.neighbor[adjacency.links.begin[0]] = 4


def _twice(adjacency: Adjacency) -> None:
    links = adjacency.links
    for row, other in ((3, 4), (4, 3)):
        links.neighbor[links.begin[row] + 1], links.weight[links.begin[row] + 1] = other, 1
    links.degree[3:5], links.strength[3:5] = 2, 2


def _set(field: str, index: int, value: float) -> Callable[[Adjacency], None]:
    def damage(adjacency: Adjacency) -> None:
        getattr(adjacency.links, field)[index] = value

    return damage


def _weight(value: float) -> Callable[[Adjacency], None]:
    def damage(adjacency: Adjacency) -> None:
        adjacency.links.weight[adjacency.links.begin[3]] = value
        adjacency.links.weight[adjacency.links.begin[4]] = value
        adjacency.links.strength[3:5] = value

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_one_sided, "one end only"),
        (_twice, "twice"),
        (_set("strength", 0, 5.0), "sums of weights"),
        (_set("allocator", blocks.EDGE_COUNT, 7), "number of edges"),
        (_set("allocator", blocks.ARENA_TOP, 7), "overlap"),
        (_set("begin", 3, 0), "overlap"),
        (_set("size_class", 3, 2), "overlap"),
        (_weight(-1.0), "not positive"),
    ],
)
def test_damage_is_noticed(damage: Callable[[Adjacency], None], said: str) -> None:
    adjacency = with_rows(5)
    add(adjacency, np.array([[0, 1], [0, 2], [1, 2], [3, 4]]))
    adjacency.check()
    damage(adjacency)
    with pytest.raises(RipplevecError, match=said):
        adjacency.check()


def test_damage_to_in_strengths_is_noticed() -> None:
    adjacency = with_rows(3, directed=True)
    add(adjacency, np.array([[0, 1], [2, 1]]))
    adjacency.check()
    adjacency.links.in_strength[1] = 1.0
    with pytest.raises(RipplevecError, match="incoming"):
        adjacency.check()


def test_a_packed_adjacency_that_contradicts_itself_is_refused() -> None:
    adjacency = with_rows(3)
    add(adjacency, np.array([[0, 1]]))
    packed = adjacency.to_packed()
    packed["degree"][2] = 1
    with pytest.raises(FormatError, match="inconsistent"):
        Adjacency.from_packed(packed, directed=False, duplicates="add")


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="duplicates: expected one of 'add', 'ignore', 'replace', got 'sum'"):
        Adjacency(duplicates="sum")
    with pytest.raises(RipplevecError, match="at most 2,147,483,647 vertices"):
        Adjacency().ensure_rows(MAX_ROWS + 1)


def test_an_empty_adjacency_is_whole() -> None:
    adjacency = Adjacency()
    adjacency.check()
    again = Adjacency.from_packed(adjacency.to_packed(), directed=False, duplicates="add")
    assert (again.capacity, again.edge_count, again.nbytes) == (0, 0, 0)


def test_grown_keeps_what_was_and_fills_what_is_new() -> None:
    array = np.array([[1, 2], [3, 4]])
    assert grow_array(array, 3, -1).tolist() == [[1, 2], [3, 4], [-1, -1]]
    assert array.shape == (2, 2)


@pytest.mark.parametrize("directed", [False, True])
def test_a_copy_goes_its_own_way(directed: bool) -> None:
    one = Adjacency(directed=directed)
    one.ensure_rows(4)
    add = np.zeros(2, np.int8), np.array([[0, 1], [1, 2]]), np.ones(2, np.float32)
    one.apply(*add)
    copy = one.copy()
    copy.apply(np.array([ADD, REMOVE], np.int8), np.array([[2, 3], [0, 1]]), np.ones(2, np.float32))
    one.check()
    copy.check()
    assert (one.edge_count, copy.edge_count) == (2, 2)
    assert (one.has_edge(0, 1), one.has_edge(2, 3)) == (True, False)
    assert (copy.has_edge(0, 1), copy.has_edge(2, 3)) == (False, True)


@pytest.mark.parametrize("directed", [False, True])
def test_a_hub_is_looked_up_and_stays_what_a_plain_dict_says(directed: bool) -> None:
    """Edges of one vertex with thousands of neighbors: new ones, repeated ones, some taken out, more again."""
    rng, leaves = np.random.default_rng(0), 5_000
    adjacency, known = with_rows(leaves + 1, directed=directed), {}
    for turn in range(4):
        added = rng.integers(1, leaves + 1, 3_000)
        weight = (2.0 ** rng.integers(-2, 3, added.size)).astype(np.float32)
        pairs = np.stack([np.zeros_like(added), added], axis=1)
        adjacency.apply(np.zeros(added.size, np.int8), pairs, weight)
        for leaf, more in zip(added.tolist(), weight.tolist(), strict=True):
            known[leaf] = known.get(leaf, 0.0) + more
        assert adjacency.links.index_begin[0] >= 0
        adjacency.check()
        gone = rng.choice(list(known), 40, replace=False)
        add(adjacency, np.stack([np.zeros_like(gone), gone], axis=1), REMOVE)
        for leaf in gone.tolist():
            del known[leaf]
        assert adjacency.links.index_begin[0] == blocks.NO_INDEX, turn
        adjacency.check()
    begin, count = int(adjacency.links.begin[0]), int(adjacency.links.degree[0])
    slots = slice(begin, begin + count)
    names, weights = adjacency.links.neighbor[slots].tolist(), adjacency.links.weight[slots].tolist()
    assert dict(zip(names, weights, strict=True)) == known
    assert names == list(known)  # in the order in which they came
    copy = adjacency.copy()
    copy.check()
    add(copy, np.array([[0, names[0]]]))
    copy.check()
    adjacency.check()


def test_the_indices_of_hubs_are_recycled() -> None:
    adjacency, tops = with_rows(4_001), []
    leaves = np.arange(1, 4_001)
    for _ in range(6):
        add(adjacency, np.stack([np.zeros_like(leaves), leaves], axis=1))
        adjacency.remove_vertex(0)
        tops.append(int(adjacency.links.allocator[blocks.INDEX_ARENA_TOP]))
    assert tops[-1] == tops[0]
    adjacency.check()


def test_repeating_edges_to_a_hub_keeps_its_strengths() -> None:
    adjacency = with_rows(5_000, directed=True)
    spokes = np.stack([np.arange(1, 5_000), np.zeros(4_999, np.int64)], axis=1)
    for _ in range(3):
        add(adjacency, spokes)
    assert adjacency.links.size_class[0] >= blocks.HUB_SIZE_CLASS
    adjacency.check()
    assert adjacency.links.in_strength[0] == 3 * 4_999


def test_the_arena_knows_its_widest_list() -> None:
    adjacency = with_rows(100)
    add(adjacency, np.stack([np.zeros(99, np.int64), np.arange(1, 100)], axis=1))
    again = Adjacency.from_packed(adjacency.to_packed(), directed=False, duplicates="add")
    for each in (adjacency, adjacency.copy(), again):
        assert each.links.allocator[blocks.MAX_SIZE_CLASS] == each.links.size_class.max() == 7


@settings(max_examples=40)
@given(history=histories, kind=st.sampled_from(KINDS), seed=st.integers(0, 99))
def test_rows_in_another_order_have_the_same_edges_in_their_order(
    history: list[Step], kind: tuple[bool, str], seed: int
) -> None:
    adjacency = with_rows(ROWS, *kind)
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
def test_a_hub_that_has_shrunk_goes_on_in_the_same_bits_wherever_it_lies(directed: bool) -> None:
    """A list that was longer has more room than one that was packed and laid out anew."""
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
