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
from ripplevec.durability.snapshot import SnapshotStore, SnapshotWriter
from ripplevec.errors import SelfLoopWarning, StateError
from ripplevec.io.protocols import Poison, Read

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.2, "anchor_lag": 0.1, "threads": 1}
NAMES: list[Any] = [0, 1, 2, 3, "0", "a", "é", 10**30, -(2**70), -5]


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Callable[..., Session]]:
    """Sessions in one directory; whatever is left open is closed."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(Session(tmp_path / "state", **{**PARAMETERS, **options}))


def abandon(session: Session) -> None:
    """As a crash does: the lock goes, and nothing is written any more."""
    session._writer.close()
    session._lock.release()
    session._closed = session._let_go = True


def a_stream(batches: int = 20, size: int = 12, seed: int = 0) -> list[Batch]:
    """Edges of a growing graph; the last of each batch is removed by the next."""
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


def uninterrupted(tmp_path: Path, stream: list[Batch], **options: Any) -> str:
    """The digest of a session that took in a stream batch by batch."""
    with Session(tmp_path / "uninterrupted", **{**PARAMETERS, **options}) as session:
        for batch in stream:
            session.apply(batch)
        return session.model.digest()


# ---------------------------------------------------------------------- what goes in


def test_a_batch_is_there_again(new: Any) -> None:
    with new() as session:
        changes = session.apply([("a", "b", 2.0), (1, "1")])
        assert (changes.sequence, changes.ids) == (1, ["a", "b", 1, "1"])
        digest = session.model.digest()
    with new() as session:
        assert session.model.digest() == digest
        assert session.recovery.replayed == 1


def test_a_refused_batch_leaves_nothing(new: Any) -> None:
    with new() as session:
        session.apply([("a", "b")])
        digest = session.model.digest()
        with pytest.raises(UnknownEdgeError):
            session.apply(Batch.of(["c", "a"], ["d", "c"], op=[Op.ADD, Op.REMOVE]), key="k", source="s", position=1)
        with pytest.raises(InvalidValueError, match="weight"):
            session.apply([("a", "b", -1.0)])
        assert session.model.digest() == digest
        assert session.find_key("k") is None
        assert session.position("s") is None
    with new() as session:
        assert session.model.digest() == digest


def test_a_key_is_applied_once(new: Any) -> None:
    with new() as session:
        first = session.apply([("a", "b")], key="k")
        session.apply([("b", "c")])
        digest = session.model.digest()
        again = session.apply([("a", "b")], key="k")
        assert (first.sequence, again.sequence, len(again), again.vectors.shape) == (1, 1, 0, (0, 3))
        assert (again.removed, again.anchored, again.arrived.tolist()) == ([], False, [])
        assert session.model.digest() == digest
    with new() as session:
        assert session.apply([("a", "b")], key="k").sequence == 1
        assert session.find_key("k") == 1
        assert session.model.sequence == 2


def test_a_group_is_one_flush_and_a_batch_each(new: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, flushes = a_stream(), []
    append = Journal.append
    monkeypatch.setattr(Journal, "append", lambda *given: (flushes.append(1), append(*given))[1])
    session = new()
    answers = session.apply_many(stream)
    assert len(flushes) == 1
    assert [answer.sequence for answer in answers] == list(range(1, 21))
    assert session.model.digest() == uninterrupted(tmp_path, stream)


def test_in_a_group_each_is_judged_after_those_before_it(new: Any) -> None:
    def gone(name: str) -> Batch:
        return Batch.of([name], ["b"], op=[Op.REMOVE])

    session = new()
    answers = session.apply_many(
        [
            JournalEntry([("a", "b")], "one"),
            gone("a"),
            gone("a"),
            JournalEntry([("a", "b")], "one"),
            JournalEntry(Batch.of(["c", "x"], ["b", "b"], op=[Op.ADD, Op.REMOVE]), "bad"),
            gone("c"),
            JournalEntry([("c", "b")], "two"),
            gone("c"),
            JournalEntry("nonsense"),
        ]
    )
    found = [answer.sequence if isinstance(answer, Changes) else type(answer).__name__ for answer in answers]
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
def test_what_cannot_be_kept_beside_a_batch_is_refused(new: Any, given: dict[str, Any]) -> None:
    session = new()
    with pytest.raises(InvalidValueError):
        session.apply([("a", "b")], **given)
    assert session.model.sequence == 0


def test_the_model_is_for_reading(new: Any) -> None:
    session = new()
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


# ---------------------------------------------------------------------- what survives


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Batches of additions, weights, removals and returns, with names of all kinds; some will be refused."""
    name = st.sampled_from(NAMES)
    row = st.tuples(name, name, st.sampled_from([0.5, 1.0, 4.0]), st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2, 3]))
    batches = draw(st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=14))
    return [Batch.of(*map(list, zip(*rows, strict=True))) for rows in batches]


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@settings(max_examples=40)
@given(stream=streams(), seed=st.integers(0, 10**6), lag=st.sampled_from([0, 1e-9, 0.1]))
def test_interrupted_anywhere_the_digest_is_that_of_one_go(
    tmp_path_factory: pytest.TempPathFactory, stream: list[Batch], seed: int, lag: float
) -> None:
    """Groups of any size, snapshots at any time, the process gone at any time: the same as one batch after another."""
    choices = random.Random(seed)
    place = tmp_path_factory.mktemp("state") / "state"
    plain = Session(place.with_name("plain"), **{**PARAMETERS, "anchor_lag": lag})
    refused, waiting = set(), list(enumerate(stream))
    for number, batch in waiting:
        try:
            plain.apply(batch)
        except RipplevecError:
            refused.add(number)
    while waiting:
        session = Session(place, snapshot_every=choices.choice([3, 1000]), **{**PARAMETERS, "anchor_lag": lag})
        for _ in range(choices.randrange(4)):
            size = choices.randrange(1, 5)
            answers = session.apply_many([JournalEntry(batch, key=str(number)) for number, batch in waiting[:size]])
            for (number, _), answer in zip(waiting, answers, strict=False):
                assert isinstance(answer, RipplevecError) == (number in refused)
            if choices.random() < 0.3:
                session.snapshot()
            sent, waiting = waiting[:size], waiting[size:]
            if choices.random() < 0.5:  # a client that was not told sends again what was applied
                waiting = [(number, batch) for number, batch in sent if number not in refused] + waiting
        abandon(session)
    with Session(place) as session:
        assert session.model.digest() == plain.model.digest()
        assert session.model.sequence == len(stream) - len(refused)
        session.model.check()
    plain.close()


