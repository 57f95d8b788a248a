from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Op, RipplevecError, UnknownEdgeError, UnknownVertexError
from ripplevec.batch import Id, ids_to_list
from ripplevec.graph.batch_validation import BatchAdmission, BatchSimulation, check_batch
from ripplevec.graph.graph import Graph

NAMES = st.sampled_from([0, 1, 2, "a", 10**30])
ROWS = st.lists(st.tuples(NAMES, NAMES, st.sampled_from(list(Op))), max_size=5)


def batch(rows: list[tuple[Any, Any, Op]]) -> Batch:
    return Batch.of(*([row[column] for row in rows] for column in (0, 1)), op=[row[2] for row in rows])


def apply(graph: Graph, one: Batch) -> RipplevecError | None:
    try:
        list(graph.apply(one))
    except RipplevecError as error:
        return error
    return None


@given(batches=st.lists(ROWS, max_size=6), directed=st.booleans())
def test_a_batch_is_admitted_if_it_can_be_applied_after_the_others(batches: Any, directed: bool) -> None:
    still, live = Graph(directed=directed), Graph(directed=directed)
    for graph in (still, live):
        list(graph.apply(Batch.of([0, "a"], [1, 2])))
    admission = BatchAdmission(still)
    for rows in batches:
        try:
            admission.admit(batch(rows))
            refusal = None
        except RipplevecError as error:
            refusal = error
        assert type(refusal) is type(apply(live, batch(rows)))
    assert (len(still), still.adjacency.edge_count) == (4, 2)


@given(batches=st.lists(ROWS, max_size=6))
def test_sifted_the_good_rows_are_those_that_can_be_applied_one_by_one(batches: Any) -> None:
    still, live = Graph(), Graph()
    admission = BatchAdmission(still)
    for rows in batches:
        good, refused = admission.admit_valid_rows(batch(rows))
        found = {}
        for number, row in enumerate(rows):
            if error := apply(live, batch([row])):
                found[number] = type(error)
        assert {number: type(error) for number, error in refused.items()} == found
        kept = [row for number, row in enumerate(rows) if number not in found]
        assert ids_to_list(good.src) == [row[0] for row in kept]
        assert len(good) == len(kept)
    assert len(still) == 0


def test_a_refused_batch_leaves_no_trace_in_the_rehearsal() -> None:
    admission = BatchAdmission(Graph())
    admission.admit(Batch.of(["a"], ["b"]))
    with pytest.raises(UnknownVertexError):
        admission.admit(Batch.of(["c", "x"], ["b", "b"], op=[Op.ADD, Op.REMOVE]))
    with pytest.raises(UnknownVertexError, match="'c'"):
        admission.admit(Batch.of(["c"], ["b"], op=[Op.REMOVE]))
    admission.admit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))
    with pytest.raises(UnknownEdgeError):
        admission.admit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))


def test_columns_beside_the_ids_are_sifted_too() -> None:
    one = Batch.of([1, 2, 3], [4, 5, 6], [1.0, 2.0, 3.0], [Op.ADD, Op.REMOVE, Op.ADD], [7.0, 8.0, 9.0])
    good, refused = BatchAdmission(Graph()).admit_valid_rows(one)
    assert list(refused) == [1]
    assert [column.tolist() for column in (good.src, good.dst, good.weight, good.op, good.time)] == [
        [1, 3],
        [4, 6],
        [1.0, 3.0],
        [0, 0],
        [7.0, 9.0],
    ]


def test_a_rehearsal_says_all_that_is_wrong() -> None:
    graph = Graph()
    list(graph.apply(Batch.of(["a", "b"], ["b", "c"])))
    refused = BatchSimulation(graph).simulate(batch([("a", "c", Op.REMOVE), ("x", "y", Op.REMOVE), ("z", "z", Op.REMOVE_VERTEX)]))
    assert list(refused.errors) == [0, 1, 2]
    assert (refused.missing_edges, refused.unknown_ids) == ([("a", "c")], ["x", "y", "z"])
    assert isinstance(refused.batch_error, UnknownVertexError)
    assert BatchSimulation(graph).simulate(Batch.of(["a"], ["z"])).batch_error is None


class Elsewhere:
    """A graph that answers only what it was told would be asked."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.batches = graph, list[Batch]()
        self.names, self.pairs = set[Id](), set[tuple[Id, Id]]()
        self.rows_of, self.has_edges = graph.rows_of, graph.has_edges

    @property
    def directed(self) -> bool:
        return self.graph.directed

    def prefetch_batch(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.names |= {*ids_to_list(batch.src), *ids_to_list(batch.dst)}
        self.pairs |= set(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))

    def has_vertex(self, name: Id) -> bool:
        assert name in self.names
        return self.graph.has_vertex(name)

    def has_edge(self, src: Id, dst: Id) -> bool:
        assert (src, dst) in self.pairs
        return self.graph.has_edge(src, dst)


@given(batches=st.lists(ROWS, max_size=6), directed=st.booleans())
def test_a_graph_that_lies_elsewhere_is_told_beforehand_what_it_will_be_asked(batches: Any, directed: bool) -> None:
    graph = Graph(directed=directed)
    list(graph.apply(Batch.of([0, "a"], [1, 2])))
    here, there = BatchAdmission(graph), BatchAdmission(Elsewhere(graph))
    for rows in batches:
        good, refused = here.admit_valid_rows(batch(rows))
        same, also = there.admit_valid_rows(batch(rows))
        assert ids_to_list(same.src) == ids_to_list(good.src)
        assert [str(error) for error in also.values()] == [str(error) for error in refused.values()]


@pytest.mark.parametrize(
    "rows", [[("a", "x", Op.REMOVE)], [("a", 0, Op.REMOVE)], [("a", "a", Op.ADD), ("x", "x", Op.REMOVE_VERTEX)]]
)
def test_a_batch_is_refused_in_the_same_words_wherever_the_graph_lies(rows: Any) -> None:
    graph = Graph()
    list(graph.apply(Batch.of([0, "a"], [1, 2])))
    with pytest.raises(RipplevecError) as here:
        list(graph.apply(batch(rows)))
    with pytest.raises(type(here.value)) as there:
        check_batch(Elsewhere(graph), batch(rows))
    assert str(there.value) == str(here.value)


def test_additions_alone_are_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchSimulation, "simulate", lambda *_: pytest.fail("slow"))
    admission = BatchAdmission(Graph())
    for _ in range(3):
        admission.admit(Batch.of(np.arange(5), np.arange(5) + 1))
        assert admission.admit_valid_rows(Batch.of([1], [2], op=[Op.VERTEX]))[1] == {}
