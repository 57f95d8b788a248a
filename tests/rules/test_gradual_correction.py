"""Gradual corrections: on an unchanged graph, slice by slice, and within streams of every kind."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import signal
from concurrent.futures import Future
from itertools import cycle
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from correction_streams import (
    COPIES,
    DATA,
    KINDS,
    TWO_VIEWS,
    apply_all,
    make_model,
    make_stream,
    stage_of,
    timed,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ripplevec import Batch, Embedder, Op, Session, SpectralView
from ripplevec.durability.journal import Journal
from ripplevec.engine import correction_schedule
from ripplevec.engine.engine import Engine
from ripplevec.errors import StateError
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.rules import correction_pace, correction_workspace, gradual_correction
from ripplevec.rules.gradual_correction import CHUNK_ROWS, STAGES, GradualCorrection
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views import background_choice
from ripplevec.views.recipes import RECIPES
from ripplevec.views.view_choice import ViewChoice

ONE_VIEW: dict[str, Any] = {"views": [SpectralView(tau=1.0)], "dim": 3}  # three columns separate four communities
EQUAL_VIEWS: dict[str, Any] = {"views": [SpectralView(tau=0.5), SpectralView(tau_per_degree=4.0)], "dim": 6}


@pytest.fixture(autouse=True)
def columns_in_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filter few columns of small graphs in two parts as well, of different widths."""
    monkeypatch.setattr(correction_workspace, "LARGE_BLOCK_BYTES", 0)
    monkeypatch.setattr(correction_workspace, "MIN_SPARE_COLUMNS", 2)
    monkeypatch.setattr(correction_workspace, "FLOATS_PER_LINE", 2)


# ---------------------------------------------------------------------- unchanged graphs


def grown(edges: Any = DATA.edges, **parameters: Any) -> Engine:
    """Return an engine that got a third of its edges after the start."""
    first = 2 * len(edges) // 3
    model = Embedder(**{"dim": 6, "anchor_growth": 0, "seed": 1, **parameters}).fit(edges[:first])
    model.partial_fit(edges[first:])
    return model.engine


def correct(engine: Engine, credits: Any = (inf,), threads: int = 1, threshold: float = 0.0) -> NDArray[np.int64]:
    """Run a whole correction with these credits, repeated; return the announced rows."""
    engine.correction = engine.rule.begin_correction(engine.store, engine.sequence)  # type: ignore[attr-defined]
    engine.rule.threads, engine.change_threshold = threads, threshold  # type: ignore[attr-defined]
    announced = []
    for credit in cycle(credits):
        announced.append(engine._advance_correction(credit))
        if engine.correction is None:
            return np.concatenate(announced)
    raise AssertionError("no credits")


def principal_cosines(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    one, other = (np.linalg.qr(rows.astype(np.float64))[0] for rows in (first, second))
    return np.linalg.svd(one.T @ other, compute_uv=False)


@pytest.mark.parametrize(
    "parameters", [ONE_VIEW, ONE_VIEW | {"storage": "float16"}, ONE_VIEW | {"normalize": False}, EQUAL_VIEWS]
)
def test_gradual_correction_of_an_unchanged_graph_equals_an_immediate_anchor(parameters: dict[str, Any]) -> None:
    engine = grown(**parameters)
    immediate = engine.clone()
    drifted = engine.rule.orthogonality_error(engine.store)
    immediate.anchor()
    correct(engine, [500.0])
    rows = np.arange(engine.graph.row_count)
    found, expected = engine.rule.coordinates, immediate.rule.coordinates  # type: ignore[attr-defined]
    assert (found.mu >= expected.mu - 1e-3).all()  # at least as good: a gradual correction estimates its cutoff
    np.testing.assert_allclose(found.mu, expected.mu, atol=1e-2)
    np.testing.assert_allclose(found.tau, expected.tau, rtol=1e-6)
    for part in found.parts:  # a spectral gap follows, so that the subspace is well defined
        spans = [one.store.vectors[rows, part] for one in (engine, immediate)]
        assert principal_cosines(*spans).min() > 0.98
    one, other = engine.get_vectors(rows), immediate.get_vectors(rows)
    cosines = (one * other).sum(axis=1) / (np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1))
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.9
    assert engine.rule.orthogonality_error(engine.store) < (0.02 if "storage" in parameters else 0.005) < drifted
    np.testing.assert_array_equal(engine.store.placed, immediate.store.placed)
    assert engine.anchors == 1
    engine.correction = None


