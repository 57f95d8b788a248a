from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec import Batch, Changes, Embedder, InvalidValueError, Op, RipplevecError, UnknownEdgeError
from ripplevec.durability.journal import Journal
from ripplevec.durability.session import JournalEntry, Session
from ripplevec.durability.session_model import SessionModel
from ripplevec.durability.snapshot import SNAPSHOTS_DIRECTORY, SnapshotStore, SnapshotWriter
from ripplevec.errors import FormatError, SelfLoopWarning, StateError
from ripplevec.io.protocols import BadMessage, ReadResult
from ripplevec.util.checked_directory import JOURNAL_FILE

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.2, "threads": 1}
VERTEX_IDS: list[Any] = [0, 1, 2, 3, "0", "a", "é", 10**30, -(2**70), -5]


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Function that opens the session of this test; all are closed at the end."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Session(tmp_path / "state", **{**PARAMETERS, **options}))


def simulate_crash(session: Session) -> None:
    """Release the lock without writing anything else, as a crash does."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("append", "close"):
            patch.setattr(Journal, name, lambda *_: None)
        session.close()


def make_stream(batches: int = 20, size: int = 12, seed: int = 0) -> list[Batch]:
    """Return batches of a growing graph; each removes the last edge of the one before."""
    rng, stream = np.random.default_rng(seed), []
    for number in range(batches):
        ends = rng.integers(0, 10 + 4 * number, (size, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        rows = [(int(u), int(v), Op.ADD) for u, v in ends] + [(f"v{number}", 0, Op.ADD)]
        if number:
            rows.append((f"v{number - 1}", 0, Op.REMOVE))
        src, dst, op = (list(column) for column in zip(*rows, strict=True))
        stream.append(Batch.of(src, dst, op=op))
    return stream


def uninterrupted_digest(tmp_path: Path, stream: list[Batch], **options: Any) -> str:
    """Return the digest of a session that applied a stream batch by batch."""
    with Session(tmp_path / "uninterrupted", **{**PARAMETERS, **options}) as session:
        for batch in stream:
            session.apply(batch)
        return session.model.digest()


# ---------------------------------------------------------------------- batches


def test_session_reopened_has_same_state(open_session: Any) -> None:
    with open_session() as session:
        changes = session.apply([("a", "b", 2.0), (1, "1")])
        assert (changes.sequence, changes.ids) == (1, ["a", "b", 1, "1"])
        digest = session.model.digest()
    with open_session() as session:
        assert session.model.digest() == digest
        assert session.recovery.replayed == 1


def test_session_in_directory_of_saved_model_raises_and_keeps_model(tmp_path: Path) -> None:
    model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
    model.save(tmp_path / "model")
    with pytest.raises(FormatError, match=r"model: expected a session directory or a new one, got a saved model\. Cho"):
        Session(tmp_path / "model")
    assert Embedder.load(tmp_path / "model").digest() == model.digest()


def test_session_rejected_batch_saves_nothing(open_session: Any) -> None:
    with open_session() as session:
        session.apply([("a", "b")])
        digest = session.model.digest()
        with pytest.raises(UnknownEdgeError):
            session.apply(Batch.of(["c", "a"], ["d", "c"], op=[Op.ADD, Op.REMOVE]), key="k", source="s", position=1)
        with pytest.raises(InvalidValueError, match="weight"):
            session.apply([("a", "b", -1.0)])
        assert session.model.digest() == digest
        assert session.find_key("k") is None
        assert session.position("s") is None
    with open_session() as session:
        assert session.model.digest() == digest


def test_session_repeated_key_is_applied_once(open_session: Any) -> None:
    with open_session() as session:
        first = session.apply([("a", "b")], key="k")
        session.apply([("b", "c")])
        digest = session.model.digest()
        again = session.apply([("a", "b")], key="k")
        assert (first.sequence, again.sequence, len(again), again.vectors.shape) == (1, 1, 0, (0, 3))
        assert (again.removed, again.anchored, again.arrived.tolist()) == ([], False, [])
        assert session.model.digest() == digest
    with open_session() as session:
        assert session.apply([("a", "b")], key="k").sequence == 1
        assert session.find_key("k") == 1
        assert session.model.sequence == 2


def test_session_apply_many_writes_once_and_applies_each_batch(
    open_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, flushes = make_stream(), []
    append = Journal.append
    monkeypatch.setattr(Journal, "append", lambda *given: (flushes.append(1), append(*given))[1])
    session = open_session()
    results = session.apply_many(stream)
    assert len(flushes) == 1
    assert [result.sequence for result in results] == list(range(1, 21))
    assert session.model.digest() == uninterrupted_digest(tmp_path, stream)


def test_session_apply_many_validates_each_batch_after_earlier_ones(open_session: Any) -> None:
    def removal(vertex: str) -> Batch:
        return Batch.of([vertex], ["b"], op=[Op.REMOVE])

    session = open_session()
    results = session.apply_many(
        [
            JournalEntry([("a", "b")], "one"),
            removal("a"),
            removal("a"),
            JournalEntry([("a", "b")], "one"),
            JournalEntry(Batch.of(["c", "x"], ["b", "b"], op=[Op.ADD, Op.REMOVE]), "bad"),
            removal("c"),
            JournalEntry([("c", "b")], "two"),
            removal("c"),
            JournalEntry("nonsense"),
        ]
    )
    found = [result.sequence if isinstance(result, Changes) else type(result).__name__ for result in results]
    unknown = "UnknownVertexError"
    assert found == [1, 2, "UnknownEdgeError", 1, unknown, unknown, 3, 4, "InvalidValueError"]
    assert session.model.diagnostics()["edges"] == 0
    assert session.find_key("bad") is None


@pytest.mark.parametrize(
    "given",
    [
        *({"key": key} for key in ("", 3, "x" * 300, "\ud800")),
        *({"source": "s", "position": position} for position in (float("nan"), object())),
        {"position": 3},
        {"source": ""},
    ],
)
def test_session_invalid_key_source_or_position_raises(open_session: Any, given: dict[str, Any]) -> None:
    session = open_session()
    with pytest.raises(InvalidValueError):
        session.apply([("a", "b")], **given)
    assert session.model.sequence == 0


def test_session_model_write_methods_raise_state_error(open_session: Any) -> None:
    session = open_session()
    session.apply([("a", "b")])
    for change in (
        lambda: session.model.partial_fit([("a", "c")]),
        lambda: session.model.add_edges([("a", "c")]),
        lambda: session.model.add_vertex("c"),
        lambda: session.model.remove_vertex("a"),
        lambda: session.model.remove_edges([("a", "b")]),
        lambda: session.model.anchor(),
        lambda: session.model.fit([("a", "c")]),
        lambda: session.model.set_params(dim=4),
    ):
        with pytest.raises(StateError, match=r"session\.apply"):
            change()
    assert session.model.ids == ["a", "b"]


# ---------------------------------------------------------------------- recovery


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Batches that add, weight, remove and add again, with ids of all kinds; some will be rejected."""
    name = st.sampled_from(VERTEX_IDS)
    row = st.tuples(name, name, st.sampled_from([0.5, 1.0, 4.0]), st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2, 3]))
    batches = draw(st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=14))
    return [Batch.of(*map(list, zip(*rows, strict=True))) for rows in batches]


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@settings(max_examples=40)
@given(stream=streams(), seed=st.integers(0, 10**6), pace=st.sampled_from(["immediate", "gradual"]))
def test_session_crashes_anywhere_keep_digest_of_uninterrupted_run(
    tmp_path_factory: pytest.TempPathFactory, stream: list[Batch], seed: int, pace: str
) -> None:
    """Groups of any size, with snapshots and crashes at any time, equal one batch after another."""
    choices = random.Random(seed)
    directory = tmp_path_factory.mktemp("state") / "state"
    plain = Session(directory.with_name("plain"), **PARAMETERS, anchor_pace=pace)
    rejected, waiting = set(), list(enumerate(stream))
    for number, batch in waiting:
        try:
            plain.apply(batch)
        except RipplevecError:
            rejected.add(number)
    while waiting:
        session = Session(directory, snapshot_every=choices.choice([3, 1000]), **PARAMETERS, anchor_pace=pace)
        for _ in range(choices.randrange(4)):
            size = choices.randrange(1, 5)
            results = session.apply_many([JournalEntry(batch, key=str(number)) for number, batch in waiting[:size]])
            for (number, _), result in zip(waiting, results, strict=False):
                assert isinstance(result, RipplevecError) == (number in rejected)
            if choices.random() < 0.3:
                session.snapshot()
            sent, waiting = waiting[:size], waiting[size:]
            if choices.random() < 0.5:  # a client that received no result repeats batches that were applied
                waiting = [(number, batch) for number, batch in sent if number not in rejected] + waiting
        simulate_crash(session)
    with Session(directory) as session:
        assert session.model.digest() == plain.model.digest()
        assert session.model.sequence == len(stream) - len(rejected)
        session.model.check()
    plain.close()


