"""Small workload that exercises all file operations of a session: groups, keys, sources, snapshots, compaction."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripplevec import Batch, Embedder
from ripplevec.batch import Op
from ripplevec.durability import journal_database
from ripplevec.durability.session import JournalEntry, Session

PARAMETERS: dict[str, Any] = {"dim": 3, "start_size": 6, "anchor_growth": 0.1, "threads": 1}
SNAPSHOT_EVERY = 40  # events
SOURCE = "stream"
Report = Callable[[str, int], None]
"""Function called with a kind of acknowledgment and its number."""


def make_entry(number: int) -> JournalEntry:
    """Return the batch with a number: two of three have a key, the others come from a source."""
    chooser = random.Random(number)
    vertices: list[Any] = [*range(12 + number), *(f"v{i}" for i in range(6))]
    src, dst = ([chooser.choice(vertices) for _ in range(4)] for _ in range(2))
    dst = [second if second != first else "hub" for first, second in zip(src, dst, strict=True)]
    op = [int(Op.ADD)] * 4
    if number % 11 == 10:  # an edge that is added and removed
        src, dst, op = [*src, src[0]], [*dst, dst[0]], [*op, int(Op.REMOVE)]
    batch = Batch.of(src, dst, op=op)
    if number % 3 == 2:
        return JournalEntry(batch, source=SOURCE, position={"offset": number})
    return JournalEntry(batch, key=f"key {number}")


def reference_digests(batches: int) -> list[str]:
    """Return the digests of a model without files, before the first batch and after each one."""
    from ripplevec.durability.session_model import build_metadata, create_model

    model = create_model(build_metadata(PARAMETERS))
    digests = [model.digest()]
    for number in range(1, batches + 1):
        model.apply_batch(Batch.from_any(make_entry(number).batch))
        digests.append(model.digest())
    return digests


def run(directory: Path, batches: int, report: Report) -> None:
    """Apply all batches that are missing, some in groups, in three sessions; save a model after each."""
    journal_database.CHECKPOINT_PAGES = 40  # small, so that the log is often moved into the main file
    parts = (batches // 3, 2 * batches // 3, batches)
    for part, last in enumerate(parts):
        with Session(directory / "deep" / "state", snapshot_every=SNAPSHOT_EVERY, **PARAMETERS) as session:
            while (number := session.model.sequence + 1) <= last:
                group = [make_entry(n) for n in range(number, min(number + (1, 1, 3, 5)[number % 4], last + 1))]
                for result in session.apply_many(group):
                    if isinstance(result, Exception):
                        raise result
                report("acknowledged", number + len(group) - 1)
            if part == 1:
                session.snapshot()
                session.compact()
        save(directory / "saved", parts.index(last) + 1, report)


def save(path: Path, version: int, report: Report) -> None:
    """Save a model over its earlier version; a failing disk raises `OSError`, which is reported."""
    try:
        Embedder(dim=2, start_size=100).fit([(0, number) for number in range(1, version + 1)]).save(path)
        report("saved", version)
    except OSError:
        report("not saved", version)