@pytest.mark.parametrize("degree", [4, 5])
def test_columns_filtered_in_parts_equal_those_filtered_together(degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an unchanged graph; an odd degree is rounded up, because the columns must return to their block."""
    results = []
    for parts in (1, 2, 3):
        monkeypatch.setattr(GradualCorrection, "most_column_parts", parts)
        engine = grown(dim=6, views=[SpectralView(tau=0.5, degree=degree, share=2), SpectralView(tau_per_degree=4.0)])
        workspace = engine.rule.prepare_workspace(engine.store, GradualCorrection)  # type: ignore[attr-defined]
        assert workspace.spare_columns == {1: 6, 2: 4, 3: 2}[parts]
        correct(engine, [500.0])
        results.append(engine.store.vectors[: engine.graph.row_count].copy())
    np.testing.assert_allclose(results[1], results[0], atol=1e-4)
    np.testing.assert_allclose(results[2], results[0], atol=1e-4)


def test_gradual_corrections_converge_to_the_exact_eigenvalues() -> None:
    engine = grown()
    exact = Embedder(dim=6).fit(DATA.edges).engine.rule.coordinates.mu
    errors = [np.abs(engine.rule.coordinates.mu - exact).max()]  # type: ignore[attr-defined]
    for _ in range(5):
        correct(engine)
        errors.append(np.abs(engine.rule.coordinates.mu - exact).max())  # type: ignore[attr-defined]
    assert errors[1] < 0.5 * errors[0]
    assert errors[-1] < 2e-3


def test_gradual_corrections_have_the_same_bits_for_any_number_of_blas_threads() -> None:
    """BLAS adds in another order on two threads, but not for every size of matrices: for this one it does."""
    edges, results = planted_partition(130, 8, inside=5.0, seed=2).edges, []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            engine = grown(edges, dim=118)
            for _ in range(2):  # the second one begins with a rotation
                correct(engine)
            results.append(engine.digest())
    assert results[0] == results[1]


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3])
def test_gradual_correction_announces_rows_that_moved_beyond_the_threshold(threshold: float) -> None:
    engine = grown()
    rows = np.arange(engine.graph.row_count)
    before = engine.get_vectors(rows)
    announced = correct(engine, [300.0], threshold=threshold)
    distance = np.linalg.norm(engine.get_vectors(rows) - before, axis=1)
    clear = np.abs(distance - threshold) > 1e-5
    assert np.unique(announced).size == announced.size
    np.testing.assert_array_equal(np.isin(rows, announced)[clear], (distance > threshold)[clear])


@pytest.fixture(scope="module")
def large() -> dict[str, Engine]:
    """Engines with three chunks of rows, and the reference result of each."""
    rng = np.random.default_rng(0)
    vertices = 2 * CHUNK_ROWS + 300
    ends = rng.integers(0, vertices, (4 * vertices, 2))
    ends[:, 1] = np.where(rng.random(len(ends)) < 0.8, ends[:, 1] // 5 * 5 + ends[:, 0] % 5, ends[:, 1])
    edges = ends[(ends[:, 0] != ends[:, 1]) & (ends.max(axis=1) < vertices)]
    kinds = {"plain": {}, "float16": {"storage": "float16"}, "two views": {"views": TWO_VIEWS}}
    return {kind: grown(edges, **parameters) for kind, parameters in kinds.items()}


RESULTS: dict[str, tuple[Any, ...]] = {}


def result_of(engine: Engine, credits: Any, threads: int) -> tuple[Any, ...]:
    one = engine.clone()
    announced = correct(one, credits, threads, 0.01)
    coordinates = {name: array.tobytes() for name, array in one.rule.coordinates.state().items()}  # type: ignore[attr-defined]
    return one.store.vectors[: one.graph.row_count].tobytes(), coordinates, np.sort(announced).tolist(), one.digest()


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["plain", "float16", "two views"]),
    credits=st.lists(st.sampled_from([0.5, 40.0, 333.3, 2_000.0, 9_999.0, 70_000.0, inf]), min_size=1, max_size=6),
    threads=st.sampled_from([1, 2, 4]),
)
def test_gradual_correction_has_the_same_bits_however_it_is_sliced(
    large: dict[str, Engine], kind: str, credits: list[float], threads: int
) -> None:
    if max(credits) < 300:
        credits = [*credits, 2_000.0]  # a tiny credit alone takes very long
    if kind not in RESULTS:
        RESULTS[kind] = result_of(large[kind], [inf], 1)
    assert result_of(large[kind], credits, threads) == RESULTS[kind]


# ---------------------------------------------------------------------- streams


@pytest.mark.parametrize(
    ("kind", "how"), [*((kind, "save") for kind in KINDS), *(("plain", how) for how in COPIES if how != "save")]
)
@pytest.mark.usefixtures("slow_corrections")
def test_stream_continued_from_a_copy_at_every_stage_has_the_same_bits(kind: str, how: str, tmp_path: Path) -> None:
    start, stream = make_stream()
    model, copies = make_model(kind, start), dict[str, tuple[int, Embedder]]()
    for number, batch in enumerate(stream):
        model.partial_fit(timed(batch, model))
        for stage, (until, copied) in copies.items():
            if number <= until:
                copied.partial_fit(timed(batch, copied))
            if number == until:
                assert copied.digest() == model.digest(), stage
                np.testing.assert_array_equal(copied.to_numpy(), model.to_numpy())
        name = stage_of(model)
        if name is not None and name not in copies:
            copies[name] = number + 50, COPIES[how](model, tmp_path / name)
            assert copies[name][1].digest() == model.digest()
    assert set(copies) == set(STAGES)
    assert max(until for until, _ in copies.values()) < len(stream)


@pytest.mark.parametrize("kind", ["plain", "float16", "two views", "decay"])
@pytest.mark.usefixtures("slow_corrections")
def test_stream_has_the_same_bits_for_any_number_of_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradual_correction, "CHUNK_ROWS", 64)  # several chunks per call
    start, stream = make_stream()
    results = set()
    for threads in (1, 2, 4):
        model = make_model(kind, start, threads=threads)
        results.add(apply_all(model, stream))
        assert model.engine.anchors >= 2
    assert len(results) == 1


@pytest.mark.usefixtures("slow_corrections")
def test_stream_with_vectors_in_files_has_the_same_bits(tmp_path: Path) -> None:
    start, stream = make_stream()
    one, other = make_model("plain", start), make_model("plain", start, storage_dir=tmp_path)
    assert apply_all(one, stream) == apply_all(other, stream)
    assert one.engine.anchors >= 2


@pytest.mark.usefixtures("slow_corrections")
def test_stream_of_single_arrivals_has_the_same_bits_as_batches() -> None:
    start, _ = make_stream()
    one, other, stages = make_model("plain", start), make_model("plain", start), set()
    for number in range(120):
        neighbors = [number % 190, (7 * number) % 190 + 1]
        one.add_vertex(f"v{number}", neighbors)
        other.partial_fit(Batch.arrival(f"v{number}", neighbors))
        stages.add(stage_of(one))
        assert one.digest() == other.digest()
    assert one.engine.anchors >= 2
    assert {"filter", "announce", None} <= stages


def simulate_crash(session: Session) -> None:
    """Release the lock without writing anything else, as a crash does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("append", "close"):
            patch.setattr(Journal, name, lambda *_: None)
        session.close()


@pytest.mark.usefixtures("slow_corrections")
def test_session_killed_in_every_stage_has_the_digest_of_an_uninterrupted_run(tmp_path: Path) -> None:
    start, stream = make_stream()
    plain, killed = make_model("plain", start), set[str]()
    session = Session(tmp_path / "state", snapshot_every=10**6, **plain.get_params())
    session.apply(timed(start, plain))
    for batch in stream:
        session.apply(timed(batch, plain))
        plain.partial_fit(timed(batch, plain))
        stage = stage_of(session.model)
        if stage is not None and stage not in killed:
            killed.add(stage)
            if len(killed) % 2:
                session.snapshot()  # otherwise the batches since the last one are replayed
            simulate_crash(session)
            session = Session(tmp_path / "state", snapshot_every=10**6, threads=1)
            assert session.model.digest() == plain.digest()
        if killed == set(STAGES):
            break
    assert killed == set(STAGES)
    assert session.model.digest() == plain.digest()
    session.close()


@pytest.mark.parametrize(("kind", "threshold"), [*((kind, 0.0) for kind in KINDS), ("plain", 0.05)])
@pytest.mark.usefixtures("slow_corrections")
def test_changes_of_every_batch_lead_to_the_served_vectors(kind: str, threshold: float) -> None:
    start, stream = make_stream(seed=1)
    model, announcing = make_model(kind, start, change_threshold=threshold), 0
    followed = dict(zip(model.ids, model.to_numpy(), strict=True))
    for batch in stream:
        changes = model.partial_fit(timed(batch, model))
        for vertex in changes.removed:
            del followed[vertex]
        followed.update(zip(changes.ids, changes.vectors, strict=True))
        assert set(followed) == set(model.ids)
        served = model.to_numpy()
        distance = np.linalg.norm(np.array([followed[vertex] for vertex in model.ids]) - served, axis=1)
        assert distance.max() <= threshold * model.engine.anchors + 1e-5  # each anchor may leave as much unreported
        announcing += stage_of(model) == "announce"
        if stage_of(model) == "announce":
            some = model.ids[::17]
            np.testing.assert_allclose(np.array([model[vertex] for vertex in some]), model.vectors(some), atol=1e-6)
            one_by_one = [model.engine.get_vector(model.engine.find_row(vertex)) for vertex in model.ids]
            np.testing.assert_allclose(np.array(one_by_one), served, atol=1e-6)
    assert announcing >= 1
    assert model.engine.anchors >= 1


@pytest.mark.parametrize("kind", ["plain", "directed"])
@pytest.mark.usefixtures("slow_corrections")
def test_changes_of_attributes_lead_to_the_served_vectors_before_the_announcement(kind: str) -> None:
    start, stream = make_stream(seed=1)
    model, announcing = make_model(kind, start, change_threshold=0.0, attribute_dim=3), 0
    followed = dict(zip(model.ids, model.to_numpy(), strict=True))
    for number, batch in enumerate(stream):
        vertex, tags = model.ids[7 * number % len(model)], {f"tag {number % 5}": 1.0, f"tag {number % 9}": 2.0}
        for changes in (model.partial_fit(timed(batch, model)), model.set_attributes([vertex], [tags])):
            for removed in changes.removed:
                del followed[removed]
            followed.update(zip(changes.ids, changes.vectors, strict=True))
        np.testing.assert_allclose(np.array([followed[vertex] for vertex in model.ids]), model.to_numpy(), atol=1e-5)
        announcing += stage_of(model) == "announce"
    assert announcing >= 1


@pytest.mark.usefixtures("slow_corrections")
def test_rows_that_are_not_announced_are_served_as_before() -> None:
    start, stream = make_stream()
    model, batches = make_model("plain", start), iter(stream)
    while stage_of(model) != "announce":
        before = dict(zip(model.ids, model.to_numpy(), strict=True))
        changes = model.partial_fit(timed(next(batches), model))
    correction: Any = model.engine.correction
    reported = set(changes.ids)
    while not correction.served:
        reported |= set(model.partial_fit(timed(next(batches), model)).ids)
    rows = model.engine.rows_by_arrival()
    old = correction.serves_old(rows)
    assert 0 < old.sum() < old.size
    for vertex, is_old in zip(model.ids, old, strict=True):
        assert is_old == (vertex not in reported)
        if is_old:
            np.testing.assert_allclose(model[vertex], before[vertex], atol=1e-6)


# ---------------------------------------------------------------------- the graph changes a lot


def advance_to(model: Embedder, stream: list[Batch], stage: str) -> None:
    while stage_of(model) != stage:
        model.partial_fit(timed(stream.pop(0), model))


@pytest.mark.parametrize("stage", ["copy", "filter", "solve", "transform", "catch_up", "announce"])
@pytest.mark.usefixtures("slow_corrections")
def test_graph_that_loses_all_edges_ends_its_correction(stage: str) -> None:
    start, stream = make_stream()
    model = make_model("plain", start)
    advance_to(model, stream, stage)
    model.partial_fit(Batch.vertices(model.ids, Op.REMOVE_VERTEX))
    anchors = model.engine.anchors
    assert model.engine.correction is None
    assert not model.engine.ready
    workspace = model.engine.rule.workspace
    assert not workspace.marked.array.any()
    assert not workspace.queued.size
    model.partial_fit(timed(start, model))
    again = pickle.loads(pickle.dumps(model))  # has a new workspace
    rest = make_stream()[1][:200]
    assert apply_all(model, rest) == apply_all(again, rest)
    assert model.engine.anchors > anchors
    assert np.isfinite(model.to_numpy()).all()


@pytest.mark.parametrize("stage", ["copy", "filter", "transform", "catch_up", "announce"])
@pytest.mark.usefixtures("slow_corrections")
def test_requested_anchor_replaces_the_correction_in_progress(stage: str) -> None:
    start, stream = make_stream()
    model = make_model("plain", start, change_threshold=0.0)
    advance_to(model, stream, stage)
    followed, anchors = dict(zip(model.ids, model.to_numpy(), strict=True)), model.engine.anchors
    changes = model.anchor()
    assert model.engine.correction is None
    assert model.engine.anchors == anchors + 1
    followed.update(zip(changes.ids, changes.vectors, strict=True))
    np.testing.assert_allclose(np.array([followed[vertex] for vertex in model.ids]), model.to_numpy(), atol=1e-5)
    assert not model.engine.rule.workspace.marked.array.any()
    again = pickle.loads(pickle.dumps(model))
    assert apply_all(model, stream[:80]) == apply_all(again, stream[:80])


@pytest.mark.usefixtures("slow_corrections")
def test_vertices_that_arrive_in_new_components_get_vectors_in_the_same_correction() -> None:
    start, stream = make_stream()
    model = make_model("plain", start)
    advance_to(model, stream, "filter")
    model.partial_fit(Batch.of(["x", "y", "z"], ["y", "z", "x"]))
    model.partial_fit(Batch.vertices(["isolated"]))
    assert not model.vectors(["x", "y", "z"]).any()
    anchors = model.engine.anchors
    while model.engine.anchors == anchors or model.engine.correction is not None:
        model.partial_fit(timed(stream.pop(0), model))
    assert model.vectors(["x", "y", "z"]).any(axis=1).all()
    assert not model["isolated"].any()
    model.check()


@pytest.mark.usefixtures("slow_corrections")
def test_vertices_that_arrive_during_a_correction_are_near_their_community() -> None:
    start, stream = make_stream()
    model = make_model("plain", start)
    members = [vertex for vertex in model.ids if isinstance(vertex, int) and DATA.labels[vertex] == 1][:6]
    names = []
    for stage in ("copy", "filter", "project", "transform", "catch_up", "announce"):
        advance_to(model, stream, stage)
        names.append(f"{stage} arrival")
        model.add_vertex(names[-1], members)
    while model.engine.correction is not None:
        model.partial_fit(timed(stream.pop(0), model))
    known = [vertex for vertex in model.ids if isinstance(vertex, int)]
    same = DATA.labels[known] == 1
    for name in names:
        cosines = model.vectors(known) @ model[name]
        assert cosines[same].mean() > cosines[~same].mean() + 0.3, name


@pytest.mark.usefixtures("slow_corrections")
def test_model_whose_choice_of_views_changes_gets_the_others_gradually(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        background_choice, "reconsider_views", lambda graph, *_: ViewChoice("two", edges=len(graph.pairs))
    )
    recipes = {"one": RECIPES["sparse"], "two": RECIPES["communities+strong-hubs"]}
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 120, (6_000, 2))
    ends[:, 1] = ends[:, 1] // 4 * 4 + ends[:, 0] % 4
    edges = ends[ends[:, 0] != ends[:, 1]].tolist()
    model = Embedder(dim=8, anchor_growth=0.2, threads=1, duplicates="ignore", views=recipes).fit(edges[:200])
    views, stages, copied = len(model.engine.rule.coordinates.views), set(), None
    for first in range(200, len(edges), 10):
        model.partial_fit(edges[first : first + 10])
        if copied is not None:
            copied.partial_fit(edges[first : first + 10])
        correction = model.engine.correction
        if correction is not None and len(correction.new.views) > views:
            stages.add(correction.stage_name)
            if copied is None and correction.stage_name == "filter":
                copied = pickle.loads(pickle.dumps(model))
    assert "filter" in stages
    assert copied is not None
    for grown_model in (model, copied):  # the last edges are repetitions, which are no growth
        grown_model.engine._advance_correction(inf)
    assert len(model.engine.rule.coordinates.views) > views
    assert copied.digest() == model.digest()
    near = [(vertex, other) for vertex in range(0, 120, 5) for other, _ in model.nearest(vertex, 5)]
    assert np.mean([vertex % 4 == other % 4 for vertex, other in near]) > 0.9


