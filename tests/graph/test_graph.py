"""Graph compared with a reference made of dicts: order, arrival numbers, removals, and rejected batches."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, Op
from ripplevec.errors import RipplevecError, SelfLoopWarning, UnknownEdgeError, UnknownVertexError
from ripplevec.graph import adjacency, id_table
from ripplevec.graph import graph as graph_module
from ripplevec.graph._edge_kernels import apply_edges
from ripplevec.graph.batch_validation import check_batch
from ripplevec.graph.graph import Graph, GraphDelta, merge_deltas

pytestmark = pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")

NAMES: list[Id] = [1, "1", "ä", 2**70, -3, "a", ""]
names = st.sampled_from(NAMES)
operations = st.tuples(
    st.sampled_from([Op.ADD, Op.ADD, Op.ADD, Op.ADD, Op.REMOVE, Op.VERTEX, Op.REMOVE_VERTEX]),
    names,
    names,
    st.sampled_from([0.5, 1.0, 4.0]),
)
batches = st.lists(st.lists(operations, min_size=1, max_size=8), max_size=8)
Operation = tuple[Op, Id, Id, float]


class DictGraph:
    """Reference: arrival numbers by id, and weights by pair."""

    def __init__(self, directed: bool) -> None:
        self.directed = directed
        self.numbers: dict[Id, int] = {}
        self.weights: dict[Any, float] = {}
        self.next = 0

    def key(self, src: Id, dst: Id) -> Any:
        return (src, dst) if self.directed else frozenset((src, dst))

    def add_vertex(self, name: Id) -> None:
        if name not in self.numbers:
            self.numbers[name] = self.next
            self.next += 1

    def after(self, rows: list[Operation]) -> DictGraph | None:
        """Return a copy after the operations, or None if one of them is invalid."""
        reference = copy.deepcopy(self)
        return reference if all(reference.apply_row(*row) for row in rows) else None

    def apply_row(self, op: Op, src: Id, dst: Id, weight: float) -> bool:
        pair, alone = self.key(src, dst), op >= Op.VERTEX
        if op in (Op.ADD, Op.VERTEX):
            self.add_vertex(src)
            if not alone:
                self.add_vertex(dst)
            if not alone and src != dst:
                self.weights[pair] = self.weights.get(pair, 0.0) + weight
            return True
        if op == Op.REMOVE:
            return self.weights.pop(pair, None) is not None
        self.weights = {pair: weight for pair, weight in self.weights.items() if src not in pair}
        return self.numbers.pop(src, None) is not None


def create_batch(rows: list[Operation]) -> Batch:
    op, src, dst, weight = (list(column) for column in zip(*rows, strict=True))
    return Batch.of(src, dst, weight, op)


def edges(*pairs: tuple[Id, ...]) -> Batch:
    return Batch.from_any(list(pairs))


def apply(graph: Graph, batch: Batch, one_by_one: bool = False) -> list[GraphDelta]:
    check_batch(graph, batch)  # as every model does first
    return list(graph.apply(batch, one_by_one=one_by_one))


def create_graph(*batches: Batch, directed: bool = False, one_by_one: bool = False) -> Graph:
    graph = Graph(directed=directed)
    for batch in batches:
        apply(graph, batch, one_by_one)
    graph.check()
    return graph


def numbers_of(graph: Graph) -> dict[Id, int]:
    rows = graph.rows_by_arrival()
    return dict(zip(graph.ids.to_list(rows), graph.arrival[rows].tolist(), strict=True))


def weights_of(graph: Graph) -> dict[Any, float]:
    """Return weights by pair of ids, as the reference has them."""
    links, found = graph.adjacency.links, {}
    for row in graph.rows_by_arrival():
        for slot in range(links.begin[row], links.begin[row] + links.degree[row]):
            ends = graph.ids.to_list(np.array([row, links.neighbor[slot]]))
            if links.outgoing[slot] > 0:
                found[tuple(ends) if graph.adjacency.directed else frozenset(ends)] = float(links.outgoing[slot])
    return found


def are_equal(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def save_and_restore(graph: Graph) -> Graph:
    adjacency = graph.adjacency
    return Graph.from_state(graph.state(), directed=adjacency.directed, duplicates=adjacency.duplicates)


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=150)
@given(history=batches)
def test_graph_random_history_matches_reference_and_invalid_batch_changes_nothing(
    directed: bool, history: list[list[Operation]]
) -> None:
    """Apply the same history in whole batches, arrival by arrival, and saved and restored after each batch."""
    reference, graph, single, again = (
        DictGraph(directed),
        Graph(directed=directed),
        Graph(directed=directed),
        Graph(directed=directed),
    )
    for rows in history:
        batch, after = create_batch(rows), reference.after(rows)
        if after is None:
            for unchanged, one_by_one in ((graph, False), (single, True)):
                before = unchanged.state()
                with pytest.raises((UnknownVertexError, UnknownEdgeError)):
                    apply(unchanged, batch, one_by_one)
                assert are_equal(unchanged.state(), before)
            continue
        reference = after
        apply(graph, batch)
        apply(single, batch, one_by_one=True)
        again = save_and_restore(again)
        apply(again, batch)
        for one in (graph, single):
            one.check()
            assert numbers_of(one) == reference.numbers
            assert weights_of(one) == reference.weights
            assert one.next_arrival == reference.next
        assert are_equal(again.state(), graph.state())


@pytest.mark.parametrize("one_by_one", [False, True])
def test_arrival_numbers_follow_first_mention_source_before_target(one_by_one: bool) -> None:
    graph = create_graph(edges(("c", "a"), ("a", "b"), ("d", "c"), ("d", "e")), one_by_one=one_by_one)
    assert numbers_of(graph) == {"c": 0, "a": 1, "b": 2, "d": 3, "e": 4}


def test_apply_unknown_neighbors_are_created() -> None:
    graph = create_graph(Batch.arrival("a", ["b", "c"]), Batch.arrival("b", ["c", "d"]))
    assert list(numbers_of(graph)) == ["a", "b", "c", "d"]
    assert graph.adjacency.edge_count == 4


def test_ids_int_and_its_text_are_different_vertices() -> None:
    graph = create_graph(edges((1, "1"), ("1", 2)))
    assert len(graph) == 3
    assert weights_of(graph) == {frozenset({1, "1"}): 1.0, frozenset({"1", 2}): 1.0}


@pytest.mark.parametrize(("duplicates", "weight"), [("add", 7.0), ("ignore", 2.0), ("replace", 5.0)])
def test_apply_repeated_edges_follow_duplicate_policy(duplicates: str, weight: float) -> None:
    graph = Graph(duplicates=duplicates)
    apply(graph, edges(("a", "b", 2.0), ("b", "a", 5.0)))
    assert weights_of(graph) == {frozenset("ab"): weight}


def test_rows_after_removal_are_reused_but_arrival_numbers_are_not() -> None:
    graph = create_graph(edges(("a", "b"), ("b", "c")))
    for number in range(3, 20):
        [delta] = apply(graph, Batch.vertices([graph.ids.to_list(graph.rows_by_arrival()[:1])[0]], Op.REMOVE_VERTEX))
        [arrival] = apply(graph, edges(("x" * number, "y")) if number == 3 else Batch.vertices(["x" * number]))
        assert delta.vacated_rows[0] in arrival.arrived
        graph.check()
    assert graph.row_count == 4
    assert sorted(numbers_of(graph).values()) == list(range(graph.next_arrival - len(graph), graph.next_arrival))


def test_apply_operations_are_applied_in_order() -> None:
    add, remove, out = Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX
    graph = create_graph(edges(("a", "b", 3.0), ("b", "c")))
    steps: list[Operation] = [
        (remove, "a", "b", 1.0),
        (add, "b", "a", 0.5),
        (out, "a", "a", 1.0),
        (add, "c", "a", 2.0),
        (out, "b", "b", 1.0),
        (add, "d", "e", 1.0),
        (remove, "e", "d", 1.0),
    ]
    deltas = apply(graph, create_batch(steps))
    graph.check()
    assert numbers_of(graph) == {"c": 2, "a": 3, "d": 4, "e": 5}
    assert weights_of(graph) == {frozenset("ac"): 2.0}
    assert merge_deltas(deltas).removed_ids == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "error", "named"),
    [
        ([(Op.REMOVE, "a", "missing", 1.0)], UnknownVertexError, "'missing'"),
        ([(Op.REMOVE, "a", "c", 1.0)], UnknownEdgeError, "'a' and 'c'"),
        ([(Op.REMOVE, "a", "a", 1.0)], UnknownEdgeError, "'a' and 'a'"),
        ([(Op.REMOVE, "a", "b", 1.0), (Op.REMOVE, "b", "a", 1.0)], UnknownEdgeError, "'b' and 'a'"),
        ([(Op.ADD, "x", "y", 1.0), (Op.REMOVE_VERTEX, "z", "z", 1.0)], UnknownVertexError, "'z'"),
        ([(Op.REMOVE_VERTEX, "a", "a", 1.0), (Op.REMOVE, "a", "b", 1.0)], UnknownVertexError, "'a'"),
        (
            [(Op.REMOVE_VERTEX, "a", "a", 1.0), (Op.ADD, "a", "c", 1.0), (Op.REMOVE, "a", "b", 1.0)],
            UnknownEdgeError,
            "'a' and 'b'",
        ),
        ([(Op.REMOVE_VERTEX, "a", "a", 1.0)] * 2, UnknownVertexError, "'a'"),
    ],
)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_apply_removal_of_missing_element_rejects_whole_batch(
    rows: list[Operation], error: type[RipplevecError], named: str, one_by_one: bool
) -> None:
    graph = create_graph(edges(("a", "b"), ("b", "c")))
    before = graph.state()
    with pytest.raises(error, match=named):
        apply(graph, create_batch([(Op.ADD, "new", "a", 1.0), *rows]), one_by_one)
    with pytest.raises(error, match=named):
        apply(graph, create_batch(rows), one_by_one)
    assert are_equal(graph.state(), before)


def test_apply_several_missing_edges_are_counted_in_error() -> None:
    graph = create_graph(edges(("a", "b"), ("b", "c")))
    removals = Batch.from_any([("a", "b"), ("a", "c"), ("b", "a")], op=Op.REMOVE)
    with pytest.raises(UnknownEdgeError, match="'a' and 'c' and 1 more"):
        apply(graph, removals)


def test_apply_removal_of_missing_direction_raises() -> None:
    graph = create_graph(edges(("a", "b"), ("b", "a"), ("b", "c")), directed=True)
    with pytest.raises(UnknownEdgeError, match="'c' and 'b'"):
        apply(graph, Batch.from_any([("c", "b")], op=Op.REMOVE))
    apply(graph, Batch.from_any([("a", "b"), ("b", "a")], op=Op.REMOVE))
    assert weights_of(graph) == {("b", "c"): 1.0}


def test_self_loops_are_ignored_with_one_warning() -> None:
    graph = Graph()

    def apply_and_warn(batch: Batch) -> None:
        apply(graph, batch)
        graph.warn_self_loops()

    with pytest.warns(SelfLoopWarning, match="Self-loops are ignored") as caught:
        apply_and_warn(edges(("a", "a"), ("b", "b"), ("a", "b")))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply_and_warn(edges(("a", "a")))
    assert numbers_of(graph) == {"a": 0, "b": 1}
    assert graph.adjacency.edge_count == 1


def test_single_vertex_is_not_a_self_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = create_graph(Batch.vertices(["a", "b"]), Batch.vertices(["a"], Op.REMOVE_VERTEX))
    assert numbers_of(graph) == {"b": 1}


@settings(max_examples=60)
@given(known=st.lists(st.tuples(names, names), max_size=4), rows=st.lists(operations, min_size=1, max_size=12))
def test_apply_one_by_one_yields_one_step_per_arrival(known: list[tuple[Id, Id]], rows: list[Operation]) -> None:
    batch = create_batch([(Op.ADD, src, dst, weight) for _, src, dst, weight in rows])
    whole, single = create_graph(Batch.from_any(known)), create_graph(Batch.from_any(known))
    first_new = whole.next_arrival
    [delta] = apply(whole, batch)
    steps = apply(single, batch, one_by_one=True)
    arrivals = [step for step in steps if step.arrived.size]
    for step in steps:  # a step without a new vertex concerns known vertices only
        assert step.arrived.size == 1 or (not step.arrived.size and (step.arrival_numbers < first_new).all())
    assert [single.arrival[step.arrived].tolist() for step in arrivals] == [
        [first_new + i] for i in range(delta.arrived.size)
    ]
    for step in arrivals:  # each new vertex has its edges to earlier vertices
        assert (step.arrival_numbers.max(axis=1, initial=-1) == single.arrival[step.arrived[0]]).all()
    together = merge_deltas(steps)
    assert sorted(map(tuple, together.pairs.tolist())) == sorted(map(tuple, delta.pairs.tolist()))
    assert weights_of(single) == weights_of(whole)


def test_apply_one_by_one_removal_keeps_its_place() -> None:
    graph = create_graph(edges(("a", "b")))
    rows: list[Operation] = [(Op.ADD, "x", "a", 1.0), (Op.REMOVE, "a", "b", 1.0), (Op.ADD, "y", "a", 1.0)]
    steps = apply(graph, create_batch(rows), one_by_one=True)
    assert [step.arrival_numbers.tolist() for step in steps] == [[[2, 0]], [[0, 1]], [[3, 0]]]


def test_delta_describes_the_step() -> None:
    graph = create_graph(edges(("a", "b", 1.0), ("b", "c", 3.0)))
    [delta] = apply(graph, edges(("a", "b", 1.0), ("d", "b", 5.0)))
    assert delta.arrived.tolist() == graph.ids.find_rows(["d"]).tolist()
    assert graph.ids.to_list(delta.pairs.ravel()) == ["a", "b", "d", "b"]
    assert delta.arrival_numbers.tolist() == [[0, 1], [3, 1]]
    assert delta.changed_share.tolist() == [[1 / 2, 1 / 5], [1.0, 5 / 10]]
    assert (delta.vacated_rows.size, delta.removed_ids) == (0, [])
    row = graph.ids.find_row("b")
    [delta] = apply(graph, Batch.vertices(["b"], Op.REMOVE_VERTEX))
    assert graph.ids.to_list(delta.pairs[:, 0]) == ["a", "c", "d"]
    assert delta.arrival_numbers.tolist() == [[0, 1], [2, 1], [3, 1]]
    assert delta.changed_share.tolist() == [[1.0, 0.0]] * 3
    assert (delta.vacated_rows.tolist(), delta.removed_ids) == ([row], ["b"])


def test_apply_with_operations_compiles_no_kernel_again() -> None:
    graph = create_graph(edges(("a", "b")))
    compiled = len(apply_edges.signatures)
    apply(graph, create_batch([(Op.ADD, "c", "a", 1.0), (Op.REMOVE, "a", "b", 1.0)]))
    assert len(apply_edges.signatures) == compiled


def test_merge_deltas_concatenates_steps() -> None:
    graph = create_graph(edges(("a", "b")))
    steps = apply(
        graph, create_batch([(Op.ADD, "c", "a", 1.0), (Op.REMOVE_VERTEX, "a", "a", 1.0), (Op.ADD, "d", "b", 1.0)])
    )
    delta = merge_deltas(steps)
    assert len(steps) == 3
    assert delta.arrival_numbers.tolist() == [[2, 0], [1, 0], [2, 0], [3, 1]]
    assert delta.changed_share.shape == (4, 2)
    assert (delta.vacated_rows.size, delta.removed_ids) == (1, ["a"])
    nothing = merge_deltas([])
    assert (nothing.arrived.size, nothing.pairs.shape, nothing.changed_share.shape, nothing.removed_ids) == (
        0,
        (0, 2),
        (0, 2),
        [],
    )


def test_rows_of_unknown_ids_raises() -> None:
    graph = create_graph(edges(("a", 1)))
    assert graph.rows_of(["a", 1]).tolist() == [0, 1]
    with pytest.raises(UnknownVertexError, match="'1' and 1 more"):
        graph.rows_of(["a", "1", "b"])


def test_apply_any_column_type_gives_the_same_graph() -> None:
    """Columns of ints, of text and of both take different paths through the id table to the same graph."""
    pairs = np.random.default_rng(0).integers(0, 40, (300, 2))
    numbers = create_graph(Batch.from_any(pairs))
    texts = create_graph(Batch.from_any([(f"v{u}", f"v{v}") for u, v in pairs.tolist()]))
    both = create_graph(Batch.from_any([tuple(x if x % 2 else f"v{x}" for x in pair) for pair in pairs.tolist()]))
    for other in (texts, both):
        assert are_equal(numbers.adjacency.to_packed(), other.adjacency.to_packed())
        assert np.array_equal(numbers.arrival, other.arrival)


def test_apply_large_batch_equals_its_parts() -> None:
    pairs = np.random.default_rng(1).integers(0, 400, (3000, 2))
    whole = create_graph(Batch.from_any(pairs))
    parts = create_graph(*(Batch.from_any(part) for part in np.array_split(pairs, 7)))
    assert are_equal(whole.state(), parts.state())


def test_check_ids_that_do_not_match_rows_raises() -> None:
    graph = create_graph(edges(("a", "b"), ("b", "c")))
    graph.arrival[graph.ids.find_row("c")] = -1
    with pytest.raises(RipplevecError, match="do not match"):
        graph.check()
    graph.ids.remove(graph.ids.find_rows(["c"]))
    with pytest.raises(RipplevecError, match="free row has edges"):
        graph.check()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=40)
@given(history=batches, seed=st.integers(0, 1 << 20), text=st.booleans())
def test_graph_any_number_of_threads_gives_the_same_arrays(
    directed: bool, history: list[list[Operation]], seed: int, text: bool
) -> None:
    """Apply the same batches, all in bulk, on one, two and four threads, and edge by edge; compare every array."""
    rng = np.random.default_rng(seed)
    pairs = (rng.random((60, 2)) ** 2 * 40).astype(np.int64).tolist()
    large = Batch.from_any([(f"v{u}", f"v{v}", 0.3) if text else (u, v, 0.3) for u, v in pairs])
    one_by_one, *bulk = (Graph(directed=directed, threads=threads) for threads in (1, 1, 2, 4))
    for batch in [large, *map(create_batch, history), large]:
        try:
            expected = merge_deltas(apply(one_by_one, batch))
        except RipplevecError:
            continue  # the batch removes something that does not exist
        for graph in bulk:
            with enter_in_bulk():
                delta = merge_deltas(apply(graph, batch))
            for one, other in zip(delta, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    for graph in bulk:
        assert are_equal(graph.state(), one_by_one.state())
        graph.check()


@contextmanager
def enter_in_bulk() -> Iterator[None]:
    """Enter batches of any size as large ones, on all threads of the graph."""
    with (
        patch.object(id_table, "MIN_BULK_PAIRS", 1),
        patch.object(adjacency, "MIN_BULK_EDGES", 1),
        patch.object(graph_module, "MIN_EDGES_FOR_THREADS", 1),
    ):
        yield


def test_graph_copy_and_restored_graph_keep_threads() -> None:
    graph = Graph(threads=3)
    assert graph.copy().threads == 3
    assert Graph.from_state(graph.state(), directed=False, duplicates="add", threads=3).threads == 3
