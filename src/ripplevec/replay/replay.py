"""Replays: the events of a file or of the built-in stream, with the schedule on which they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ripplevec.batch import Batch, Id
from ripplevec.io.readers.edge_files import open_edges
from ripplevec.io.rebatch import concatenate, slice_batch, split_batch
from ripplevec.replay.pacing import Report, ScheduledBatch, play, schedule_at_rate, schedule_at_speed, sort_by_time

LABELS = ("alder", "birch", "cedar", "elm", "hazel", "juniper", "larch", "maple", "oak", "willow")
EDGES_PER_VERTEX, NOISE = 5, 0.2
"""Edges of each new vertex, and the probability that an edge goes to the community of a random vertex instead."""


def generate_stream(vertices: int, seed: int = 0) -> tuple[Batch, dict[Id, str]]:
    """Return the edges in order of time, and the community name of every vertex."""
    from ripplevec.lab.datasets.synthetic import growing_communities  # imported on demand: other replays do not need it

    data = growing_communities(vertices, len(LABELS), EDGES_PER_VERTEX, NOISE, seed)
    older, newer = data.edges.T
    names = [f"{LABELS[label]}-{number}" for number, label in enumerate(data.labels.tolist())]
    ids = np.array(names, np.str_)
    batch = Batch.of(ids[newer].tolist(), ids[older].tolist(), time=newer.astype(np.float64))
    return batch, {name: LABELS[label] for name, label in zip(names, data.labels.tolist(), strict=True)}


@dataclass(slots=True)
class Replay:
    """Events to replay: some are sent immediately, the rest on a schedule. `total` is None if it is unknown."""

    batches: Iterable[Batch]
    total: int | None
    labels: Mapping[Id, str] = field(default_factory=dict)
    immediate: Iterable[Batch] = ()
    schedule: Iterable[ScheduledBatch] = ()
    sent_immediately: int = 0
    close: Callable[[], None] = lambda: None  # closes the file, also before its end

    def with_schedule(
        self, rate: float | None, speed: float | None, max_batch: int, immediate: int, limit: int | None
    ) -> Replay:
        """Return this replay with a schedule: `rate` events per second, or `speed` times the original pace.

        The first `immediate` events are sent before the clock starts, and at most `limit` events in total.
        """
        batches = iter(self.batches if limit is None else _first_events(self.batches, limit))
        head, rest = _split(batches, immediate)
        if rate is not None:
            schedule = schedule_at_rate(rest, rate, max_batch)
        else:
            schedule = schedule_at_speed(concatenate([*rest]), speed or 1.0, max_batch)
        total = self.total if limit is None else min(self.total or limit, limit)
        return replace(self, total=total, schedule=schedule, immediate=split_batch(head, max_batch))

    def play(self, send: Callable[[Batch], None], on_sent: Callable[[Report], None] = lambda report: None) -> Report:
        """Send all events; the report covers the scheduled ones."""
        try:
            for batch in self.immediate:
                send(batch)
                self.sent_immediately += len(batch)
                on_sent(Report())
        except KeyboardInterrupt:
            return Report(interrupted=True)
        return play(self.schedule, send, on_sent)


def replay_file(path: str, options: Mapping[str, Any], batch_size: int, *, sort: bool) -> Replay:
    """Return a replay of an edge file. With `sort` the file is read completely and sorted by time."""
    reader = open_edges(path, batch_size=batch_size, **options)
    if not sort:
        return Replay(reader, None, close=reader.close)
    with closing(reader):
        edges = sort_by_time(concatenate([*reader]))
    return Replay([edges], len(edges))


def replay_builtin(vertices: int, seed: int) -> Replay:
    """Return a replay of the built-in stream."""
    edges, labels = generate_stream(vertices, seed)
    return Replay([edges], len(edges), labels)


def _first_events(batches: Iterable[Batch], limit: int) -> Iterator[Batch]:
    for batch in batches:
        yield slice_batch(batch, 0, min(len(batch), limit))
        limit -= len(batch)
        if limit <= 0:
            return


def _split(batches: Iterator[Batch], size: int) -> tuple[Batch, Iterator[Batch]]:
    """Return the first `size` events as one batch, and an iterator over the rest."""
    read: list[Batch] = []
    while size > sum(map(len, read)) and (batch := next(batches, None)) is not None:
        read.append(batch)
    head = concatenate(read)
    end = min(size, len(head))
    return slice_batch(head, 0, end), _prepend(slice_batch(head, end, len(head)), batches)


def _prepend(batch: Batch, batches: Iterator[Batch]) -> Iterator[Batch]:
    if len(batch):
        yield batch
    yield from batches