# ---------------------------------------------------------------------- readers


@pytest.mark.usefixtures("slow_corrections")
def test_readers_do_not_wait_for_slices_of_any_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    start, stream = make_stream()
    model, read_in = make_model("plain", start), set[str]()

    def read_before(name: str) -> None:
        work = getattr(GradualCorrection, name)

        def read_and_work(self: GradualCorrection, *arguments: Any) -> Any:
            answered: list[Any] = []
            reader = Thread(target=lambda: answered.append(model.vectors([0])), daemon=True)
            reader.start()
            reader.join(timeout=60)
            assert answered, f"the reader waits for the stage {self.stage_name}"
            read_in.add(self.stage_name)
            return work(self, *arguments)

        monkeypatch.setattr(GradualCorrection, name, read_and_work)

    for name in ("_process_rows", "_wait_for_solution", "_catch_up"):
        read_before(name)
    anchors = model.engine.anchors
    while model.engine.anchors == anchors or model.engine.correction is not None:
        model.partial_fit(timed(stream.pop(0), model))
    assert read_in == set(STAGES)


@pytest.mark.parametrize("name", ["catch_up", "announce"])
@pytest.mark.usefixtures("slow_corrections")
def test_publishing_processes_only_rows_of_the_last_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, stream = make_stream()
    model, published = make_model("plain", start), []
    publish, process, refresh = (
        getattr(GradualCorrection, method) for method in ("publish", "_process_range", "_refresh_rows")
    )
    publishing, moved = [False], [0]

    def publish_and_note(self: GradualCorrection, *arguments: Any) -> Any:
        publishing[0], stage = True, self.stage_name
        rows = publish(self, *arguments)
        publishing[0] = False
        published.append(stage)
        return rows

    def process_unless_publishing(self: GradualCorrection, *arguments: Any) -> None:
        assert not publishing[0]
        process(self, *arguments)

    def refresh_few_when_publishing(self: GradualCorrection, store: Any, rows: Any) -> None:
        assert not publishing[0] or rows.size <= moved[0]
        refresh(self, store, rows)

    monkeypatch.setattr(GradualCorrection, "publish", publish_and_note)
    monkeypatch.setattr(GradualCorrection, "_process_range", process_unless_publishing)
    monkeypatch.setattr(GradualCorrection, "_refresh_rows", refresh_few_when_publishing)
    record = GradualCorrection.record_batch

    def record_and_count(self: GradualCorrection, store: Any, rows: Any, first_new: int) -> None:
        moved[0] = rows.size
        record(self, store, rows, first_new)

    monkeypatch.setattr(GradualCorrection, "record_batch", record_and_count)
    while name not in published:
        model.partial_fit(timed(stream.pop(0), model))
    assert model.engine.anchors >= 1


