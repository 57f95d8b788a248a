"""Guarantees of every rule, independent of how it moves vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec import Batch, Embedder, RipplevecError, load
from ripplevec.rules import batch_step, ripple

SAME_MODEL = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(model: Embedder, batches: list[Batch]) -> Embedder:
    for batch in batches:
        model.partial_fit(batch)
    return model


def test_digest_depends_on_the_seed_only(new: Any, stream: Any) -> None:
    start, batches = stream()
    one, other, another = (run(new(**seed).fit(start), batches) for seed in ({}, {}, {"seed": 4}))
    assert one.digest() == other.digest()
    assert (one.digest() == another.digest()) == (one.rule == "mean")  # which draws nothing
    assert one.ids == another.ids


def test_empty_model_supports_all_operations(new: Any) -> None:
    model = new()
    assert (len(model), model.ids, model.to_numpy().shape[0]) == (0, [], 0)
    assert model.preview([]).shape == (model.dim,)
    assert model.nearest(np.ones(model.dim)) == []
    assert len(model.partial_fit([])) == 0
    assert len(model.anchor()) == 0
    assert model.add_vertex("first").shape == (model.dim,)
    for number in range(4 * model.dim):
        model.add_vertex(number, [number - 1] if number else ["first"])
        assert np.isfinite(model.to_numpy()).all()
    assert model.to_numpy().any()
    model.check()


@SAME_MODEL
@given(seed=st.integers(0, 10**6))
def test_state_is_valid_after_every_batch(new: Any, stream: Any, seed: int) -> None:
    start, batches = stream(seed)
    model = new().fit(start)
    for batch in batches:
        model.partial_fit(batch)
        model.check()
        vectors = model.to_numpy()
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(model), model.dim)
        assert np.isfinite(vectors).all()
        if model.rule == "ripple" and model.normalize == "auto":
            lengths = np.linalg.norm(vectors, axis=1)
            assert ((lengths == 0) | (np.abs(lengths - 1) < 1e-4)).all()


@SAME_MODEL
@given(seed=st.integers(0, 10**6))
def test_changes_contain_every_changed_vertex(new: Any, stream: Any, seed: int) -> None:
    start, batches = stream(seed)
    model = new(change_threshold=0).fit(start)
    for number, batch in enumerate(batches, 1):
        before = dict(zip(model.ids, model.to_numpy(), strict=True))
        changes = model.partial_fit(batch)
        after = dict(zip(model.ids, model.to_numpy(), strict=True))
        moved = {name for name in after if name in before and np.abs(after[name] - before[name]).max() > 1e-6}
        assert moved <= set(changes.ids)
        assert len(set(changes.ids)) == len(changes.ids) == len(changes) == len(changes.vectors)
        assert {name for name, new in zip(changes.ids, changes.arrived, strict=True) if new} == set(after) - set(before)
        assert set(before) - set(after) <= set(changes.removed)
        assert not set(changes.removed) & set(after)
        assert changes.ids == [name for name in model.ids if name in set(changes.ids)]  # in order of arrival
        np.testing.assert_allclose(changes.vectors, [after[name] for name in changes.ids], atol=1e-6)
        assert changes.sequence == model.sequence == number


def test_changes_are_unaffected_by_later_batches(new: Any, stream: Any) -> None:
    """`Changes.vectors` is computed on access, with the values right after the batch."""
    start, batches = stream()
    early, late = new().fit(start), new().fit(start)
    originals, read = [], []
    for batch in batches:
        read.append(early.partial_fit(batch).vectors.copy())
        originals.append(late.partial_fit(batch))
    late.anchor()
    for changes, vectors in zip(originals, read, strict=True):
        assert np.array_equal(changes.vectors, vectors)


def test_reads_do_not_change_the_state(new: Any, stream: Any, tmp_path: Path) -> None:
    start, batches = stream()
    model = run(new().fit(start), batches)
    before = model.digest()
    model.save(tmp_path / "before")
    name = model.ids[0]
    vectors = model.vectors(model.ids)
    vectors[:] = 9
    model[name][:] = 9
    model.to_numpy()[:] = 9
    model.preview([name])[:] = 9
    model.nearest(name)
    model.nearest(np.ones(model.dim))
    model.diagnostics()
    model.to_arrow()
    model.to_pandas()
    repr(model)
    model._repr_html_()
    assert name in model
    assert [*model] == model.ids
    assert model.digest() == before
    model.save(tmp_path / "after")
    saved, again = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("*.npy")} for name in ("before", "after")
    )
    assert "vectors.npy" in saved
    assert again == saved


def test_arguments_are_neither_kept_nor_modified(new: Any) -> None:
    edges = np.random.default_rng(0).integers(0, 40, (90, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = np.ones(len(edges))
    columns = edges[:, 0].copy(), edges[:, 1].copy(), weights
    batch = Batch.of(*columns)
    originals = [column.copy() for column in columns]
    model, other = new().fit(Batch.of(*columns)), new().fit(Batch.of(*columns))
    for each in (model, other):
        each.partial_fit(batch)
    assert all(np.array_equal(one, two) for one, two in zip(columns, originals, strict=True))
    for column in columns:
        column[:] = 1
    neighbors = [1, 2, 3]
    for each in (model, other):
        each.add_vertex("new", neighbors)
    assert neighbors == [1, 2, 3]
    assert model.digest() == other.digest()
    vector = model["new"]
    model.add_edges([("new", 5), ("new", 6)])
    assert np.array_equal(vector, other["new"])  # a returned vector does not change


@pytest.mark.parametrize("at", [0, 3])
def test_loaded_model_continues_with_the_same_bits(new: Any, stream: Any, tmp_path: Path, at: int) -> None:
    start, batches = stream(1)
    model = run(new().fit(start), batches[:at])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.digest() == model.digest()
    assert again.diagnostics() | {"bytes": 0} == model.diagnostics() | {"bytes": 0}  # memory layout may differ
    assert again.get_params() == model.get_params()
    assert again.ids == model.ids
    assert again.to_numpy().tobytes() == model.to_numpy().tobytes()
    for each in (model, again):
        run(each, batches[at:])
        each.add_vertex("last", ["new 3", 1, 2])
        each.anchor()
    assert again.digest() == model.digest()
    assert again.to_numpy().tobytes() == model.to_numpy().tobytes()
    again.check()


def test_empty_model_can_be_saved(new: Any, stream: Any, tmp_path: Path) -> None:
    model = new()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    start, batches = stream()
    for each in (model, again):
        each.partial_fit(start)
        run(each, batches)
    assert again.digest() == model.digest()


BAD_ROWS: list[Any] = [
    ("a", "b", float("nan")),
    ("a", "b", float("inf")),
    ("a", "b", 0),
    ("a", "b", -1.0),
    ("a", "b", "heavy"),
    ("a", 1.5),
    ("a", None),
    ("a", b"b"),
    ("a", True),
    ("a", ("b",)),
    ("a",),
    ("a", "b", 1.0, 1.0),
    "ab",
    7,
]


@SAME_MODEL
@given(row=st.sampled_from(BAD_ROWS), place=st.integers(0, 5))
def test_bad_batch_changes_nothing(new: Any, stream: Any, row: Any, place: int) -> None:
    start, _ = stream()
    model = new().fit(start)
    before = model.digest()
    edges: list[Any] = [(0, 1), (1, "x"), ("x", "y"), (2, 3), (3, "z")]
    edges.insert(place, row)
    for change in (model.partial_fit, model.add_edges, model.fit):
        with pytest.raises((ValueError, KeyError)) as error:
            change(edges)
        assert isinstance(error.value, RipplevecError)
    assert model.digest() == before
    model.check()


@SAME_MODEL
@given(place=st.integers(0, 4), kind=st.sampled_from(["no vertex", "no edge", "gone", "twice"]))
def test_removal_of_an_unknown_element_changes_nothing(new: Any, stream: Any, place: int, kind: str) -> None:
    start, _ = stream()
    model = new().fit(start)
    before, (u, v, _) = model.digest(), start[0]
    rows: list[Any] = [("p", "q", 0), (u, "p", 0), ("q", u, 0), ("r", "r", 2)]
    bad = {
        "no vertex": [("unknown", "unknown", 3)],
        "no edge": [(u, "unknown", 1)],
        "gone": [(u, u, 3), (u, v, 1)],
        "twice": [(u, v, 1), (u, v, 1)],
    }[kind]
    rows[place:place] = bad
    with pytest.raises((KeyError, ValueError)) as error:
        model.partial_fit(
            Batch.of(*map(list, zip(*[(a, b) for a, b, _ in rows], strict=True)), op=[op for *_, op in rows])
        )
    assert isinstance(error.value, RipplevecError)
    assert model.digest() == before
    assert "p" not in model


def test_results_are_independent_of_the_number_of_threads(
    new: Any, stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripple, "MIN_EDGES_FOR_THREADS", 1)
    monkeypatch.setattr(batch_step, "MIN_ROWS_PER_TASK", 2)
    start, batches = stream(2)
    models = [run(new(threads=threads).fit(start), batches) for threads in (1, 2, 4)]
    for model in models:
        model.anchor()
    assert len({model.digest() for model in models}) == 1
    assert len({str(model.nearest(1)) for model in models}) == 1


def test_fit_discards_the_previous_model(new: Any, stream: Any) -> None:
    start, batches = stream()
    model = run(new().fit(start), batches)
    assert model.fit(start) is model
    assert model.digest() == new().fit(start).digest()
    assert model.fit([]).digest() == new().digest()


def test_vertex_can_be_removed_and_added_again(new: Any, stream: Any) -> None:
    start, _ = stream()
    model = new().fit(start)
    changes = model.remove_vertex(1)
    assert (changes.removed, 1 in model, len(model)) == ([1], False, len(model.ids))
    vector = model.add_vertex(1, [2, 3])
    assert np.isfinite(vector).all()
    assert model.ids[-1] == 1  # as a new vertex
    for name in model.ids:
        model.remove_vertex(name)
    assert (len(model), model.ids) == (0, [])
    model.check()
    model.partial_fit(start)
    assert np.isfinite(model.to_numpy()).all()
