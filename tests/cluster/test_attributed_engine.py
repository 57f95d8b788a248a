"""Tests that a model with attributes on shards equals the model on one machine, also when it is saved or recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplevec import Batch, Embedder, InvalidValueError, Op, Session
from ripplevec.attributes.input import attach_attributes, read_values
from ripplevec.cluster.attributed_engine import AttributedClusterEngine, AttributedReadSnapshot
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded, ShardedEmbedder
from ripplevec.engine.attributed_engine import AttributedEngine
from ripplevec.errors import FormatError
from ripplevec.lab.datasets.synthetic import planted_partition

SMALL: dict[str, Any] = {"dim": 8, "anchor_growth": 0, "anchor_pace": "immediate", "threads": 1}


def attributes_of(vertices: list[int], kind: str, seed: int) -> Any:
    """Return random attributes of vertices; some sparse rows are empty."""
    rng = np.random.default_rng(seed)
    if kind == "dense":
        return read_values(vertices, rng.normal(size=(len(vertices), 6)))
    names = [rng.integers(0, 12, rng.integers(0, 5)).tolist() for _ in vertices]
    return read_values(vertices, [{f"t{name}": 1.0 for name in row} for row in names])


def random_batch(first: int, last: int, seed: int, *, removed: int | None = None) -> Batch:
    """Return edges of the vertices from `first` to `last` − 1 to earlier ones."""
    rng = np.random.default_rng(seed)
    src = np.repeat(np.arange(first, last), 3)
    dst = rng.integers(0, np.maximum(src, 1))
    keep = src != dst
    src, dst = src[keep], dst[keep]
    if removed is None:
        return Batch.of(src, dst)
    op = np.append(np.full(src.size, Op.ADD, np.int8), Op.REMOVE_VERTEX)
    return Batch.of(np.append(src, removed), np.append(dst, removed), op=op)


def grow(models: tuple[Embedder, Embedder], kind: str, changes_equal: Any, batches: int = 8) -> None:
    """Fit both models, and apply batches of which two of three have attributes; compare after each."""
    start = random_batch(0, 40, 0)
    for model in models:
        model.fit(start, attributes=attributes_of(list(range(0, 40, 2)), kind, 1))
    single, sharded = models
    assert single.digest() == sharded.digest()
    for step in range(batches):
        first = 40 + 6 * step
        batch = random_batch(first, first + 6, step)
        given = attributes_of([3, *range(first, first + 6, 2), 1_000 + step], kind, step) if step % 3 else None
        changes = [model.partial_fit(batch, attributes=given) for model in models]
        assert changes_equal(*changes)
        assert single.digest() == sharded.digest()
    sharded.check()


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize(
    ("shards", "parameters"),
    [
        (1, {}),
        (3, {}),
        (5, {"keep_attributes": False}),
        (2, {"directed": True, "storage": "float16"}),
        (2, {"half_life": 3.0}),
        (3, {"dim": 80}),
    ],
)
def test_stream_on_shards_matches_single_machine_bit_for_bit(
    new_models: Any, changes_equal: Any, shards: int, kind: str, parameters: dict[str, Any]
) -> None:
    models = new_models(shards, **SMALL | parameters)
    grow(models, kind, changes_equal)
    single, sharded = models
    assert isinstance(sharded.engine, AttributedClusterEngine)
    query = [0.5] * 6 if kind == "dense" else {"t1": 1.0, "unseen": 2.0}
    assert single.nearest(5, k=6) == sharded.nearest(5, k=6)
    assert single.nearest_by_attributes(query, k=6) == sharded.nearest_by_attributes(query, k=6)
    assert single.nearest_by_attributes(4, k=3, among=range(30)) == sharded.nearest_by_attributes(
        4, k=3, among=range(30)
    )
    for arguments in ({"attributes": query}, {"neighbors": [1, 5]}, {"neighbors": [1, 5], "attributes": query}):
        np.testing.assert_array_equal(single.preview(**arguments), sharded.preview(**arguments))
    vector = single[7]
    assert [vertex for vertex, _ in single.nearest(vector, k=4)] == [v for v, _ in sharded.nearest(vector, k=4)]
    np.testing.assert_array_equal(single.vectors(single.ids), sharded.vectors(single.ids))
    np.testing.assert_array_equal(sharded.engine.gather().get_vectors(np.arange(len(single))), single.to_numpy())
    rounded = {"bytes": 0, "orthogonality_error": 0}
    assert single.diagnostics() | rounded == sharded.diagnostics() | rounded


@settings(max_examples=20, deadline=None)
@given(shards=st.integers(1, 4), seed=st.integers(0, 10_000), kind=st.sampled_from(["sparse", "dense"]))
def test_removed_and_added_vertices_match_single_machine(
    new_models: Any, changes_equal: Any, shards: int, seed: int, kind: str
) -> None:
    """With 20 columns, the basis is learned at once, so the order of a refresh does not matter."""
    rng, models = np.random.default_rng(seed), new_models(shards, **SMALL | {"dim": 40})
    for model in models:
        model.fit(random_batch(0, 20, seed), attributes=attributes_of(list(range(15)), kind, seed))
    for step in range(4):
        first = 20 + 4 * step
        removed = int(rng.integers(0, 5)) + 5 * step if step % 2 else None
        batch = random_batch(first, first + 4, seed + step, removed=removed)
        if removed is not None and step == 3:
            batch = attach_attributes(batch, attributes_of([removed], kind, seed))  # it arrives again
        assert changes_equal(*(model.partial_fit(batch) for model in models))
        assert models[0].digest() == models[1].digest()
        models[1].check()


def test_immediate_anchor_on_shards_learns_the_projection_again_as_on_one_machine(new_models: Any) -> None:
    single, sharded = new_models(3, **SMALL)
    for model in (single, sharded):
        model.fit(random_batch(0, 60, 0), attributes=attributes_of(list(range(60)), "sparse", 1))
        model.partial_fit(random_batch(60, 90, 2), attributes=attributes_of(list(range(60, 90)), "sparse", 3))
        assert model.anchor().anchored
    np.testing.assert_allclose(single.to_numpy(), sharded.to_numpy(), atol=1e-5)
    for model in (single, sharded):
        assert isinstance(model.engine, AttributedEngine | AttributedClusterEngine)
        assert model.engine.attributes.rows_at_refit == model.engine.attributes.rows


def test_model_on_shards_that_begins_empty_gets_vectors_from_attributes_alone(new_models: Any) -> None:
    models = new_models(3, **SMALL | {"attribute_dim": 4})
    for model in models:
        model.partial_fit([], attributes={"a": {"x": 1}, "b": {"y": 1}, "c": {"x": 1, "z": 1}})
        model.add_vertex("d", ["a"], attributes={"x": 2})
    assert models[0].digest() == models[1].digest()
    np.testing.assert_array_equal(models[1]["d"], models[0]["d"])
    assert np.linalg.norm(models[1]["b"]) == pytest.approx(1, abs=1e-5)


def test_invalid_attributes_on_shards_are_refused_and_change_nothing(new_models: Any) -> None:
    _, sharded = new_models(3, **SMALL)
    sharded.fit(random_batch(0, 20, 0), attributes=attributes_of(list(range(20)), "dense", 1))
    before = sharded.digest()
    for bad in ([1.0] * 5, {"x": 1.0}, [float("nan")] * 6):
        with pytest.raises(InvalidValueError):
            sharded.add_vertex("new", [1], attributes=bad)
    assert sharded.digest() == before


def test_restored_model_with_attributes_continues_bit_for_bit(new_models: Any, changes_equal: Any) -> None:
    single, saved = new_models(3, **SMALL)
    grow((single, saved), "sparse", changes_equal)
    _, restored = new_models(3, **SMALL | {"attribute_dim": 4})
    restored.engine.restore(saved.engine.state())
    assert restored.digest() == single.digest() == saved.engine.snapshot().digest()
    for step in range(3):
        batch = random_batch(200 + 5 * step, 205 + 5 * step, step)
        given = attributes_of(list(range(200 + 5 * step, 205 + 5 * step)), "sparse", step)
        changes = [model.partial_fit(batch, attributes=given) for model in (single, restored)]
        assert changes_equal(*changes)
        assert single.digest() == restored.digest()


@pytest.mark.parametrize("name", ["shard1_attributes_parts", "attributes_projection_basis", "shard0_attributes_status"])
def test_restore_without_an_array_of_attributes_raises_format_error(
    new_models: Any, changes_equal: Any, name: str
) -> None:
    models = new_models(3, **SMALL)
    grow(models, "sparse", changes_equal, batches=1)
    state = dict(models[1].engine.state())
    assert name in state
    del state[name]
    _, other = new_models(3, **SMALL | {"attribute_dim": 4})
    with pytest.raises(FormatError, match="attributes"):
        other.engine.restore(state)


def test_saved_sharded_model_with_attributes_is_loaded_completely(tmp_path: Path) -> None:
    model = ShardedEmbedder(shards=2, address=IN_PROCESS, **SMALL)
    model.fit(random_batch(0, 30, 0), attributes=attributes_of(list(range(30)), "sparse", 1))
    model.save(tmp_path / "model")
    loaded = ShardedEmbedder.load(tmp_path / "model", address=IN_PROCESS)
    assert loaded.digest() == model.digest()
    np.testing.assert_array_equal(loaded.vectors(range(30)), model.vectors(range(30)))


def test_read_snapshot_serves_attributes_of_its_moment(new_models: Any) -> None:
    _, sharded = new_models(3, **SMALL)
    sharded.fit(random_batch(0, 30, 0), attributes=attributes_of(list(range(30)), "sparse", 1))
    vectors, found = sharded.to_numpy(), sharded.nearest_by_attributes({"t1": 1}, k=5)
    snapshot, engine = sharded.engine.fork_for_update()
    assert isinstance(snapshot, AttributedReadSnapshot)
    digest = engine.digest()
    engine.apply(attach_attributes(Batch.of([], []), attributes_of(list(range(10)), "sparse", 9)))
    rows = snapshot.rows_by_arrival()
    np.testing.assert_array_equal(snapshot.get_vectors(rows), vectors)
    rows, cosines = snapshot.nearest_by_attributes(read_values(["q"], [{"t1": 1}]), 5)
    assert list(zip(snapshot.ids_of(rows), cosines.tolist(), strict=True)) == found
    assert snapshot.digest() == digest != engine.digest()


def test_session_on_shards_replays_attributes(tmp_path: Path) -> None:
    single = Embedder(**SMALL | {"attribute_dim": 4}).fit([])
    with Session(tmp_path, model=Sharded(3, IN_PROCESS), **SMALL | {"attribute_dim": 4}) as session:
        for step in range(6):
            batch = random_batch(10 * step, 10 * step + 10, step)
            given = attributes_of(list(range(10 * step, 10 * step + 10)), "sparse", step)
            session.partial_fit(batch, attributes=given)
            single.partial_fit(batch, attributes=given)
            if step == 3:
                session.snapshot()
        digest = session.model.digest()
    assert digest == single.digest()
    with Session(tmp_path, model=Sharded(3, IN_PROCESS)) as session:
        assert session.model.digest() == digest


@pytest.mark.parametrize(("kind", "begins_empty"), [("sparse", False), ("dense", False), ("sparse", True)])
def test_weight_chosen_on_shards_is_that_of_a_single_machine(new_models: Any, kind: str, begins_empty: bool) -> None:
    data = planted_partition(communities=5, size=60, inside=4, elsewhere=4, seed=1)
    values = np.eye(5)[data.labels] + 0.1 * np.random.default_rng(0).random((data.vertices, 5))
    rows = (np.arange(data.vertices), values if kind == "dense" else csr_array(np.where(values > 0.09, values, 0)))
    models = new_models(3, dim=10, attribute_dim=5, anchor_growth=0, anchor_pace="immediate", threads=1)
    batch = Batch.of(data.edges[:, 0], data.edges[:, 1])
    for model in models:
        (model.partial_fit if begins_empty else model.fit)(batch, attributes=rows)
        if begins_empty:
            model.anchor()
    single, sharded = models
    assert single.diagnostics()["attribute_weight"] == sharded.diagnostics()["attribute_weight"] > 0.5
    assert single.diagnostics()["attribute_weight_scores"] == sharded.diagnostics()["attribute_weight_scores"] != {}
    assert single.nearest(5, k=6) == sharded.nearest(5, k=6)