@pytest.mark.usefixtures("slow_corrections")
def test_failure_of_slices_beside_readers_makes_the_model_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    start, stream = make_stream()
    model = make_model("plain", start)
    advance_to(model, stream, "filter")

    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(GradualCorrection, "_filter_rows", fail)
    with pytest.raises(MemoryError):
        advance_to(model, stream, "project")
    with pytest.raises(StateError):
        model.vectors([0])


@pytest.mark.usefixtures("slow_corrections")
def test_slices_prevented_by_an_interrupt_follow_with_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    start, stream = make_stream()
    model, interrupted = make_model("plain", start), make_model("plain", start)
    seen = set()
    for batch in stream:
        model.partial_fit(timed(batch, model))
        with monkeypatch.context() as prevented:
            prevented.setattr(Embedder, "_continue_correction", lambda *_: None)
            interrupted.partial_fit(timed(batch, model))
        interrupted = pickle.loads(pickle.dumps(interrupted))
        copied = copy.deepcopy(interrupted)
        copied.engine.continue_correction()
        assert copied.digest() == model.digest()
        seen.add(stage_of(model))
    assert {"copy", "filter", "transform", "catch_up", "announce"} <= seen


@pytest.mark.usefixtures("slow_corrections")
def test_batch_that_pays_for_a_whole_correction_contains_its_result() -> None:
    start, _ = make_stream()
    model = make_model("plain", start)
    anchors = model.engine.anchors
    model.partial_fit([(f"many {number}", number % 200) for number in range(600)])
    assert model.engine.anchors == anchors + 1
    assert model.engine.correction is None


