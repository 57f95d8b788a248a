"""Models with decay and expiry: quality when a graph changes, and reproducibility."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, Op, SpectralView, UnknownVertexError, load
from ripplevec.batch import MAX_TIME
from ripplevec.durability.session import Session
from ripplevec.lab.datasets.synthetic import Drift, drifting_communities
from ripplevec.lab.evaluation import classify
from ripplevec.rules import batch_step, ripple
from ripplevec.temporal import decay
from ripplevec.util.checked_directory import write_arrays

TEMPORAL: dict[str, dict[str, Any]] = {
    "decay": {"half_life": 150.0},
    "expiry": {"expire_after": 400.0},
    "both": {"half_life": 100.0, "expire_after": 500.0, "directed": True},
    "both, ignoring repeats": {"half_life": 60.0, "expire_after": 300.0, "duplicates": "ignore", "storage": "float16"},
}


@pytest.fixture(params=TEMPORAL)
def temporal(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the parameters of a model with decay or expiry."""
    return {"dim": 6, "seed": 3, **TEMPORAL[request.param]}


def batches(drift: Drift, size: int) -> list[Batch]:
    parts = np.split(np.arange(len(drift.edges)), range(size, len(drift.edges), size))
    return [Batch.of(*drift.edges[part].T, time=drift.time[part]) for part in parts]


def make_stream(seed: int = 0) -> list[Batch]:
    """Return batches of weighted edges, some late or without a time, with removals of edges and vertices."""
    drift = drifting_communities(vertices=60, communities=3, events=500, seed=seed)
    rng, stream, latest = np.random.default_rng(seed), [], 0.0
    for number, batch in enumerate(batches(drift, 25)):
        assert batch.time is not None
        time = 1.7e9 + batch.time - rng.choice([0, 0, 0, 40, 350], len(batch))
        time[rng.random(len(batch)) < 0.1] = np.nan
        stream.append(Batch.of(batch.src, batch.dst, 2.0 ** rng.integers(-2, 3, len(batch)), time=time))
        latest = max(latest, np.nanmax(time))
        if number % 4 == 3:
            src, dst = int(batch.src[-1]), int(batch.dst[-1])
            removed = int(batch.src[0]) if int(batch.src[0]) not in (src, dst) else None
            rows = [(src, dst, Op.REMOVE)] + ([] if removed is None else [(removed, removed, Op.REMOVE_VERTEX)])
            stream.append(Batch.of(*map(list, zip(*[(u, v, 1.0, op) for u, v, op in rows], strict=True))))
    return stream


def run(parameters: dict[str, Any], stream: list[Batch], model: Embedder | None = None) -> Embedder:
    model = Embedder(**{"start_size": 20, **parameters}) if model is None else model
    for batch in stream:
        model.partial_fit(batch)
    model.check()
    return model


# ---------------------------------------------------------------------- quality

EVENTS, AFTER, VERTICES = 9_000, 3_000, 600


