from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplet import Batch, Changes, InvalidValueError, Op, UnknownEdgeError
from ripplet.errors import StateError
from ripplet.session import Entry, Session
from ripplet.state.journal import Journal

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.2, "anchor_lag": 3, "threads": 1}
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
        assert session.known("k") is None
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
        assert session.known("k") == 1
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
            Entry([("a", "b")], "one"),
            gone("a"),
            gone("a"),
            Entry([("a", "b")], "one"),
            Entry(Batch.of(["c", "x"], ["b", "b"], op=[Op.ADD, Op.REMOVE]), "bad"),
            gone("c"),
            Entry([("c", "b")], "two"),
            gone("c"),
            Entry("nonsense"),
        ]
    )
    found = [answer.sequence if isinstance(answer, Changes) else type(answer).__name__ for answer in answers]
    unknown = "UnknownVertexError"
    assert found == [1, 2, "UnknownEdgeError", 1, unknown, unknown, 3, 4, "InvalidValueError"]
    assert session.model.diagnostics()["edges"] == 0
    assert session.known("bad") is None


@pytest.mark.parametrize(
    "given",
    [{"key": ""}, {"key": 3}, {"key": "x" * 300}, {"key": "\ud800"}, {"position": 3}, {"source": ""}]
    + [{"source": "s", "position": float("nan")}, {"source": "s", "position": object()}],
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