# ---------------------------------------------------------------------- guards


def run_corrections(model: Embedder, count: int) -> None:
    """Add edges until this many more corrections are complete or refused."""
    engine, edges = model.engine, cycle(DATA.edges[:600].tolist())
    ended = engine.anchors + count
    for _ in range(20_000):
        if engine.anchors >= ended and engine.correction is None:
            return
        model.partial_fit([next(edges)])
    raise AssertionError("corrections do not end")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_nonfinite_rows_do_not_spread_in_corrections(bad: float, storage: str) -> None:
    """Also not in later corrections, which use the memory of the replaced rows."""
    good, model = (Embedder(dim=6, anchor_growth=0.05, storage=storage).fit(DATA.edges) for _ in range(2))
    with np.errstate(over="ignore"):
        model.engine.store.vectors[[3, 100, 150]] = bad
    for number in range(3):
        for one in (good, model):
            run_corrections(one, 1)
        vectors = model.to_numpy()
        assert np.isfinite(vectors).all(), number
        assert vectors.any(axis=1).all()
        assert (vectors * good.to_numpy()).sum(axis=1).mean() > 0.9
        assert model.diagnostics()["anchors_refused"] == 0
    model.check()


@pytest.mark.parametrize("lost", ["zero", "dependent"])
def test_correction_that_lost_the_spectrum_starts_again_from_noise(lost: str, caplog: pytest.LogCaptureFixture) -> None:
    good, model = (Embedder(**ONE_VIEW, anchor_growth=0.05).fit(DATA.edges) for _ in range(2))
    vectors = model.engine.store.vectors
    vectors[:] = 0 if lost == "zero" else vectors[:, :1]
    with caplog.at_level(logging.INFO):
        run_corrections(model, 1)
    assert "anchor result unusable, solving from scratch" in caplog.text
    run_corrections(good, 1)
    found, expected = model.engine.rule.coordinates.mu, good.engine.rule.coordinates.mu
    np.testing.assert_allclose(found, expected, atol=0.01)
    one, other = model.to_numpy(), good.to_numpy()
    assert np.corrcoef((one @ one.T).ravel(), (other @ other.T).ravel())[0, 1] > 0.95
    assert model.diagnostics()["anchors_refused"] == 0