@pytest.mark.parametrize("rule", ["ripple", "paper"])
def test_a_session_without_lag_is_the_plain_model(tmp_path: Path, rule: str) -> None:
    stream = a_stream()
    parameters = {"dim": 3, "start_size": 6, "rule": rule, "threads": 1}
    model = Embedder(**parameters)
    with Session(tmp_path / "state", anchor_lag=0, snapshot_every=30, **parameters) as session:
        for batch in stream:
            assert session.apply(batch).ids == model.partial_fit(batch).ids
        assert session.model.digest() == model.digest()


def test_snapshots_come_by_themselves_and_the_journal_shrinks(new: Any) -> None:
    session = new(snapshot_every=40)
    for batch in a_stream(40):
        session.apply(batch)
    session.snapshot()
    session.apply([("x", "y")])
    sequences = session._writer.snapshots.sequences
    assert len(sequences) == 2
    assert session._journal.first > 1
    session.compact()
    assert session._journal.first == sequences[1] + 1
    assert session.snapshot_failure is None


def test_parameters_are_those_of_the_directory(new: Any, tmp_path: Path) -> None:
    new(seed=5).close()
    with Session(tmp_path / "state") as session:
        assert (session.model.seed, session.model.dim, session.model.engine.anchor_lag) == (5, 3, 0.1)
    with Session(tmp_path / "state", dim=3, threads=2, search="exact", storage_dir=tmp_path) as session:
        assert session.model.threads == 2
        assert session.model.search == "exact"
        assert session.model.storage_dir == tmp_path
    for other in ({"dim": 4}, {"seed": 0}, {"anchor_lag": 4}, {"anchor_lag": -1}):
        with pytest.raises(InvalidValueError, match=f"{next(iter(other))}: expected .*begin another directory"):
            Session(tmp_path / "state", **other)
    with pytest.raises(InvalidValueError, match="one of dim"):
        Session(tmp_path / "state", color="blue")
    for bad in ({"snapshot_every": 0}, {"anchor_lag": -1}, {"anchor_lag": True}, {"dim": 0}, {"color": 1}):
        with pytest.raises(InvalidValueError, match=next(iter(bad)) if "color" not in bad else "parameter"):
            Session(tmp_path / "other", **bad)
    Session(tmp_path / "other").close()