@pytest.mark.parametrize(("rule", "pace"), [("ripple", "immediate"), ("ripple", "gradual"), ("paper", "gradual")])
def test_session_equals_embedder(tmp_path: Path, rule: str, pace: str) -> None:
    stream = make_stream()
    parameters = {"dim": 3, "start_size": 6, "rule": rule, "anchor_pace": pace, "threads": 1}
    model = Embedder(**parameters)
    with Session(tmp_path / "state", snapshot_every=30, **parameters) as session:
        for batch in stream:
            assert session.apply(batch).ids == model.partial_fit(batch).ids
        assert session.model.digest() == model.digest()


def test_session_writes_snapshots_and_compacts_journal(open_session: Any, tmp_path: Path) -> None:
    def first_batch() -> int:
        with contextlib.closing(Journal(tmp_path / "state" / JOURNAL_FILE, read_only=True)) as journal:
            return journal.first

    session = open_session(snapshot_every=40)
    for batch in make_stream(40):
        session.apply(batch)
    session.snapshot()
    session.apply([("x", "y")])
    sequences = SnapshotStore(tmp_path / "state" / SNAPSHOTS_DIRECTORY).sequences
    assert len(sequences) == 2
    assert first_batch() > 1
    session.compact()
    assert first_batch() == sequences[1] + 1
    assert session.snapshot_failure is None