def test_corrections_of_a_graph_that_grows_many_times_need_one_filter_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spectrum of the hub view grows with the graph: a lower bound from the start would be too high."""
    passes, complete = [], GradualCorrection._complete_coordinates

    def record(correction: GradualCorrection) -> None:
        passes.append(correction.passes)
        complete(correction)

    monkeypatch.setattr(GradualCorrection, "_complete_coordinates", record)
    rng, model = np.random.default_rng(0), Embedder(dim=24, views=[SpectralView(tau_per_degree=64, tail=0.35)])
    source = np.repeat(np.arange(1, 6_000), 5)
    edges = np.stack([source, (rng.random(source.size) * source).astype(int)], axis=1)
    for first in range(0, len(edges), 500):
        model.partial_fit(edges[first : first + 500])
    assert len(passes) > 30
    assert set(passes) == {1}


def test_correction_after_many_arrivals_at_the_same_neighbors_keeps_its_columns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their eigenvalue is far above all known ones, and grows in the filter until other columns vanish beside it."""
    data = planted_partition(communities=20, size=50, inside=8, elsewhere=2, seed=3)
    arrivals = [(f"new {number}", hub) for number in range(300) for hub in range(5)]
    parameters: dict[str, Any] = {"dim": 24, "views": "communities+hubs", "anchor_growth": 0}
    model = Embedder(**parameters).fit(data.edges)
    model.partial_fit(arrivals)
    with caplog.at_level(logging.INFO):
        correct(model.engine)
    assert "solving from scratch" not in caplog.text
    exact = Embedder(**parameters).fit([*map(tuple, data.edges.tolist()), *arrivals]).engine.rule.coordinates
    found = model.engine.rule.coordinates
    for part in found.parts:
        assert found.mu[part].sum() > 0.98 * exact.mu[part].sum()