def test_one_session_at_a_time(new: Any) -> None:
    first = new()
    with pytest.raises(StateError, match=f"in use by process {os.getpid()}"):
        new()
    first.close()
    first.close()
    with pytest.raises(StateError, match="closed"):
        first.apply([("a", "b")])
    new()


def test_a_failure_to_write_changes_nothing(new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new()
    session.apply([("a", "b")])
    digest = session.model.digest()
    session._journal._db.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StateError, match="free some space"):
        session.apply(Batch.of(list(range(50_000)), list(range(50_000))), key="k")
    assert (session.model.digest(), session.find_key("k")) == (digest, None)
    session._journal._db.execute("PRAGMA max_page_count = 100000")
    assert session.apply([("b", "c")]).sequence == 2


def test_a_failure_between_disk_and_memory_ends_the_session(new: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = new()
    session.apply([("a", "b")])
    with monkeypatch.context() as patch:
        patch.setattr(type(session.model.engine.graph), "apply", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.apply([("b", "c")], key="k")
    with pytest.raises(StateError, match="open the directory again"):
        session.apply([("c", "d")])
    session.close()
    session = new()
    assert (session.model.ids, session.find_key("k")) == (["a", "b", "c"], 2)


def test_a_warning_made_an_error_comes_when_all_is_done(new: Any) -> None:
    session, heard = new(), list[int]()
    session.add_listener(lambda _, changes: heard.append(changes.sequence))
    with pytest.raises(SelfLoopWarning):
        session.apply_many([Batch.of(["a"], ["a"]), Batch.of(["a"], ["b"])])
    assert session.model.ids == ["a", "b"]
    assert session.apply([("b", "c")]).sequence == 3
    assert heard == [1, 2, 3]


def test_session_that_is_opened_again_does_not_warn_of_what_was_warned_of(new: Any) -> None:
    session = new()
    with pytest.raises(SelfLoopWarning):
        session.apply(Batch.of(["a", "a"], ["a", "b"]))
    session.close()
    assert new().apply([("b", "c")]).sequence == 2


def test_many_threads_may_write_and_read(new: Any) -> None:
    session, sequences = new(snapshot_every=50), []

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
    assert new().model.digest() == digest


def test_listeners_hear_of_every_batch_in_order_whoever_applies_it(new: Any) -> None:
    session, heard = new(), list[tuple[int, Any, int]]()
    session.apply([("a", "b")])
    session.add_listener(lambda entry, changes: heard.append((changes.sequence, entry.source, len(entry.batch))))
    session.apply([("b", "c"), ("c", "d")], key="k")
    session.apply([("b", "c"), ("c", "d")], key="k")  # known: nothing is applied
    with pytest.raises(UnknownEdgeError):
        session.apply(Batch.of(["a"], ["d"], op=[Op.REMOVE]))

    def write(name: str) -> None:
        for number in range(20):
            session.apply_many([[(name, number)], [(number, f"{name}{number}")]])

    threads = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    session.run(Lines([Batch.of(["a"], ["s"]), Batch.of(["s"], ["t"])]))
    for thread in threads:
        thread.join()
    assert [sequence for sequence, _, _ in heard] == list(range(2, session.model.sequence + 1))
    assert heard[0] == (2, None, 2)
    assert [source for _, source, _ in heard if source is not None] == ["lines", "lines"]


def test_a_listener_that_fails_does_not_undo_the_batch(new: Any) -> None:
    session, heard = new(), list[int]()

    def failing(entry: JournalEntry, changes: Changes) -> None:
        heard.append(changes.sequence)
        raise ZeroDivisionError

    session.add_listener(failing)
    for sequence in (1, 2):
        with pytest.raises(ZeroDivisionError):
            session.apply([("a", sequence)])
    assert (heard, session.model.sequence, len(session.model)) == ([1, 2], 2, 3)


def test_a_session_that_cannot_be_opened_leaves_no_lock(new: Any, tmp_path: Path) -> None:
    new().close()
    (tmp_path / "state" / "journal.sqlite").write_bytes(b"nonsense" * 1000)
    for _ in range(2):
        with pytest.raises(RipplevecError, match="damaged"):
            new()
    shutil.rmtree(tmp_path / "state")
    new()


def test_flipped_bytes_of_the_log_never_pass(new: Any, tmp_path: Path) -> None:
    """Wherever a byte of SQLite's log is flipped: the same state, or less with a note, or a refusal."""
    session, digests = new(), {}
    for number, batch in enumerate(a_stream(12), 1):
        session.apply(batch)
        digests[number] = session.model.digest()
    abandon(session)
    log = (tmp_path / "state" / "journal.sqlite-wal").read_bytes()
    outcomes = set()
    for number, at in enumerate([0, 5, 17, 33, 40, 50, *range(100, len(log), len(log) // 40), len(log) - 1]):
        place = tmp_path / f"copy {number}"
        place.mkdir()
        shutil.copy(tmp_path / "state" / "journal.sqlite", place)
        (place / "journal.sqlite-wal").write_bytes(log[:at] + bytes([log[at] ^ 0xFF]) + log[at + 1 :])
        try:
            with Session(place) as opened:
                sequence, notes = opened.model.sequence, opened.recovery.notes
                assert opened.model.digest() == digests[sequence]
                assert sequence == 12 or notes
                outcomes.add("same" if sequence == 12 else "told")
        except RipplevecError:
            outcomes.add("refused")
    assert {"told", "refused"} <= outcomes


# ---------------------------------------------------------------------- the loop


class Lines:
    """A source of batches, read one by one, which may hold poison and may end."""

    name = "lines"

    def __init__(self, batches: list[Any], ends: bool = True) -> None:
        self.batches, self.ends = batches, ends
        self.at = 0
        self.acknowledged: list[int] = []

    def open(self, position: int | None) -> None:
        self.at = position or 0

    def read(self, timeout: float) -> Read | None:
        if self.at == len(self.batches):
            if self.ends:
                raise EOFError
            return None
        batch = self.batches[self.at]
        self.at += 1
        if isinstance(batch, str):
            return Read(Batch.of([], []), self.at, [Poison(batch, f"line {self.at}", "no edge")])
        return Read(batch, self.at)

    def acknowledge(self, position: int) -> None:
        self.acknowledged.append(position)

    def close(self) -> None:
        raise AssertionError("whoever opened a source closes it")


class Kept:
    """A sink that keeps what it got, and may fail."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.flushed = 0
        self.broken = False

    def write(self, changes: Changes) -> None:
        if self.broken:
            raise ConnectionError("gone")
        self.got.append(changes.sequence)

    def flush(self) -> None:
        self.flushed = len(self.got)

    def close(self) -> None:
        raise AssertionError("whoever opened a sink closes it")


class Letters:
    def __init__(self) -> None:
        self.kept: list[tuple[str, Poison]] = []

    def refuse(self, source: str, poison: Poison) -> None:
        self.kept.append((source, poison))


def test_a_source_is_taken_in_to_its_end(new: Any, tmp_path: Path) -> None:
    stream, sink = a_stream(40), Kept()
    source, session = Lines(stream), new()
    assert session.run(source, [sink]) == 40
    assert sink.got == list(range(1, 41))
    assert sink.flushed == 40
    assert source.acknowledged[-1] == 40
    assert session.position("lines") == 40
    assert session.run(Lines(stream)) == 0
    assert session.model.digest() == uninterrupted(tmp_path, stream)


def test_a_source_is_taken_in_until_told(new: Any) -> None:
    session, source = new(), Lines(a_stream(40), ends=False)
    assert 0 < session.run(source, until=lambda: session.model.sequence > 0) < 40
    assert session.run(source, until=lambda: session.model.sequence >= 40) == 40 - source.acknowledged[0]


def test_what_cannot_be_used_goes_to_the_dead_letters(new: Any, tmp_path: Path) -> None:
    bad = Batch.of(["p", "x", "p", "p"], ["q", "y", "q", "q"], op=[Op.ADD, Op.REMOVE, Op.REMOVE, Op.REMOVE])
    stream = [*a_stream(5), "garbage", bad, Batch.of(["z"], ["z"], op=[Op.REMOVE_VERTEX]), *a_stream(6)[5:]]
    letters, session = Letters(), new()
    assert session.run(Lines(stream), dead_letters=letters) == 9
    assert [(source, poison.where) for source, poison in letters.kept] == [
        ("lines", "line 6"),
        ("lines", "row 1 of the read up to 7"),
        ("lines", "row 3 of the read up to 7"),
        ("lines", "row 0 of the read up to 8"),
    ]
    assert "unknown vertex 'x'" in letters.kept[1][1].reason
    assert "no edge between 'p' and 'q'" in letters.kept[2][1].reason
    assert session.position("lines") == 9
    assert {"p", "q"} <= set(session.model.ids)
    good = [*stream[:5], Batch.of([], []), Batch.of(["p", "p"], ["q", "q"], op=[0, 1]), Batch.of([], []), stream[-1]]
    assert session.model.digest() == uninterrupted(tmp_path, good)


def test_without_dead_letters_poison_ends_the_loop_behind_what_is_good(new: Any) -> None:
    session, source = new(), Lines([*a_stream(3), "garbage", *a_stream(4)[3:]])
    for _ in range(2):
        with pytest.raises(StateError, match="lines: line 4: no edge; give `dead_letters`"):
            session.run(source)
    assert (session.model.sequence, session.position("lines")) == (3, 3)
    assert source.acknowledged[-1] == 3


def test_a_sink_that_fails_gets_it_again(new: Any) -> None:
    stream, sink = a_stream(40), Kept()
    session, source = new(), Lines(stream)
    sink.broken = True
    with pytest.raises(ConnectionError):
        session.run(source, [sink])
    assert source.acknowledged == []
    sink.broken = False
    assert session.run(source, [sink]) == 40 - session.recovery.replayed - 16
    assert sink.got == list(range(1, 41))


def test_changes_that_a_crash_kept_from_the_sinks_are_made_again(new: Any) -> None:
    stream, sink = a_stream(40), Kept()
    session = new(snapshot_every=50)
    session.run(Lines(stream[:20]), [sink])
    sink.broken = True
    with pytest.raises(ConnectionError):
        session.run(Lines(stream), [sink])
    session.snapshot()
    abandon(session)
    sink.broken = False
    session = new()
    vectors = session.recovery.unpublished["lines"][0].vectors
    source = Lines(stream)
    session.run(source, [sink])
    assert vectors.shape[1] == 3
    assert sink.got[:20] == list(range(1, 21))
    assert sorted(set(sink.got)) == list(range(1, 41))
    assert source.acknowledged[0] == 36  # what was on disk is forgotten by the source only now
    session.close()
    assert new().recovery.unpublished == {}


def test_changes_of_the_very_first_batches_are_made_again_too(new: Any) -> None:
    stream, sink = a_stream(40), Kept()
    session, sink.broken = new(), True
    with pytest.raises(ConnectionError):
        session.run(Lines(stream), [sink])
    abandon(session)
    sink.broken = False
    new().run(Lines(stream), [sink])
    assert sink.got == list(range(1, 41))


def test_without_sinks_nothing_waits_for_them(new: Any) -> None:
    stream, sink = a_stream(30), Kept()
    session = new()
    session.run(Lines(stream[:10]), [sink])
    session.run(Lines(stream[:20]))
    abandon(session)
    assert new().recovery.unpublished == {}


def test_another_class_may_make_the_model(new: Any) -> None:
    class Other(SessionModel):
        pass

    session = new(model=Other)
    assert type(session.model) is Other
    session.apply([("a", "b"), ("b", "c")])
    digest = session.model.digest()
    abandon(session)
    again = new()  # the class is not kept: the state is the same for all
    assert type(again.model) is SessionModel
    assert again.model.digest() == digest


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parent.parent / "docs" / "durability.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(compile(page.split("```python\n")[1].split("```")[0], "durability.md", "exec"), names := {})
    assert names["changes"].ids == ["alice", "bob", "carol"]
    with Session("state") as session:
        assert (session.model.sequence, session.find_key("order-17")) == (1, 1)


def test_close_after_an_interrupted_close_waits_for_the_snapshot(tmp_path: Path, monkeypatch: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()
    write = SnapshotStore.write

    def slow(self: SnapshotStore, copy: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        write(self, copy)

    def interrupt(self: SnapshotWriter) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SnapshotStore, "write", slow)
    session = Session(tmp_path, dim=3, snapshot_every=1)
    session.apply([("a", "b")])
    assert begun.wait(20)
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotWriter, "close", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.close()
    with pytest.raises(StateError, match="in use"):  # the snapshot is still being written
        Session(tmp_path)
    go_on.set()
    for _ in range(2):
        session.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ripplevec-snapshot")]
    with Session(tmp_path) as again:
        assert again.recovery.snapshot == 1
