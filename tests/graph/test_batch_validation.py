"""Validation of batches compared with applying them, and upper bounds of growth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Op, RipplevecError, UnknownEdgeError, UnknownVertexError
from ripplevec.batch import Id, ids_to_list
from ripplevec.embedder import Embedder
from ripplevec.graph.batch_validation import BatchAdmission, BatchSimulation, check_batch
from ripplevec.graph.graph import Graph

IDS = st.sampled_from([0, 1, 2, "a", 10**30])
ROWS = st.lists(st.tuples(IDS, IDS, st.sampled_from(list(Op))), max_size=5)


def create_batch(rows: list[tuple[Any, Any, Op]]) -> Batch:
    return Batch.of(*([row[column] for row in rows] for column in (0, 1)), op=[row[2] for row in rows])


def apply(graph: Graph, one: Batch) -> RipplevecError | None:
    try:
        check_batch(graph, one)
        list(graph.apply(one))
    except RipplevecError as error:
        return error
    return None


@given(batches=st.lists(ROWS, max_size=6), directed=st.booleans())
def test_admit_random_batches_accepts_exactly_the_applicable_ones(batches: Any, directed: bool) -> None:
    unchanged, live = Graph(directed=directed), Graph(directed=directed)
    for graph in (unchanged, live):
        list(graph.apply(Batch.of([0, "a"], [1, 2])))
    admission = BatchAdmission(unchanged)
    for rows in batches:
        try:
            admission.admit(create_batch(rows))
            rejection = None
        except RipplevecError as error:
            rejection = error
        assert type(rejection) is type(apply(live, create_batch(rows)))
    assert (len(unchanged), unchanged.adjacency.edge_count) == (4, 2)


@given(batches=st.lists(ROWS, max_size=6))
def test_admit_valid_rows_keeps_exactly_the_applicable_rows(batches: Any) -> None:
    unchanged, live = Graph(), Graph()
    admission = BatchAdmission(unchanged)
    for rows in batches:
        valid, rejected = admission.admit_valid_rows(create_batch(rows))
        found = {}
        for number, row in enumerate(rows):
            if error := apply(live, create_batch([row])):
                found[number] = type(error)
        assert {number: type(error) for number, error in rejected.items()} == found
        kept = [row for number, row in enumerate(rows) if number not in found]
        assert ids_to_list(valid.src) == [row[0] for row in kept]
        assert len(valid) == len(kept)
    assert len(unchanged) == 0


def test_admit_rejected_batch_leaves_no_trace() -> None:
    admission = BatchAdmission(Graph())
    admission.admit(Batch.of(["a"], ["b"]))
    with pytest.raises(UnknownVertexError):
        admission.admit(Batch.of(["c", "x"], ["b", "b"], op=[Op.ADD, Op.REMOVE]))
    with pytest.raises(UnknownVertexError, match="'c'"):
        admission.admit(Batch.of(["c"], ["b"], op=[Op.REMOVE]))
    admission.admit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))
    with pytest.raises(UnknownEdgeError):
        admission.admit(Batch.of(["a"], ["b"], op=[Op.REMOVE]))


def test_admit_valid_rows_filters_all_columns() -> None:
    one = Batch.of([1, 2, 3], [4, 5, 6], [1.0, 2.0, 3.0], [Op.ADD, Op.REMOVE, Op.ADD], [7.0, 8.0, 9.0])
    valid, rejected = BatchAdmission(Graph()).admit_valid_rows(one)
    assert list(rejected) == [1]
    assert [column.tolist() for column in (valid.src, valid.dst, valid.weight, valid.op, valid.time)] == [
        [1, 3],
        [4, 6],
        [1.0, 3.0],
        [0, 0],
        [7.0, 9.0],
    ]


def test_simulate_reports_all_invalid_rows() -> None:
    graph = Graph()
    list(graph.apply(Batch.of(["a", "b"], ["b", "c"])))
    rejected = BatchSimulation(graph).simulate(
        create_batch([("a", "c", Op.REMOVE), ("x", "y", Op.REMOVE), ("z", "z", Op.REMOVE_VERTEX)])
    )
    assert list(rejected.errors) == [0, 1, 2]
    assert (rejected.missing_edges, rejected.unknown_ids) == ([("a", "c")], ["x", "y", "z"])
    assert isinstance(rejected.batch_error, UnknownVertexError)
    assert BatchSimulation(graph).simulate(Batch.of(["a"], ["z"])).batch_error is None


class RemoteGraphStub:
    """A graph that answers only requests announced by `prefetch_batch`."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.batches = graph, list[Batch]()
        self.ids, self.pairs = set[Id](), set[tuple[Id, Id]]()
        self.rows_of, self.has_edges = graph.rows_of, graph.has_edges

    @property
    def directed(self) -> bool:
        return self.graph.directed

    def prefetch_batch(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.ids |= {*ids_to_list(batch.src), *ids_to_list(batch.dst)}
        self.pairs |= set(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))

    def has_vertex(self, name: Id) -> bool:
        assert name in self.ids
        return self.graph.has_vertex(name)

    def has_edge(self, src: Id, dst: Id) -> bool:
        assert (src, dst) in self.pairs
        return self.graph.has_edge(src, dst)


