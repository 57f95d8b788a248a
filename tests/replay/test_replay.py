"""Replays of files and of the built-in stream: order, immediate part, limit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ripplevec.batch import Batch, Id, ids_to_list
from ripplevec.errors import FormatError
from ripplevec.replay.pacing import Report
from ripplevec.replay.replay import LABELS, Replay, generate_stream, replay_builtin, replay_file


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "edges.csv"
    rows = [(i, i + 1, (i * 7) % 20) for i in range(20)]
    path.write_text("src,dst,time\n" + "".join(f"{a},{b},{t}\n" for a, b, t in rows))
    return str(path)


def sent_ids(replay: Replay) -> list[Id]:
    batches: list[Batch] = []
    with closing(replay):
        replay.play(batches.append)
    return [name for batch in batches for name in ids_to_list(batch.src)]


def test_file_at_a_rate_is_sent_in_file_order(file: str) -> None:
    replay = replay_file(file, {}, 6, sort=False).with_schedule(1e6, None, 1000, 0, None)
    assert sent_ids(replay) == list(range(20))
    assert replay.total is None


def test_file_at_a_speed_is_sent_in_order_of_time(file: str) -> None:
    replay = replay_file(file, {}, 6, sort=True).with_schedule(None, 1e6, 1000, 0, None)
    assert sent_ids(replay) == sorted(range(20), key=lambda i: (i * 7) % 20)
    assert replay.total == 20


@pytest.mark.parametrize("pace", [(1e6, None), (None, 1e6)])
def test_immediate_events_are_sent_before_the_clock_starts(file: str, pace: tuple[float | None, float | None]) -> None:
    replay = replay_file(file, {}, 6, sort=pace[1] is not None).with_schedule(*pace, 4, 9, None)
    reports: list[Report] = []
    batches: list[Batch] = []
    report = replay.play(batches.append, reports.append)
    assert [len(batch) for batch in batches[:3]] == [4, 4, 1]
    assert replay.sent_immediately == 9
    assert report.events == 11
    assert sum(map(len, batches)) == 20
    assert [earlier.events for earlier in reports[:3]] == [0, 0, 0]


@pytest.mark.parametrize(("limit", "immediate", "sort"), [(7, 0, False), (7, 3, True), (7, 9, False), (50, 0, True)])
def test_limit_counts_immediate_and_scheduled_events(file: str, limit: int, immediate: int, sort: bool) -> None:
    pace = (None, 1e6) if sort else (1e6, None)
    replay = replay_file(file, {}, 6, sort=sort).with_schedule(*pace, 5, immediate, limit)
    assert replay.total == min(limit, 20) if sort else 7
    assert len(sent_ids(replay)) == min(limit, 20)


def test_builtin_replay_has_labels() -> None:
    replay = replay_builtin(100, 0).with_schedule(None, 1e6, 1000, 0, 40)
    batches: list[Batch] = []
    replay.play(batches.append)
    assert sum(map(len, batches)) == 40
    assert {name for batch in batches for name in ids_to_list(batch.src)} <= replay.labels.keys()


def test_file_without_times_at_a_speed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\nb,c\n")
    with pytest.raises(FormatError, match="--rate"):
        replay_file(str(path), {}, 10, sort=True)


def test_interrupt_during_immediate_events_ends_the_replay() -> None:
    def send(batch: Batch) -> None:
        raise KeyboardInterrupt

    report = replay_builtin(50, 0).with_schedule(1e6, None, 10, 30, None).play(send)
    assert report.interrupted
    assert report.events == 0


def test_builtin_stream_adds_one_vertex_per_second_with_edges_to_earlier_ones() -> None:
    batch, labels = generate_stream(300)
    newer, older = (
        np.array([int(name.rpartition("-")[2]) for name in ids_to_list(end)]) for end in (batch.src, batch.dst)
    )
    assert (older < newer).all()
    assert batch.time is not None
    np.testing.assert_array_equal(batch.time, newer)
    assert (np.diff(batch.time) >= 0).all()
    assert set(ids_to_list(batch.src)) | set(ids_to_list(batch.dst)) <= labels.keys()


def test_builtin_stream_ids_start_with_their_label() -> None:
    _, labels = generate_stream(300)
    assert len(labels) == 300
    assert set(labels.values()) == set(LABELS)
    assert all(name.startswith(f"{label}-") for name, label in labels.items())


def test_builtin_stream_depends_on_the_seed() -> None:
    assert ids_to_list(generate_stream(50)[0].dst) == ids_to_list(generate_stream(50)[0].dst)
    assert ids_to_list(generate_stream(50, 1)[0].dst) != ids_to_list(generate_stream(50)[0].dst)
