"""The graph against a plain one made of dicts: order, numbers, removals, and batches that change nothing."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.batch import Batch, Id, Op
from ripplevec.errors import RipplevecError, SelfLoopWarning, UnknownEdgeError, UnknownVertexError
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


class Plain:
    """Arrival numbers by name and weights by pair."""

    def __init__(self, directed: bool) -> None:
        self.directed = directed
        self.numbers: dict[Id, int] = {}
        self.weights: dict[Any, float] = {}
        self.next = 0

    def key(self, src: Id, dst: Id) -> Any:
        return (src, dst) if self.directed else frozenset((src, dst))

    def mention(self, name: Id) -> None:
        if name not in self.numbers:
            self.numbers[name] = self.next
            self.next += 1

    def after(self, rows: list[Operation]) -> Plain | None:
        """A copy with the operations done, None where one of them cannot be."""
        plain = copy.deepcopy(self)
        return plain if all(plain.do(*row) for row in rows) else None

    def do(self, op: Op, src: Id, dst: Id, weight: float) -> bool:
        pair, alone = self.key(src, dst), op >= Op.VERTEX
        if op in (Op.ADD, Op.VERTEX):
            self.mention(src)
            if not alone:
                self.mention(dst)
            if not alone and src != dst:
                self.weights[pair] = self.weights.get(pair, 0.0) + weight
            return True
        if op == Op.REMOVE:
            return self.weights.pop(pair, None) is not None
        self.weights = {pair: weight for pair, weight in self.weights.items() if src not in pair}
        return self.numbers.pop(src, None) is not None


def batch_of(rows: list[Operation]) -> Batch:
    op, src, dst, weight = (list(column) for column in zip(*rows, strict=True))
    return Batch.of(src, dst, weight, op)


def edges(*pairs: tuple[Id, ...]) -> Batch:
    return Batch.from_any(list(pairs))


def apply(graph: Graph, batch: Batch, one_by_one: bool = False) -> list[GraphDelta]:
    return list(graph.apply(batch, one_by_one=one_by_one))


def grown_by(*batches: Batch, directed: bool = False, one_by_one: bool = False) -> Graph:
    graph = Graph(directed=directed)
    for batch in batches:
        apply(graph, batch, one_by_one)
    graph.check()
    return graph


def numbers_of(graph: Graph) -> dict[Id, int]:
    rows = graph.rows_by_arrival()
    return dict(zip(graph.ids.to_list(rows), graph.arrival[rows].tolist(), strict=True))


def weights_of(graph: Graph) -> dict[Any, float]:
    """Weights by pair of names, as the plain graph has them."""
    links, found = graph.adjacency.links, {}
    for row in graph.rows_by_arrival():
        for slot in range(links.begin[row], links.begin[row] + links.degree[row]):
            ends = graph.ids.to_list(np.array([row, links.neighbor[slot]]))
            if links.outgoing[slot] > 0:
                found[tuple(ends) if graph.adjacency.directed else frozenset(ends)] = float(links.outgoing[slot])
    return found


def same(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def restored(graph: Graph) -> Graph:
    adjacency = graph.adjacency
    return Graph.from_state(graph.state(), directed=adjacency.directed, duplicates=adjacency.duplicates)


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=150)
@given(history=batches)
def test_agrees_with_a_plain_graph_and_a_refused_batch_changes_nothing(
    directed: bool, history: list[list[Operation]]
) -> None:
    """The same history, whole batches, arrival by arrival, and saved and restored after each batch."""
    plain, graph, single, again = (
        Plain(directed),
        Graph(directed=directed),
        Graph(directed=directed),
        Graph(directed=directed),
    )
    for rows in history:
        batch, after = batch_of(rows), plain.after(rows)
        if after is None:
            for refusing, one_by_one in ((graph, False), (single, True)):
                before = refusing.state()
                with pytest.raises((UnknownVertexError, UnknownEdgeError)):
                    apply(refusing, batch, one_by_one)
                assert same(refusing.state(), before)
            continue
        plain = after
        apply(graph, batch)
        apply(single, batch, one_by_one=True)
        again = restored(again)
        apply(again, batch)
        for one in (graph, single):
            one.check()
            assert numbers_of(one) == plain.numbers
            assert weights_of(one) == plain.weights
            assert one.next_arrival == plain.next
        assert same(again.state(), graph.state())


@pytest.mark.parametrize("one_by_one", [False, True])
def test_vertices_arrive_in_order_of_first_mention_source_before_target(one_by_one: bool) -> None:
    graph = grown_by(edges(("c", "a"), ("a", "b"), ("d", "c"), ("d", "e")), one_by_one=one_by_one)
    assert numbers_of(graph) == {"c": 0, "a": 1, "b": 2, "d": 3, "e": 4}


def test_unknown_neighbors_are_created_and_known_vertices_get_more_edges() -> None:
    graph = grown_by(Batch.arrival("a", ["b", "c"]), Batch.arrival("b", ["c", "d"]))
    assert list(numbers_of(graph)) == ["a", "b", "c", "d"]
    assert graph.adjacency.edge_count == 4


def test_an_int_and_its_text_are_different_vertices() -> None:
    graph = grown_by(edges((1, "1"), ("1", 2)))
    assert len(graph) == 3
    assert weights_of(graph) == {frozenset({1, "1"}): 1.0, frozenset({"1", 2}): 1.0}


@pytest.mark.parametrize(("duplicates", "weight"), [("add", 7.0), ("ignore", 2.0), ("replace", 5.0)])
def test_repeated_edges(duplicates: str, weight: float) -> None:
    graph = Graph(duplicates=duplicates)
    apply(graph, edges(("a", "b", 2.0), ("b", "a", 5.0)))
    assert weights_of(graph) == {frozenset("ab"): weight}


def test_rows_are_used_again_but_arrival_numbers_never() -> None:
    graph = grown_by(edges(("a", "b"), ("b", "c")))
    for number in range(3, 20):
        [delta] = apply(graph, Batch.vertices([graph.ids.to_list(graph.rows_by_arrival()[:1])[0]], Op.REMOVE_VERTEX))
        [arrival] = apply(graph, edges(("x" * number, "y")) if number == 3 else Batch.vertices(["x" * number]))
        assert delta.vacated_rows[0] in arrival.arrived
        graph.check()
    assert graph.row_count == 4
    assert sorted(numbers_of(graph).values()) == list(range(graph.next_arrival - len(graph), graph.next_arrival))


def test_operations_are_done_in_the_order_given() -> None:
    add, remove, out = Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX
    graph = grown_by(edges(("a", "b", 3.0), ("b", "c")))
    steps: list[Operation] = [
        (remove, "a", "b", 1.0),
        (add, "b", "a", 0.5),
        (out, "a", "a", 1.0),
        (add, "c", "a", 2.0),
        (out, "b", "b", 1.0),
        (add, "d", "e", 1.0),
        (remove, "e", "d", 1.0),
    ]
    deltas = apply(graph, batch_of(steps))
    graph.check()
    assert numbers_of(graph) == {"c": 2, "a": 3, "d": 4, "e": 5}
    assert weights_of(graph) == {frozenset("ac"): 2.0}
    assert merge_deltas(deltas).removed == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "error", "named"),
    [
        ([(Op.REMOVE, "a", "nobody", 1.0)], UnknownVertexError, "'nobody'"),
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
def test_a_removal_of_what_is_not_there_refuses_the_whole_batch(
    rows: list[Operation], error: type[RipplevecError], named: str, one_by_one: bool
) -> None:
    graph = grown_by(edges(("a", "b"), ("b", "c")))
    before = graph.state()
    with pytest.raises(error, match=named):
        apply(graph, batch_of([(Op.ADD, "new", "a", 1.0), *rows]), one_by_one)
    with pytest.raises(error, match=named):
        apply(graph, batch_of(rows), one_by_one)
    assert same(graph.state(), before)


def test_missing_edges_are_counted() -> None:
    graph = grown_by(edges(("a", "b"), ("b", "c")))
    gone = Batch.from_any([("a", "b"), ("a", "c"), ("b", "a")], op=Op.REMOVE)
    with pytest.raises(UnknownEdgeError, match="'a' and 'c' and 1 more"):
        apply(graph, gone)


def test_a_direction_that_is_not_there_cannot_be_removed() -> None:
    graph = grown_by(edges(("a", "b"), ("b", "a"), ("b", "c")), directed=True)
    with pytest.raises(UnknownEdgeError, match="'c' and 'b'"):
        apply(graph, Batch.from_any([("c", "b")], op=Op.REMOVE))
    apply(graph, Batch.from_any([("a", "b"), ("b", "a")], op=Op.REMOVE))
    assert weights_of(graph) == {("b", "c"): 1.0}


def test_self_loops_are_left_out_with_one_warning() -> None:
    graph = Graph()

    def apply_and_mention(batch: Batch) -> None:
        apply(graph, batch)
        graph.warn_self_loops()

    with pytest.warns(SelfLoopWarning, match="self-loops") as caught:
        apply_and_mention(edges(("a", "a"), ("b", "b"), ("a", "b")))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply_and_mention(edges(("a", "a")))
    assert numbers_of(graph) == {"a": 0, "b": 1}
    assert graph.adjacency.edge_count == 1


def test_a_vertex_alone_is_no_self_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = grown_by(Batch.vertices(["a", "b"]), Batch.vertices(["a"], Op.REMOVE_VERTEX))
    assert numbers_of(graph) == {"b": 1}


@settings(max_examples=60)
@given(known=st.lists(st.tuples(names, names), max_size=4), rows=st.lists(operations, min_size=1, max_size=12))
def test_one_step_per_arrival_and_together_the_whole_batch(known: list[tuple[Id, Id]], rows: list[Operation]) -> None:
    batch = batch_of([(Op.ADD, src, dst, weight) for _, src, dst, weight in rows])
    whole, single = grown_by(Batch.from_any(known)), grown_by(Batch.from_any(known))
    first_new = whole.next_arrival
    [delta] = apply(whole, batch)
    steps = apply(single, batch, one_by_one=True)
    arrivals = [step for step in steps if step.arrived.size]
    for step in steps:  # a step without a newcomer is between known vertices alone
        assert step.arrived.size == 1 or (not step.arrived.size and (step.arrival_numbers < first_new).all())
    assert [single.arrival[step.arrived].tolist() for step in arrivals] == [
        [first_new + i] for i in range(delta.arrived.size)
    ]
    for step in arrivals:  # each comes with its edges to those before it
        assert (step.arrival_numbers.max(axis=1, initial=-1) == single.arrival[step.arrived[0]]).all()
    together = merge_deltas(steps)
    assert sorted(map(tuple, together.pairs.tolist())) == sorted(map(tuple, delta.pairs.tolist()))
    assert weights_of(single) == weights_of(whole)


def test_arrival_by_arrival_an_edge_that_goes_keeps_its_place() -> None:
    graph = grown_by(edges(("a", "b")))
    rows: list[Operation] = [(Op.ADD, "x", "a", 1.0), (Op.REMOVE, "a", "b", 1.0), (Op.ADD, "y", "a", 1.0)]
    steps = apply(graph, batch_of(rows), one_by_one=True)
    assert [step.arrival_numbers.tolist() for step in steps] == [[[2, 0]], [[0, 1]], [[3, 0]]]


def test_a_step_says_what_it_did() -> None:
    graph = grown_by(edges(("a", "b", 1.0), ("b", "c", 3.0)))
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


def test_steps_joined() -> None:
    graph = grown_by(edges(("a", "b")))
    steps = apply(
        graph, batch_of([(Op.ADD, "c", "a", 1.0), (Op.REMOVE_VERTEX, "a", "a", 1.0), (Op.ADD, "d", "b", 1.0)])
    )
    delta = merge_deltas(steps)
    assert len(steps) == 3
    assert delta.arrival_numbers.tolist() == [[2, 0], [1, 0], [2, 0], [3, 1]]
    assert delta.changed_share.shape == (4, 2)
    assert (delta.vacated_rows.size, delta.removed_ids) == (1, ["a"])
    nothing = merge_deltas([])
    assert (nothing.arrived.size, nothing.pairs.shape, nothing.chance.shape, nothing.removed) == (0, (0, 2), (0, 2), [])


def test_known_rows_by_name() -> None:
    graph = grown_by(edges(("a", 1)))
    assert graph.rows_of(["a", 1]).tolist() == [0, 1]
    with pytest.raises(UnknownVertexError, match="'1' and 1 more"):
        graph.rows_of(["a", "1", "b"])


def test_the_same_operations_on_all_kinds_of_columns() -> None:
    """A batch of ints, of text and of both go different ways through the names, to the same graph."""
    pairs = np.random.default_rng(0).integers(0, 40, (300, 2))
    numbers = grown_by(Batch.from_any(pairs))
    texts = grown_by(Batch.from_any([(f"v{u}", f"v{v}") for u, v in pairs.tolist()]))
    both = grown_by(Batch.from_any([tuple(x if x % 2 else f"v{x}" for x in pair) for pair in pairs.tolist()]))
    for other in (texts, both):
        assert same(numbers.adjacency.to_packed(), other.adjacency.to_packed())
        assert np.array_equal(numbers.arrival, other.arrival)


def test_a_large_batch_is_the_same_as_its_parts() -> None:
    pairs = np.random.default_rng(1).integers(0, 400, (3000, 2))
    whole = grown_by(Batch.from_any(pairs))
    parts = grown_by(*(Batch.from_any(part) for part in np.array_split(pairs, 7)))
    assert same(whole.state(), parts.state())


def test_names_that_do_not_match_rows_are_noticed() -> None:
    graph = grown_by(edges(("a", "b"), ("b", "c")))
    graph.arrival[graph.ids.find_row("c")] = -1
    with pytest.raises(RipplevecError, match="do not match"):
        graph.check()
    graph.ids.remove(graph.ids.find_rows(["c"]))
    with pytest.raises(RipplevecError, match="free row has edges"):
        graph.check()