@given(batches=st.lists(ROWS, max_size=6), directed=st.booleans())
def test_admission_remote_graph_prefetches_everything_it_reads(batches: Any, directed: bool) -> None:
    graph = Graph(directed=directed)
    list(graph.apply(Batch.of([0, "a"], [1, 2])))
    local, remote = BatchAdmission(graph), BatchAdmission(RemoteGraphStub(graph))
    for rows in batches:
        valid, rejected = local.admit_valid_rows(create_batch(rows))
        same, also = remote.admit_valid_rows(create_batch(rows))
        assert ids_to_list(same.src) == ids_to_list(valid.src)
        assert [str(error) for error in also.values()] == [str(error) for error in rejected.values()]


@pytest.mark.parametrize(
    "rows", [[("a", "x", Op.REMOVE)], [("a", 0, Op.REMOVE)], [("a", "a", Op.ADD), ("x", "x", Op.REMOVE_VERTEX)]]
)
def test_check_batch_remote_graph_raises_the_same_message(rows: Any) -> None:
    graph = Graph()
    list(graph.apply(Batch.of([0, "a"], [1, 2])))
    with pytest.raises(RipplevecError) as local:
        check_batch(graph, create_batch(rows))
    with pytest.raises(type(local.value)) as remote:
        check_batch(RemoteGraphStub(graph), create_batch(rows))
    assert str(remote.value) == str(local.value)


def test_admit_additions_only_skips_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchSimulation, "simulate", lambda *_: pytest.fail("slow"))
    admission = BatchAdmission(Graph())
    for _ in range(3):
        admission.admit(Batch.of(np.arange(5), np.arange(5) + 1))
        assert admission.admit_valid_rows(Batch.of([1], [2], op=[Op.VERTEX]))[1] == {}


EDGES = [(i, (i * k + 1) % 20) for i in range(20) for k in (1, 3) if i != (i * k + 1) % 20]


def create_engine(**parameters: Any) -> Any:
    return Embedder(dim=3, threads=1, **parameters).fit(EDGES).engine


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.sampled_from([Op.ADD, Op.VERTEX])), max_size=12),
    st.lists(st.integers(0, 19), max_size=3, unique=True),
    st.sampled_from(["add", "ignore", "replace"]),
)
def test_bound_growth_random_batch_is_an_upper_bound(
    added: list[tuple[int, int, Op]], removed: list[int], duplicates: str
) -> None:
    one = create_engine(anchor_growth=0, anchor_pace="immediate", duplicates=duplicates)
    rows = added + [(name, name, Op.REMOVE_VERTEX) for name in removed]
    if not rows:
        return
    src, _, op = zip(*rows, strict=True)
    batch = Batch.of(list(src), [target if what == Op.ADD else name for name, target, what in rows], op=list(op))
    vertices, edge_events = len(one), one.edge_events
    one.anchor_growth = 1e-12
    due = one.may_trigger_anchor(batch)
    one.anchor_growth = 0
    one.apply(batch)
    grown = len(one) > vertices or one.edge_events > edge_events
    assert due or not grown


@pytest.mark.parametrize("growth", [0.05, 0.2, 0.5])
def test_bound_growth_predicts_the_batch_that_triggers_an_anchor(growth: float) -> None:
    one = create_engine(anchor_growth=growth, anchor_pace="immediate")
    predicted, due = [], []
    for number in range(60):
        batch = Batch.arrival(f"v{number}", [number % 20, (number + 3) % 20, (number + 7) % 20])
        predicted.append(one.may_trigger_anchor(batch))
        due.append(one.apply(batch).anchored)
    assert predicted == due
    assert any(due)


def test_bound_growth_counts_expiring_edges() -> None:
    model = Embedder(dim=3, threads=1, expire_after=10.0, anchor_growth=0.1, anchor_pace="immediate")
    model.fit(Batch.of(*zip(*EDGES, strict=True), time=np.linspace(0, 5, len(EDGES))))
    late, soon = (Batch.of(["x"], [0], time=[time]) for time in (13.0, 6.0))
    assert model.engine.may_trigger_anchor(late)
    assert not model.engine.may_trigger_anchor(soon)
    assert model.partial_fit(late).anchored
