"""Events far in the future are refused, and change nothing."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Embedder, InvalidValueError, Op, Session, UnknownVertexError
from ripplevec.batch import ids_to_list
from ripplevec.io.registry import dead_letters_to, stream_from
from ripplevec.temporal.time_limit import TimeLimit

times = st.lists(st.sampled_from([np.nan, 0.0, 1.0, 3.0, 5.0, 6.0, 9.0, 20.0]), max_size=8)


@given(st.sampled_from([np.nan, 0.0, 4.0]), st.lists(times, max_size=4))
def test_find_jumps_equals_a_loop_over_rows(latest, batches):
    limit, expected = TimeLimit(latest, 4.0), latest
    for batch in batches:
        rejected = []
        for row, time in enumerate(batch):
            if time - expected > 4:
                rejected.append(row)
            elif not np.isnan(time):
                expected = np.fmax(expected, time)
        assert list(limit.find_jumps(np.array(batch))) == rejected


def test_check_accepts_nothing():
    limit = TimeLimit(0.0, 4.0)
    limit.check(np.array([4.0]))
    with pytest.raises(InvalidValueError, match="expected at most 4 after the latest time 0, got 5 in row 0"):
        limit.check(np.array([5.0]))


EDGES = Batch.of(["a", "b", "c"], ["b", "c", "a"], time=[0.0, 1.0, 2.0])


def build(**parameters):
    return Embedder(dim=2, **parameters).fit(EDGES)


def add_vertex(model, time):
    model.add_vertex("d", ["a"], time=time)


def add_edges(model, time):
    model.partial_fit(Batch.of(["d", "e"], ["a", "a"], time=[3.0, time]))


@pytest.mark.parametrize("write", [add_vertex, add_edges])
@pytest.mark.parametrize(
    ("parameters", "limit"),
    [
        ({"half_life": 10.0}, 1000.0),
        ({"expire_after": 20.0}, 2000.0),
        ({"half_life": 10.0, "expire_after": 20.0}, 1000.0),
        ({"half_life": 10.0, "max_time_jump": 50.0}, 50.0),
    ],
)
def test_event_beyond_the_limit_changes_nothing(write, parameters, limit):
    model = build(**parameters)
    before = model.digest()
    with pytest.raises(InvalidValueError, match="if this one is right, raise max_time_jump"):
        write(model, 3.5 + limit)
    assert model.digest() == before
    write(model, 2.0 + limit)
    assert model.diagnostics()["time"] == 2.0 + limit


def test_times_without_aging_of_edges_are_not_limited():
    add_vertex(build(), 1e90)


def test_fit_refuses_a_jump_between_its_edges():
    with pytest.raises(InvalidValueError, match="got 1700000000000 in row 1"):
        Embedder(dim=2, half_life=1.0).fit(Batch.of([1, 2], [2, 3], time=[1.7e9, 1.7e12]))


def test_limit_after_save_and_load_is_the_same(tmp_path):
    build(half_life=10.0, max_time_jump=50.0).save(tmp_path / "model")
    loaded = Embedder.load(tmp_path / "model")
    assert loaded.max_time_jump == 50.0
    with pytest.raises(InvalidValueError, match="max_time_jump"):
        add_vertex(loaded, 60.0)


def test_session_refuses_a_jump_within_a_group_of_batches(tmp_path):
    with Session(tmp_path / "state", dim=2, start_size=3, half_life=10.0, max_time_jump=50.0) as session:
        session.partial_fit(EDGES)
        batches = [Batch.arrival(name, ["a"], time=time) for name, time in [("d", 40.0), ("e", 100.0), ("f", 90.0)]]
        results = session.apply_many(batches)
        assert [isinstance(result, InvalidValueError) for result in results] == [False, True, False]
        assert ("e" in session.model, "f" in session.model) == (False, True)
        digest = session.model.digest()
    with Session(tmp_path / "state") as session:  # replays batches, which are not checked again
        assert session.model.digest() == digest
    with Session(tmp_path / "state", max_time_jump=1e6) as session:
        session.add_vertex("e", ["a"], time=1e6)


def test_rejected_removal_leaves_the_latest_time_of_an_admission():
    admission = build(half_life=10.0, max_time_jump=50.0).engine.open_admission()
    with pytest.raises(UnknownVertexError):
        admission.admit(Batch.of(["x"], ["x"], op=[Op.REMOVE_VERTEX], time=[40.0]))
    with pytest.raises(InvalidValueError, match="after the latest time 2,"):
        admission.admit(Batch.arrival("d", ["a"], time=60.0))


def test_valid_rows_are_admitted_beside_jumps_and_unknown_vertices():
    admission = build(half_life=10.0, max_time_jump=50.0).engine.open_admission()
    op = [Op.ADD, Op.REMOVE_VERTEX, Op.ADD, Op.ADD]
    batch = Batch.of(["d", "x", "e", "f"], ["a", "x", "a", "a"], op=op, time=[99.0, 3.0, 4.0, 54.0])
    admitted, errors = admission.admit_valid_rows(batch)
    assert ids_to_list(admitted.src) == ["e", "f"]
    assert {row: type(error) for row, error in errors.items()} == {0: InvalidValueError, 1: UnknownVertexError}


def test_event_of_a_stream_beyond_the_limit_becomes_a_dead_letter(tmp_path):
    path, letters = tmp_path / "edges.jsonl", tmp_path / "letters.jsonl"
    rows = [["a", "b", 1, 0], ["b", "c", 1, 1], ["x", "c", 1, 1e12], ["c", "a", 1, 2]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with (
        Session(tmp_path / "state", dim=2, start_size=3, half_life=10.0) as session,
        closing(stream_from(path)) as source,
        closing(dead_letters_to(letters)) as dead_letters,
    ):
        session.run(source, dead_letters=dead_letters, until=lambda: session.model.sequence > 0)
        assert sorted(session.model.ids) == ["a", "b", "c"]
        assert session.model.diagnostics()["time"] == 2
    assert "max_time_jump" in letters.read_text()