def scores_around_drift(seed: int, **parameters: Any) -> tuple[float, float]:
    """Return the scores right before communities change, and `AFTER` events later."""
    drift = drifting_communities(VERTICES, communities=6, events=EVENTS, moving=0.5, seed=seed)
    model, scores = Embedder(dim=16, seed=seed, **parameters), []
    order = np.random.default_rng(seed).permutation(VERTICES)
    for number, batch in enumerate(batches(drift, 100)[: (EVENTS + AFTER) // 100], 1):
        model.partial_fit(batch)
        if number * 100 in (EVENTS, EVENTS + AFTER):
            labels = drift.labels[drift.phase[number * 100 - 1]]
            half = VERTICES // 2
            scores.append(classify(model.vectors(np.arange(VERTICES)), labels, order[:half], order[half:]).micro)
    return scores[0], scores[1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_temporal_model_recovers_changed_communities(seed: int) -> None:
    then, plain = scores_around_drift(seed)
    assert then > 0.97
    assert plain < 0.70  # half of the vertices kept their community
    for setting in ({"half_life": 1_500}, {"expire_after": 4_000}, {"half_life": 1_500, "expire_after": 6_000}):
        then, now = scores_around_drift(seed, **setting)
        assert then > 0.97
        assert now > 0.92, setting


# ---------------------------------------------------------------------- decay


def test_start_uses_decayed_weights() -> None:
    drift = drifting_communities(vertices=80, communities=4, events=900, seed=5)
    pairs = np.unique(np.sort(drift.edges, axis=1), axis=0)
    time = np.random.default_rng(0).uniform(0, 100, len(pairs))
    view = [SpectralView(tau_per_degree=0.5)]
    decaying = Embedder(dim=5, views=view, half_life=20.0).fit(Batch.of(*pairs.T, time=time))
    plain = Embedder(dim=5, views=view).fit(Batch.of(*pairs.T, 2.0 ** ((time - time.max()) / 20.0)))
    assert np.abs(np.sum(decaying.to_numpy() * plain.to_numpy(), axis=1)) == pytest.approx(np.ones(80), abs=1e-4)
    for vertex in (0, 40):
        assert dict(decaying.neighbors(vertex)) == pytest.approx(dict(plain.neighbors(vertex)), rel=1e-5)
    assert decaying.diagnostics(objective=True)["objective"] == pytest.approx(
        plain.diagnostics(objective=True)["objective"], rel=1e-3
    )


def test_influence_uses_decayed_weights() -> None:
    drift = drifting_communities(vertices=60, communities=3, events=400, seed=1)
    stream = batches(drift, 20)
    decaying = Embedder(dim=4, anchor_growth=0, half_life=50.0, start_size=30)
    plain = Embedder(dim=4, anchor_growth=0, start_size=30)
    for batch in stream:
        assert batch.time is not None
        changed = [
            decaying.partial_fit(batch),
            plain.partial_fit(Batch.of(batch.src, batch.dst, 2.0 ** (batch.time / 50))),
        ]
        assert changed[0].ids == changed[1].ids
    assert decaying.engine.ready


def test_very_long_half_life_equals_none(temporal: dict[str, Any]) -> None:
    temporal, stream = temporal | {"duplicates": "add"}, make_stream()
    kept = {name: value for name, value in temporal.items() if name not in ("half_life", "expire_after")}
    long, plain = run(kept | {"half_life": 1e300, "expire_after": 1e300}, stream), run(kept, stream)
    assert np.array_equal(long.to_numpy(), plain.to_numpy())
    assert long.ids == plain.ids


@pytest.mark.parametrize("height", [2.0, 5.0])
def test_rescaling_of_weights_changes_no_vector(
    temporal: dict[str, Any], height: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make_stream()
    rare = run(temporal, stream)
    monkeypatch.setattr(decay, "RESCALE_HALF_LIVES", height)
    frequent = run(temporal, stream)
    assert np.array_equal(frequent.to_numpy(), rare.to_numpy())
    assert [frequent.neighbors(vertex) for vertex in frequent] == [rare.neighbors(vertex) for vertex in rare]
    if temporal.get("half_life"):
        assert frequent.digest() != rare.digest()  # weights were rescaled


@pytest.mark.parametrize("silence", [3, 8])
def test_gap_in_time_keeps_communities(silence: int) -> None:
    drift = drifting_communities(VERTICES, communities=6, events=7_000, phases=1, seed=2)
    model, late = Embedder(dim=16, half_life=1_500), drift.time + silence * 1_500 * (drift.time >= 6_000)
    model.fit(Batch.of(*drift.edges[:6_000].T, time=late[:6_000]))
    for part in np.split(np.arange(6_000, 7_000), 20):
        model.partial_fit(Batch.of(*drift.edges[part].T, time=late[part]))
    half = np.arange(VERTICES // 2)
    assert classify(model.vectors(range(VERTICES)), drift.labels[0], half, half + VERTICES // 2).micro > 0.85


# ---------------------------------------------------------------------- reading


def test_neighbors_return_decayed_weights() -> None:
    model = Embedder(dim=2, half_life=10.0)
    model.partial_fit(Batch.of(["a", "a"], ["b", "c"], [4.0, 1.0], time=[100.0, 120.0]))
    assert dict(model.neighbors("a")) == {"b": 1.0, "c": 1.0}
    model.add_vertex("d", time=130.0)
    assert dict(model.neighbors("a")) == {"b": 0.5, "c": 0.5}
    assert model.engine.vertex_info(model.engine.find_row("a")).strength == 1.0
    model.add_vertex("a", ["b"], time=90.0)  # a late event
    assert dict(model.neighbors("a")) == {"b": 0.5 + 1 / 16, "c": 0.5}
    assert model.diagnostics()["time"] == 130.0


def test_preview_agrees_with_the_arrival(temporal: dict[str, Any]) -> None:
    model = run(temporal | {"anchor_growth": 0, "depth": 0, "duplicates": "add"}, make_stream())
    neighbors = [name for name in model.ids if model.degree([name])[0] > 0][:3]
    expected = model.preview(neighbors, [1.0, 2.0, 0.5])
    assert model.add_vertex("new", neighbors, [1.0, 2.0, 0.5]) == pytest.approx(expected, abs=2e-3)


def test_infinite_time_raises() -> None:
    with pytest.raises(ValueError, match=r"time: expected finite numbers .*, or NaN for no time, got .inf in row 1"):
        Batch.of([0, 1], [1, 2], time=[np.nan, np.inf])
    with pytest.raises(ValueError, match="time"):
        Embedder(dim=2).add_vertex("a", ["b"], time=-np.inf)


def test_extreme_times_are_supported() -> None:
    model = Embedder(dim=2, half_life=1e-100, expire_after=1.0, max_time_jump=1e300, start_size=3)
    for time in (-MAX_TIME, MAX_TIME, 0.0):
        model.partial_fit(Batch.of([0, 1, 2, 0], [1, 2, 3, 3], time=np.full(4, time)))
        model.check()
        assert np.isfinite(model.to_numpy()).all()
    assert dict(model.neighbors(0)) == {1: 1.0, 3: 1.0}


# ---------------------------------------------------------------------- saving and replay


@pytest.mark.parametrize("threads", [1, 2])
def test_temporal_model_gives_the_same_bits_for_any_number_of_threads(
    temporal: dict[str, Any], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripple, "MIN_EDGES_FOR_THREADS", 1)
    monkeypatch.setattr(batch_step, "MIN_ROWS_PER_TASK", 2)
    stream = make_stream()
    assert run(temporal | {"threads": threads}, stream).digest() == run(temporal | {"threads": 3}, stream).digest()


def test_saved_temporal_model_continues_with_the_same_bits(temporal: dict[str, Any], tmp_path: Path) -> None:
    stream = make_stream()
    whole = run(temporal, stream).digest()
    half = run(temporal, stream[:13])
    half.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), copy.deepcopy(half), pickle.loads(pickle.dumps(half))):
        assert again.digest() == half.digest()
        assert run(temporal, stream[13:], again).digest() == whole


def test_digest_includes_edge_times() -> None:
    one, other = (Embedder(dim=2, expire_after=10.0) for _ in range(2))
    one.partial_fit(Batch.of([0, 1], [1, 2], time=[0.0, 5.0]))
    other.partial_fit(Batch.of([0, 1], [1, 2], time=[1.0, 5.0]))
    assert one.digest() != other.digest()


@pytest.mark.parametrize("snapshot_every", [10, 10**6])
def test_replay_gives_the_same_bits(temporal: dict[str, Any], snapshot_every: int, tmp_path: Path) -> None:
    stream = make_stream()
    parameters = {"start_size": 20, "snapshot_every": snapshot_every, **temporal}
    with Session(tmp_path / "one", **parameters) as session:
        for batch in stream:
            session.apply(batch)
        whole, sequence = session.model.digest(), session.model.sequence
    for part in (stream[:11], stream[11:]):
        with Session(tmp_path / "two", **parameters) as session:
            for batch in part:
                session.apply(batch)
    with Session(tmp_path / "two", snapshot_every=snapshot_every) as session:
        assert (session.model.digest(), session.model.sequence) == (whole, sequence)


def test_journaled_removal_of_an_expired_edge_can_be_replayed(tmp_path: Path) -> None:
    added, later = Batch.of([0, 1], [1, 2], time=[0.0, 0.0]), Batch.of([5], [6], time=[100.0])
    removed, unknown = Batch.of([0], [1], op=[Op.REMOVE]), Batch.of([0], [9], op=[Op.REMOVE])
    with Session(tmp_path / "state", dim=2, expire_after=10.0) as session:
        answers = session.apply_many(
            [added, later, removed, unknown]
        )  # validated together, before any of them is applied
        assert [isinstance(answer, UnknownVertexError) for answer in answers] == [False, False, False, True]
        digest = session.model.digest()
        assert session.model.engine.edges == 1
    with Session(tmp_path / "state") as session:
        assert session.model.digest() == digest


def test_models_saved_before_temporal_parameters_are_read(tmp_path: Path) -> None:
    model = Embedder(dim=3).fit([(0, 1), (1, 2), (2, 3), (3, 1)])
    state = model.__getstate__()
    old = {name: value for name, value in state["parameters"].items() if name not in ("half_life", "expire_after")}
    write_arrays(tmp_path / "old", state["arrays"], {"parameters": old}, version=1)
    assert load(tmp_path / "old").digest() == model.digest()


def test_session_with_other_temporal_parameters_raises(tmp_path: Path) -> None:
    with Session(tmp_path / "state", dim=3, half_life=5.0) as session:
        session.apply(Batch.of([0], [1], time=[1.0]))
    with pytest.raises(ValueError, match=r"half_life: expected 5.0, as saved in this directory, got 6.0"):
        Session(tmp_path / "state", half_life=6.0)
    with pytest.raises(ValueError, match="expire_after: expected None, as saved in this directory"):
        Session(tmp_path / "state", expire_after=6.0)


@pytest.mark.parametrize("name", ["half_life", "expire_after"])
def test_rule_paper_with_temporal_parameters_raises(name: str) -> None:
    with pytest.raises(ValueError, match=rf'{name}: expected None with rule "paper": only "ripple" supports it'):
        Embedder(rule="paper", **{name: 1.0})