@pytest.mark.parametrize("failing", ["_solve_views", "_solve_rotation"])
def test_refused_correction_keeps_the_vectors(
    failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = Embedder(dim=6, anchor_growth=0.05).fit(DATA.edges)
    before, edges = model.to_numpy(), cycle(DATA.edges[:600].tolist())
    with monkeypatch.context() as patch:
        result = None if failing == "_solve_rotation" else (np.full(6, np.nan), np.zeros((6, 6)), np.zeros(6))
        patch.setattr(gradual_correction, failing, lambda *_: result)
        for _ in range(500):
            assert not model.partial_fit([next(edges)]).anchored
    assert model.diagnostics()["anchors_refused"] >= 2
    assert model.engine.anchors == 0
    assert "anchor refused, vectors kept" in caplog.text
    after = model.to_numpy()
    assert (before * after).sum(axis=1).mean() > 0.9
    assert not model.engine.rule.workspace.marked.array.any()
    run_corrections(model, 1)
    assert model.diagnostics()["anchors_refused"] == 0
    model.check()


# ---------------------------------------------------------------------- work per arrival


def max_work_per_arrival(vertices: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the largest cost, in filtered rows, of an arrival in a stream with at least one correction."""
    rng = np.random.default_rng(0)
    src = np.repeat(np.arange(1, vertices), 4)
    dst = (rng.random(src.size) * src).astype(np.int64)
    model = Embedder(dim=4, anchor_growth=0.02, threads=1).fit(Batch.of(src, dst))
    work, most, stages = [0.0], 0.0, set()
    process, catch_up = GradualCorrection._process_rows, GradualCorrection._catch_up

    def counting_process(self: GradualCorrection, *arguments: Any) -> float:
        stages.add(self.stage_name)
        cost = process(self, *arguments)
        work[0] += cost
        return cost

    def counting_catch_up(self: GradualCorrection, store: VectorStore, credit: float) -> float:
        cost = catch_up(self, store, credit)
        work[0] += cost
        return cost

    with monkeypatch.context() as patch:
        patch.setattr(GradualCorrection, "_process_rows", counting_process)
        patch.setattr(GradualCorrection, "_catch_up", counting_catch_up)
        patch.setattr(correction_schedule, "SPREAD_VERTICES", 1)
        for number in range(vertices // 20):
            work[0] = 0.0
            model.add_vertex(f"v{number}", rng.integers(0, vertices, 4).tolist())
            most = max(most, work[0])
    assert model.engine.anchors >= 1
    assert "announce" in stages
    return most


def test_work_per_arrival_does_not_grow_with_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (max_work_per_arrival(vertices, monkeypatch) for vertices in (2_000, 8_000))
    assert 0 < large <= 1.2 * small


def stream_until_anchor(growth: float, spread: float, monkeypatch: pytest.MonkeyPatch) -> tuple[Embedder, float]:
    """Stream single arrivals until the first anchor; return the model and the growth of the graph at that time."""
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)
    monkeypatch.setattr(correction_schedule, "MAX_SPREAD", spread)
    vertices, rng = 1_500, np.random.default_rng(0)
    targets = [rng.integers(0, vertices // 10, 6) * 10 + i % 10 for i in range(2 * vertices)]  # ten communities
    edges = [(i, j) for i in range(vertices) for j in targets[i].tolist() if i != j]
    model = Embedder(dim=9, anchor_growth=growth, seed=1).fit(edges)
    for number in range(vertices, 2 * vertices):
        before = model.engine.growth
        model.add_vertex(number, targets[number].tolist())
        if model.engine.anchors:
            return model, before
    raise AssertionError("no anchor")


@pytest.mark.parametrize("sample", [100_000, 256])
def test_spread_correction_is_complete_about_when_it_is_due(sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage in correction_pace.SAMPLE_ROWS:
        monkeypatch.setitem(correction_pace.SAMPLE_ROWS, stage, sample)
    _, growth = stream_until_anchor(0.4, 0.2, monkeypatch)  # begins at 0.2
    assert 0.34 < growth < 0.41  # the announcement follows


def test_correction_from_samples_separates_communities(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"probe": 256, "project": 1_000, "transform": 256}
    for stage, size in sizes.items():
        monkeypatch.setitem(correction_pace.SAMPLE_ROWS, stage, size)
    monkeypatch.setattr(gradual_correction, "SLICE_ROWS", 8)
    monkeypatch.setattr(correction_pace, "SLICE_ROWS", 8)
    model, _ = stream_until_anchor(0.4, 0.2, monkeypatch)
    vectors, community = model.vectors(np.arange(len(model))), np.arange(len(model)) % 10
    centers = np.stack([vectors[community == one].mean(axis=0) for one in range(10)])
    assert ((vectors @ centers.T).argmax(axis=1) == community).mean() > 0.95
    assert model.engine.rule.orthogonality_error(model.engine.store) < 0.3


@pytest.mark.usefixtures("slow_corrections")
def test_huge_weights_that_arrive_during_a_filter_start_it_again(caplog: pytest.LogCaptureFixture) -> None:
    """The regularization was chosen for smaller weights: rows overflow, and a fresh start chooses it again."""
    start, stream = make_stream()
    model = make_model("plain", start)
    advance_to(model, stream, "filter")
    with caplog.at_level(logging.INFO):
        for number in range(60):
            model.partial_fit([(number, number + 1, 1e30), (number, number + 7, 1.0)])
    assert "anchor result unusable, solving from scratch" in caplog.text
    assert np.isfinite(model.to_numpy()).all()
    model.engine._advance_correction(inf)
    assert model.engine.anchors >= 1
    assert np.isfinite(model.to_numpy()).all()
    assert model.diagnostics()["anchors_refused"] == 0
    model.check()


@pytest.mark.usefixtures("slow_corrections")
def test_correction_after_a_change_of_views_is_saved_and_loaded_at_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        background_choice,
        "reconsider_views",
        lambda graph, *_: ViewChoice("communities+strong-hubs", edges=len(graph.pairs)),
    )
    random, vertices = np.random.default_rng(0), 200
    edges = [(vertex, int(other)) for vertex in range(1, vertices) for other in random.integers(0, vertex, 3)]
    model, seen = Embedder(dim=8, threads=1, anchor_growth=0.1).fit(edges), set[tuple[str, int]]()
    for number in range(600):  # until the views are considered again
        pairs = random.integers(0, vertices, (4, 2)).tolist()
        model.partial_fit([(src, dst) for src, dst in pairs if src != dst] or [(0, 1)])
        correction = model.engine.correction
        if correction is not None and correction.fresh and (correction.stage_name, correction.passes) not in seen:
            seen.add((correction.stage_name, correction.passes))
            model.save(tmp_path / str(number))
            assert Embedder.load(tmp_path / str(number)).digest() == model.digest()
    assert {("project", 0), ("filter", 1), ("rotate", 1)} <= seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("stage", ["solve", "align"])
@pytest.mark.usefixtures("slow_corrections")
def test_forked_child_does_not_wait_for_a_thread_of_its_parent(stage: str) -> None:
    start, stream = make_stream()
    model = make_model("plain", start)
    advance_to(model, stream, stage)
    correction: Any = model.engine.correction
    correction._solution = Future(), os.getpid()  # still in progress when the process is forked
    child = os.fork()
    if not child:
        signal.alarm(30)  # ends a child that waits
        while stage_of(model) == stage:
            model.partial_fit(timed(stream.pop(0), model))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
