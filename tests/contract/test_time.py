"""Models that forget: what they are worth when a graph changes, and that they are as reproducible as others."""

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
from ripplevec.rules import ripple
from ripplevec.temporal import decay
from ripplevec.util.checked_directory import write_arrays

FORGETFUL: dict[str, dict[str, Any]] = {
    "fading": {"half_life": 150.0},
    "expiring": {"expire_after": 400.0},
    "both": {"half_life": 100.0, "expire_after": 500.0, "directed": True},
    "both, ignoring repeats": {"half_life": 60.0, "expire_after": 300.0, "duplicates": "ignore", "storage": "float16"},
}


@pytest.fixture(params=FORGETFUL)
def forgetful(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The parameters of a model that forgets."""
    return {"dim": 6, "seed": 3, **FORGETFUL[request.param]}


def batches(drift: Drift, size: int) -> list[Batch]:
    parts = np.split(np.arange(len(drift.edges)), range(size, len(drift.edges), size))
    return [Batch.of(*drift.edges[part].T, time=drift.time[part]) for part in parts]


def a_stream(seed: int = 0) -> list[Batch]:
    """Meetings with weights, some of them late or without a time, with removals of edges and vertices between them."""
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
            gone = int(batch.src[0]) if int(batch.src[0]) not in (src, dst) else None
            rows = [(src, dst, Op.REMOVE)] + ([] if gone is None else [(gone, gone, Op.REMOVE_VERTEX)])
            stream.append(Batch.of(*map(list, zip(*[(u, v, 1.0, op) for u, v, op in rows], strict=True))))
    return stream


def run(parameters: dict[str, Any], stream: list[Batch], model: Embedder | None = None) -> Embedder:
    model = Embedder(**{"start_size": 20, **parameters}) if model is None else model
    for batch in stream:
        model.partial_fit(batch)
    model.check()
    return model


# ---------------------------------------------------------------------- what it is worth

EVENTS, AFTER, VERTICES = 9_000, 3_000, 600


def recovered(seed: int, **parameters: Any) -> tuple[float, float]:
    """How well communities are told apart before they move, and so many events after they have."""
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
def test_a_model_that_forgets_finds_communities_that_have_moved(seed: int) -> None:
    then, plain = recovered(seed)
    assert then > 0.97
    assert plain < 0.70  # half of the vertices are where they were
    for forgets in ({"half_life": 1_500}, {"expire_after": 4_000}, {"half_life": 1_500, "expire_after": 6_000}):
        then, now = recovered(seed, **forgets)
        assert then > 0.97
        assert now > 0.92, forgets


# ---------------------------------------------------------------------- what fading means


def test_a_start_sees_the_weights_that_are_left() -> None:
    drift = drifting_communities(vertices=80, communities=4, events=900, seed=5)
    pairs = np.unique(np.sort(drift.edges, axis=1), axis=0)
    time = np.random.default_rng(0).uniform(0, 100, len(pairs))
    view = [SpectralView(tau_per_degree=0.5)]
    fading = Embedder(dim=5, views=view, half_life=20.0).fit(Batch.of(*pairs.T, time=time))
    plain = Embedder(dim=5, views=view).fit(Batch.of(*pairs.T, 2.0 ** ((time - time.max()) / 20.0)))
    assert np.abs(np.sum(fading.to_numpy() * plain.to_numpy(), axis=1)) == pytest.approx(np.ones(80), abs=1e-4)
    for vertex in (0, 40):
        assert dict(fading.neighbors(vertex)) == pytest.approx(dict(plain.neighbors(vertex)), rel=1e-5)
    assert fading.diagnostics(objective=True)["objective"] == pytest.approx(
        plain.diagnostics(objective=True)["objective"], rel=1e-3
    )


def test_influence_is_drawn_as_if_old_edges_had_been_made_lighter() -> None:
    drift = drifting_communities(vertices=60, communities=3, events=400, seed=1)
    stream = batches(drift, 20)
    fading = Embedder(dim=4, anchor_growth=0, half_life=50.0, start_size=30)
    plain = Embedder(dim=4, anchor_growth=0, start_size=30)
    for batch in stream:
        assert batch.time is not None
        changed = [
            fading.partial_fit(batch),
            plain.partial_fit(Batch.of(batch.src, batch.dst, 2.0 ** (batch.time / 50))),
        ]
        assert changed[0].ids == changed[1].ids
    assert fading.engine.ready


def test_a_very_long_half_life_is_none(forgetful: dict[str, Any]) -> None:
    forgetful, stream = forgetful | {"duplicates": "add"}, a_stream()
    kept = {name: value for name, value in forgetful.items() if name not in ("half_life", "expire_after")}
    long, plain = run(kept | {"half_life": 1e300, "expire_after": 1e300}, stream), run(kept, stream)
    assert np.array_equal(long.to_numpy(), plain.to_numpy())
    assert long.ids == plain.ids


@pytest.mark.parametrize("height", [2.0, 5.0])
def test_when_everything_is_halved_changes_no_bit(
    forgetful: dict[str, Any], height: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = a_stream()
    seldom = run(forgetful, stream)
    monkeypatch.setattr(decay, "RESCALE_HALF_LIVES", height)
    often = run(forgetful, stream)
    assert np.array_equal(often.to_numpy(), seldom.to_numpy())
    assert [often.neighbors(vertex) for vertex in often] == [seldom.neighbors(vertex) for vertex in seldom]
    if forgetful.get("half_life"):
        assert often.digest() != seldom.digest()  # it did happen


@pytest.mark.parametrize("silence", [3, 8])
def test_a_silence_is_no_reason_to_forget_the_communities(silence: int) -> None:
    drift = drifting_communities(VERTICES, communities=6, events=7_000, phases=1, seed=2)
    model, late = Embedder(dim=16, half_life=1_500), drift.time + silence * 1_500 * (drift.time >= 6_000)
    model.fit(Batch.of(*drift.edges[:6_000].T, time=late[:6_000]))
    for part in np.split(np.arange(6_000, 7_000), 20):
        model.partial_fit(Batch.of(*drift.edges[part].T, time=late[part]))
    half = np.arange(VERTICES // 2)
    assert classify(model.vectors(range(VERTICES)), drift.labels[0], half, half + VERTICES // 2).micro > 0.85


# ---------------------------------------------------------------------- reading


def test_weights_are_read_as_they_are_by_now() -> None:
    model = Embedder(dim=2, half_life=10.0)
    model.partial_fit(Batch.of(["a", "a"], ["b", "c"], [4.0, 1.0], time=[100.0, 120.0]))
    assert dict(model.neighbors("a")) == {"b": 1.0, "c": 1.0}
    model.add_vertex("d", time=130.0)
    assert dict(model.neighbors("a")) == {"b": 0.5, "c": 0.5}
    assert model.engine.vertex_info(model.engine.find_row("a")).strength == 1.0
    model.add_vertex("a", ["b"], time=90.0)  # it comes late
    assert dict(model.neighbors("a")) == {"b": 0.5 + 1 / 16, "c": 0.5}
    assert model.diagnostics()["time"] == 130.0


def test_a_preview_is_where_a_newcomer_comes_to(forgetful: dict[str, Any]) -> None:
    model = run(forgetful | {"anchor_growth": 0, "depth": 0, "duplicates": "add"}, a_stream())
    around = [name for name in model.ids if model.degree([name])[0] > 0][:3]
    expected = model.preview(around, [1.0, 2.0, 0.5])
    assert model.add_vertex("new", around, [1.0, 2.0, 0.5]) == pytest.approx(expected, abs=2e-3)


def test_time_that_is_infinite_is_refused() -> None:
    with pytest.raises(ValueError, match=r"time: expected finite numbers .*, or NaN for no time, got .inf in row 1"):
        Batch.of([0, 1], [1, 2], time=[np.nan, np.inf])
    with pytest.raises(ValueError, match="time"):
        Embedder(dim=2).add_vertex("a", ["b"], time=-np.inf)


def test_times_as_far_apart_as_can_be_are_still_times() -> None:
    model = Embedder(dim=2, half_life=1e-100, expire_after=1.0, start_size=3)
    for time in (-MAX_TIME, MAX_TIME, 0.0):
        model.partial_fit(Batch.of([0, 1, 2, 0], [1, 2, 3, 3], time=np.full(4, time)))
        model._engine.check()
        assert np.isfinite(model._engine.store.vectors).all()
    assert dict(model.neighbors(0)) == {1: 1.0, 3: 1.0}


# ---------------------------------------------------------------------- keeping


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_do_not_depend_on_threads(
    forgetful: dict[str, Any], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripple, "MIN_EDGES_FOR_THREADS", 1)
    monkeypatch.setattr(ripple, "MIN_ROWS_PER_TASK", 2)
    stream = a_stream()
    assert run(forgetful | {"threads": threads}, stream).digest() == run(forgetful | {"threads": 3}, stream).digest()


def test_a_saved_model_goes_on_as_if_never_stopped(forgetful: dict[str, Any], tmp_path: Path) -> None:
    stream = a_stream()
    whole = run(forgetful, stream).digest()
    half = run(forgetful, stream[:13])
    half.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), copy.deepcopy(half), pickle.loads(pickle.dumps(half))):
        assert again.digest() == half.digest()
        assert run(forgetful, stream[13:], again).digest() == whole


def test_the_digest_sees_when_edges_were_mentioned() -> None:
    one, other = (Embedder(dim=2, expire_after=10.0) for _ in range(2))
    one.partial_fit(Batch.of([0, 1], [1, 2], time=[0.0, 5.0]))
    other.partial_fit(Batch.of([0, 1], [1, 2], time=[1.0, 5.0]))
    assert one.digest() != other.digest()


@pytest.mark.parametrize("snapshot_every", [10, 10**6])
def test_a_replay_gives_the_same_bits(forgetful: dict[str, Any], snapshot_every: int, tmp_path: Path) -> None:
    stream = a_stream()
    parameters = {"start_size": 20, "anchor_lag": 0.05, "snapshot_every": snapshot_every, **forgetful}
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


def test_what_is_on_disk_can_be_applied_even_if_an_edge_has_expired_meanwhile(tmp_path: Path) -> None:
    came, later = Batch.of([0, 1], [1, 2], time=[0.0, 0.0]), Batch.of([5], [6], time=[100.0])
    gone, nobody = Batch.of([0], [1], op=[Op.REMOVE]), Batch.of([0], [9], op=[Op.REMOVE])
    with Session(tmp_path / "state", dim=2, expire_after=10.0) as session:
        answers = session.apply_many([came, later, gone, nobody])  # admitted together, before any of them is applied
        assert [isinstance(answer, UnknownVertexError) for answer in answers] == [False, False, False, True]
        digest = session.model.digest()
        assert session.model.engine.edges == 1
    with Session(tmp_path / "state") as session:
        assert session.model.digest() == digest


def test_what_was_kept_before_there_was_time_is_still_read(tmp_path: Path) -> None:
    model = Embedder(dim=3).fit([(0, 1), (1, 2), (2, 3), (3, 1)])
    state = model.__getstate__()
    old = {name: value for name, value in state["parameters"].items() if name not in ("half_life", "expire_after")}
    write_arrays(tmp_path / "old", state["arrays"], {"parameters": old}, version=1)
    assert load(tmp_path / "old").digest() == model.digest()


def test_a_directory_keeps_how_it_forgets(tmp_path: Path) -> None:
    with Session(tmp_path / "state", dim=3, half_life=5.0) as session:
        session.apply(Batch.of([0], [1], time=[1.0]))
    with pytest.raises(ValueError, match=r"half_life: expected 5.0, with which this directory was made, got 6.0"):
        Session(tmp_path / "state", half_life=6.0)
    with pytest.raises(ValueError, match="expire_after: expected None, with which this directory was made"):
        Session(tmp_path / "state", expire_after=6.0)


@pytest.mark.parametrize("name", ["half_life", "expire_after"])
def test_rule_paper_forgets_nothing(name: str) -> None:
    with pytest.raises(ValueError, match=rf'{name}: expected None with rule "paper": only "ripple" forgets'):
        Embedder(rule="paper", **{name: 1.0})


@pytest.mark.parametrize("name", ["half_life", "expire_after"])
def test_shards_forget_nothing(name: str) -> None:
    pytest.importorskip("ray", reason="needs ripplevec[cluster]")
    from ripplevec.cluster import ShardedEmbedder

    with pytest.raises(ValueError, match=rf"{name}: expected None on shards"):
        ShardedEmbedder(shards=2, **{name: 1.0})
