"""A replay put together: where the events come from, how they are paced, what goes out before the clock starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from ripplevec.batch import Batch, Id
from ripplevec.io.readers.edge_files import open_edges
from ripplevec.io.rebatch import concatenate, cut, part
from ripplevec.replay.builtin_stream import growing
from ripplevec.replay.pacing import Beat, Report, at_rate, at_speed, in_time, play


@dataclass(slots=True)
class Stream:
    """Events on their way: those that go out at once, then beats. `total` is how many there are, where it is known."""

    batches: Iterable[Batch]
    total: int | None
    labels: Mapping[Id, str] = field(default_factory=dict)
    first: Iterable[Batch] = ()
    beats: Iterable[Beat] = ()
    sent_at_once: int = 0
    close: Callable[[], None] = lambda: None  # let go of the file, also before its end

    def paced(self, rate: float | None, speed: float | None, most: int, at_once: int, limit: int | None) -> Stream:
        """The same events with the moments they are due: at a steady rate, or at a multiple of their own times."""
        batches = iter(self.batches if limit is None else _first_events(self.batches, limit))
        first, rest = _divided(batches, at_once)
        beats = at_rate(rest, rate, most) if rate is not None else at_speed(concatenate([*rest]), speed or 1.0, most)
        total = self.total if limit is None else min(self.total or limit, limit)
        return replace(self, total=total, beats=beats, first=cut(first, most))

    def play(self, send: Callable[[Batch], None], told: Callable[[Report], None] = lambda report: None) -> Report:
        """Send everything; the report is of what the clock was running for."""
        try:
            for batch in self.first:
                send(batch)
                self.sent_at_once += len(batch)
                told(Report())
        except KeyboardInterrupt:
            return Report(interrupted=True)
        return play(self.beats, send, told)


def file_stream(path: str, options: Mapping[str, Any], batch_size: int, *, whole: bool) -> Stream:
    """The edges of a file; read as they are needed, or, where they must be put in order of time, all at once."""
    reader = open_edges(path, batch_size=batch_size, **options)
    if not whole:
        return Stream(reader, None, close=reader.close)
    with closing(reader):
        edges = in_time(concatenate([*reader]))
    return Stream([edges], len(edges))


def built_in_stream(vertices: int, seed: int) -> Stream:
    """The built-in graph."""
    edges, labels = growing(vertices, seed)
    return Stream([edges], len(edges), labels)


def _first_events(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    for batch in batches:
        yield part(batch, 0, min(len(batch), limit))
        limit -= len(batch)
        if limit <= 0:
            return


def _divided(batches: Iterator[Batch], size: int) -> tuple[Batch, Iterator[Batch]]:
    """The first events, and the rest of them."""
    taken: list[Batch] = []
    while size > sum(map(len, taken)) and (batch := next(batches, None)) is not None:
        taken.append(batch)
    head = concatenate(taken)
    return part(head, 0, min(size, len(head))), _and_then(part(head, min(size, len(head)), len(head)), batches)


def _and_then(batch: Batch, batches: Iterator[Batch]) -> Iterator[Batch]:
    if len(batch):
        yield batch
    yield from batches