def test_session_other_files_between_snapshots_do_not_stop_compaction(open_session: Any, tmp_path: Path) -> None:
    snapshots, state = tmp_path / "state" / SNAPSHOTS_DIRECTORY, tmp_path / "state"
    batches = make_stream(20)
    session = open_session()
    session.apply(batches[0])
    session.snapshot()
    session.close()
    for name in ("notes", "7", "²", "000000000099.damaged"):
        (snapshots / name).mkdir()
    (tmp_path / "elsewhere").mkdir()
    for number in (0, 2, 999):
        (snapshots / f"{number:012d}").symlink_to(tmp_path / "elsewhere")
    (snapshots / "dangling").symlink_to(tmp_path / "nothing")
    session = open_session()
    assert session.recovery.snapshot == 1
    for batch in batches[1:]:
        session.apply(batch)
        session.snapshot()
    session.compact()
    session.close()
    assert SnapshotStore(snapshots).sequences == [20, 19]
    with contextlib.closing(Journal(state / JOURNAL_FILE, read_only=True)) as journal:
        assert journal.first == 20
    assert not list((tmp_path / "elsewhere").iterdir())
    assert (snapshots / "notes").is_dir()
    assert open_session().model.sequence == 20


def test_session_parameters_must_equal_saved_ones(open_session: Any, tmp_path: Path) -> None:
    open_session(seed=5, anchor_pace="immediate").close()
    with Session(tmp_path / "state") as session:
        assert (session.model.seed, session.model.dim, session.model.anchor_pace) == (5, 3, "immediate")
    with Session(tmp_path / "state", dim=3, threads=2, search="exact", storage_dir=tmp_path) as session:
        assert session.model.threads == 2
        assert session.model.search == "exact"
        assert session.model.storage_dir == tmp_path
    for other in ({"dim": 4}, {"seed": 0}, {"anchor_pace": "gradual"}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(other))}: expected .*use another directory"):
            Session(tmp_path / "state", **other)
    with pytest.raises(InvalidValueError, match="one of dim"):
        Session(tmp_path / "state", color="blue")
    for bad in ({"snapshot_every": 0}, {"anchor_pace": "slow"}, {"dim": 0}, {"color": 1}):
        with pytest.raises(InvalidValueError, match=next(iter(bad)) if "color" not in bad else "parameter"):
            Session(tmp_path / "other", **bad)
    Session(tmp_path / "other").close()


def test_session_second_session_raises_until_first_is_closed(open_session: Any) -> None:
    first = open_session()
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        open_session()
    first.close()
    first.close()
    with pytest.raises(StateError, match="closed"):
        first.apply([("a", "b")])
    open_session()


