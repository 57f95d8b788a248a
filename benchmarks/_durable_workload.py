"""A small stream with all that a session does to files: groups, keys, a source, corrections, snapshots, compaction."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripplevec import Batch, Embedder
from ripplevec.batch import Op
from ripplevec.durability import journal_database
from ripplevec.durability.session import JournalEntry, Session

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.1, "anchor_lag": 3, "threads": 1}
SNAPSHOT_EVERY = 40  # events
SOURCE = "stream"
Tell = Callable[[str, int], None]


def entry(number: int) -> JournalEntry:
    """The batch of a number: two of three have a key, the others come from a source."""
    chooser = random.Random(number)
    names: list[Any] = [*range(12 + number), *(f"v{i}" for i in range(6))]
    src, dst = ([chooser.choice(names) for _ in range(4)] for _ in range(2))
    dst = [other if other != name else "hub" for name, other in zip(src, dst, strict=True)]
    op = [int(Op.ADD)] * 4
    if number % 11 == 10:  # an edge that comes and goes again
        src, dst, op = [*src, src[0]], [*dst, dst[0]], [*op, int(Op.REMOVE)]
    batch = Batch.of(src, dst, op=op)
    if number % 3 == 2:
        return JournalEntry(batch, source=SOURCE, position={"offset": number})
    return JournalEntry(batch, key=f"key {number}")


def reference(batches: int) -> list[str]:
    """The digest after every batch, and before the first, of a session without files."""
    from ripplevec.durability.session_model import build_metadata, create_model

    lag = PARAMETERS["anchor_lag"]
    model = create_model(build_metadata({n: v for n, v in PARAMETERS.items() if n not in ("anchor_lag", "threads")}, lag))
    digests = [model.digest()]
    for number in range(1, batches + 1):
        model.apply_batch(Batch.from_any(entry(number).batch))
        digests.append(model.digest())
    return digests


def run(place: Path, batches: int, tell: Tell) -> None:
    """Send all batches that are not there yet, some in groups; open the directory three times; save a model twice."""
    journal_database._PAGES = 40  # of the log, so that it is moved into the file often
    parts = (batches // 3, 2 * batches // 3, batches)
    for part, last in enumerate(parts):
        with Session(place / "deep" / "state", snapshot_every=SNAPSHOT_EVERY, **PARAMETERS) as session:
            while (number := session.model.sequence + 1) <= last:
                group = [entry(n) for n in range(number, min(number + (1, 1, 3, 5)[number % 4], last + 1))]
                for answer in session.apply_many(group):
                    if isinstance(answer, Exception):
                        raise answer
                tell("acknowledged", number + len(group) - 1)
            if part == 1:
                session.snapshot()
                session.compact()
        save(place / "saved", parts.index(last) + 1, tell)


def save(place: Path, version: int, tell: Tell) -> None:
    """Save a model where another version of it was; a disk that fails says so by itself."""
    try:
        Embedder(dim=2, start_size=100).fit([(0, number) for number in range(1, version + 1)]).save(place)
        tell("saved", version)
    except OSError:
        tell("not saved", version)