def test_session_failed_write_changes_nothing(open_session: Any, connections: list[Any]) -> None:
    session = open_session()
    session.apply([("a", "b")])
    digest = session.model.digest()
    connections[-1].execute("PRAGMA max_page_count = 1")
    with pytest.raises(StateError, match="free some space"):
        session.apply(Batch.of(list(range(50_000)), list(range(50_000))), key="k")
    assert (session.model.digest(), session.find_key("k")) == (digest, None)
    connections[-1].execute("PRAGMA max_page_count = 100000")
    assert session.apply([("b", "c")]).sequence == 2


def test_session_failure_between_disk_and_memory_ends_session(
    open_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session()
    session.apply([("a", "b")])
    with monkeypatch.context() as patch:
        patch.setattr(type(session.model.engine.graph), "apply", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.apply([("b", "c")], key="k")
    with pytest.raises(StateError, match="Open the directory again"):
        session.apply([("c", "d")])
    session.close()
    session = open_session()
    assert (session.model.ids, session.find_key("k")) == (["a", "b", "c"], 2)


def test_session_self_loop_warning_as_error_comes_after_commit(open_session: Any) -> None:
    session, notified = open_session(), list[int]()
    session.add_listener(lambda _, changes: notified.append(changes.sequence))
    with pytest.raises(SelfLoopWarning):
        session.apply_many([Batch.of(["a"], ["a"]), Batch.of(["a"], ["b"])])
    assert session.model.ids == ["a", "b"]
    assert session.apply([("b", "c")]).sequence == 3
    assert notified == [1, 2, 3]


def test_session_reopened_does_not_repeat_self_loop_warning(open_session: Any) -> None:
    session = open_session()
    with pytest.raises(SelfLoopWarning):
        session.apply(Batch.of(["a", "a"], ["a", "b"]))
    session.close()
    assert open_session().apply([("b", "c")]).sequence == 2


def test_session_threads_write_and_read_concurrently(open_session: Any) -> None:
    session, sequences = open_session(snapshot_every=50), []

    def write(name: str) -> None:
        for number in range(20):
            sequences.append(session.apply([(name, number), (number, number + 1)], key=f"{name}{number}").sequence)
            assert session.model.vectors([name]).shape == (1, 3)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sequences) == list(range(1, 81))
    digest = session.model.digest()
    session.close()
    assert open_session().model.digest() == digest


def test_session_listener_gets_batches_of_all_threads_in_order(open_session: Any) -> None:
    session, notified = open_session(), list[tuple[int, Any, int]]()
    session.apply([("a", "b")])
    session.add_listener(lambda entry, changes: notified.append((changes.sequence, entry.source, len(entry.batch))))
    session.apply([("b", "c"), ("c", "d")], key="k")
    session.apply([("b", "c"), ("c", "d")], key="k")  # repeated key: nothing is applied
    with pytest.raises(UnknownEdgeError):
        session.apply(Batch.of(["a"], ["d"], op=[Op.REMOVE]))

    def write(name: str) -> None:
        for number in range(20):
            session.apply_many([[(name, number)], [(number, f"{name}{number}")]])

    threads = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    session.run(ListSource([Batch.of(["a"], ["s"]), Batch.of(["s"], ["t"])]))
    for thread in threads:
        thread.join()
    assert [sequence for sequence, _, _ in notified] == list(range(2, session.model.sequence + 1))
    assert notified[0] == (2, None, 2)
    assert [source for _, source, _ in notified if source is not None] == ["lines", "lines"]


def test_session_failing_listener_does_not_undo_batch(open_session: Any) -> None:
    session, notified = open_session(), list[int]()

    def failing_listener(entry: JournalEntry, changes: Changes) -> None:
        notified.append(changes.sequence)
        raise ZeroDivisionError

    session.add_listener(failing_listener)
    for sequence in (1, 2):
        with pytest.raises(ZeroDivisionError):
            session.apply([("a", sequence)])
    assert (notified, session.model.sequence, len(session.model)) == ([1, 2], 2, 3)


def test_session_failed_open_releases_lock(open_session: Any, tmp_path: Path) -> None:
    open_session().close()
    (tmp_path / "state" / "journal.sqlite").write_bytes(b"nonsense" * 1000)
    for _ in range(2):
        with pytest.raises(RipplevecError, match="damaged"):
            open_session()
    shutil.rmtree(tmp_path / "state")
    open_session()


def test_session_flipped_wal_bytes_never_go_unnoticed(open_session: Any, tmp_path: Path) -> None:
    """Any flipped byte leads to the same state, to an earlier one with a note, or to an error."""
    session, digests = open_session(), {}
    for number, batch in enumerate(make_stream(12), 1):
        session.apply(batch)
        digests[number] = session.model.digest()
    simulate_crash(session)
    log = (tmp_path / "state" / "journal.sqlite-wal").read_bytes()
    outcomes = set()
    for number, at in enumerate([0, 5, 17, 33, 40, 50, *range(100, len(log), len(log) // 40), len(log) - 1]):
        directory = tmp_path / f"copy {number}"
        directory.mkdir()
        shutil.copy(tmp_path / "state" / "journal.sqlite", directory)
        (directory / "journal.sqlite-wal").write_bytes(log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :])
        try:
            with Session(directory) as opened:
                sequence, notes = opened.model.sequence, opened.recovery.notes
                assert opened.model.digest() == digests[sequence]
                assert sequence == 12 or notes
                outcomes.add("same" if sequence == 12 else "noted")
        except RipplevecError:
            outcomes.add("rejected")
    assert {"noted", "rejected"} <= outcomes


# ---------------------------------------------------------------------- streams


class ListSource:
    """Source of a list of batches and bad messages (text), read one by one, which may end."""

    name = "lines"

    def __init__(self, batches: list[Any], ends: bool = True) -> None:
        self.batches, self.ends = batches, ends
        self.at = 0
        self.acknowledged: list[int] = []

    def open(self, position: int | None) -> None:
        self.at = position or 0

    def read(self, timeout: float) -> ReadResult | None:
        if self.at == len(self.batches):
            if self.ends:
                raise EOFError
            return None
        batch = self.batches[self.at]
        self.at += 1
        if isinstance(batch, str):
            return ReadResult(Batch.of([], []), self.at, [BadMessage(batch, f"line {self.at}", "no edge")])
        return ReadResult(batch, self.at)

    def acknowledge(self, position: int) -> None:
        self.acknowledged.append(position)

    def close(self) -> None:
        raise AssertionError("a session must not close its source")


class ListSink:
    """Sink that records sequence numbers and may fail."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.flushed = 0
        self.broken = False

    def write(self, changes: Changes) -> None:
        if self.broken:
            raise ConnectionError("sink is down")
        self.received.append(changes.sequence)

    def flush(self) -> None:
        self.flushed = len(self.received)

    def close(self) -> None:
        raise AssertionError("a session must not close its sinks")


class DeadLetters:
    def __init__(self) -> None:
        self.messages: list[tuple[str, BadMessage]] = []

    def record(self, source: str, bad_message: BadMessage) -> None:
        self.messages.append((source, bad_message))


def test_run_finite_source_is_read_to_its_end(open_session: Any, tmp_path: Path) -> None:
    stream, sink = make_stream(40), ListSink()
    source, session = ListSource(stream), open_session()
    assert session.run(source, [sink]) == 40
    assert sink.received == list(range(1, 41))
    assert sink.flushed == 40
    assert source.acknowledged[-1] == 40
    assert session.position("lines") == 40
    assert session.run(ListSource(stream)) == 0
    assert session.model.digest() == uninterrupted_digest(tmp_path, stream)


def test_run_until_stops_between_reads(open_session: Any) -> None:
    session, source = open_session(), ListSource(make_stream(40), ends=False)
    assert 0 < session.run(source, until=lambda: session.model.sequence > 0) < 40
    assert session.run(source, until=lambda: session.model.sequence >= 40) == 40 - source.acknowledged[0]


def test_run_bad_messages_go_to_dead_letters(open_session: Any, tmp_path: Path) -> None:
    bad = Batch.of(["p", "x", "p", "p"], ["q", "y", "q", "q"], op=[Op.ADD, Op.REMOVE, Op.REMOVE, Op.REMOVE])
    stream = [*make_stream(5), "garbage", bad, Batch.of(["z"], ["z"], op=[Op.REMOVE_VERTEX]), *make_stream(6)[5:]]
    letters, session = DeadLetters(), open_session()
    assert session.run(ListSource(stream), dead_letters=letters) == 9
    assert [(source, bad_message.where) for source, bad_message in letters.messages] == [
        ("lines", "line 6"),
        ("lines", "row 1 of the read that ends at 7"),
        ("lines", "row 3 of the read that ends at 7"),
        ("lines", "row 0 of the read that ends at 8"),
    ]
    assert "unknown vertex 'x'" in letters.messages[1][1].reason
    assert "no edge between 'p' and 'q'" in letters.messages[2][1].reason
    assert session.position("lines") == 9
    assert {"p", "q"} <= set(session.model.ids)
    good = [*stream[:5], Batch.of([], []), Batch.of(["p", "p"], ["q", "q"], op=[0, 1]), Batch.of([], []), stream[-1]]
    assert session.model.digest() == uninterrupted_digest(tmp_path, good)


def test_run_without_dead_letters_stops_at_bad_message(open_session: Any) -> None:
    session, source = open_session(), ListSource([*make_stream(3), "garbage", *make_stream(4)[3:]])
    for _ in range(2):
        with pytest.raises(StateError, match=r"lines: bad message at line 4: no edge\. Pass `dead_letters`"):
            session.run(source)
    assert (session.model.sequence, session.position("lines")) == (3, 3)
    assert source.acknowledged[-1] == 3


def test_run_failed_sink_receives_changes_again(open_session: Any) -> None:
    stream, sink = make_stream(40), ListSink()
    session, source = open_session(), ListSource(stream)
    sink.broken = True
    with pytest.raises(ConnectionError):
        session.run(source, [sink])
    assert source.acknowledged == []
    sink.broken = False
    assert session.run(source, [sink]) == 40 - session.recovery.replayed - 16
    assert sink.received == list(range(1, 41))


def test_run_after_crash_publishes_missing_changes(open_session: Any) -> None:
    stream, sink = make_stream(40), ListSink()
    session = open_session(snapshot_every=50)
    session.run(ListSource(stream[:20]), [sink])
    sink.broken = True
    with pytest.raises(ConnectionError):
        session.run(ListSource(stream), [sink])
    session.snapshot()
    simulate_crash(session)
    sink.broken = False
    session = open_session()
    vectors = session.recovery.unpublished["lines"][0].vectors
    source = ListSource(stream)
    session.run(source, [sink])
    assert vectors.shape[1] == 3
    assert sink.received[:20] == list(range(1, 21))
    assert sorted(set(sink.received)) == list(range(1, 41))
    assert source.acknowledged[0] == 36  # batches on disk are acknowledged only after their changes were published
    session.close()
    assert open_session().recovery.unpublished == {}


def test_run_after_crash_publishes_changes_of_first_batches(open_session: Any) -> None:
    stream, sink = make_stream(40), ListSink()
    session, sink.broken = open_session(), True
    with pytest.raises(ConnectionError):
        session.run(ListSource(stream), [sink])
    simulate_crash(session)
    sink.broken = False
    open_session().run(ListSource(stream), [sink])
    assert sink.received == list(range(1, 41))


def test_run_without_sinks_leaves_no_unpublished_changes(open_session: Any) -> None:
    stream, sink = make_stream(30), ListSink()
    session = open_session()
    session.run(ListSource(stream[:10]), [sink])
    session.run(ListSource(stream[:20]))
    simulate_crash(session)
    assert open_session().recovery.unpublished == {}


def test_session_custom_model_class_is_used_but_not_saved(open_session: Any) -> None:
    class CustomModel(SessionModel):
        pass

    session = open_session(model=CustomModel)
    assert type(session.model) is CustomModel
    session.apply([("a", "b"), ("b", "c")])
    digest = session.model.digest()
    simulate_crash(session)
    again = open_session()  # the class is not saved, and the state does not depend on it
    assert type(again.model) is SessionModel
    assert again.model.digest() == digest


def test_session_example_in_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "durability.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(compile(page.split("```python\n")[1].split("```")[0], "durability.md", "exec"), names := {})
    assert names["changes"].ids == ["alice", "bob", "carol"]
    with Session("state") as session:
        assert (session.model.sequence, session.find_key("order-17")) == (1, 1)


def test_session_close_after_interrupted_close_waits_for_snapshot(tmp_path: Path, monkeypatch: Any) -> None:
    started, proceed = threading.Event(), threading.Event()
    write = SnapshotStore.write

    def slow_write(self: SnapshotStore, state: Any) -> None:
        started.set()
        assert proceed.wait(20)
        write(self, state)

    def interrupt(self: SnapshotWriter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SnapshotStore, "write", slow_write)
    session = Session(tmp_path, dim=3, snapshot_every=1)
    session.apply([("a", "b")])
    assert started.wait(20)
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotWriter, "close", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.close()
    with pytest.raises(StateError, match="in use"):  # the snapshot is still being written
        Session(tmp_path)
    proceed.set()
    for _ in range(2):
        session.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ripplevec-snapshot")]
    with Session(tmp_path) as again:
        assert again.recovery.snapshot == 1
