"""The protocol of the Temporal Graph Benchmark for link prediction.

Parts are 70 %, 15 % and 15 % of the stream by time. Each event of the validation and the test part is ranked among
negative events with the same source; equal scores share their mean rank. Weights are learned in the training part only,
but the state follows the whole stream: before each batch, or before each event, it includes all events before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from time import process_time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.temporal.streams import Ids, TimedStream

BATCH_SIZE = 200
"""Events per batch, as in the examples of the benchmark."""

HISTORICAL_SHARE = 0.5
"""Largest share of the negatives that were targets of the same source in the training part."""

Scores = NDArray[np.float64]


class LinkPredictor(Protocol):
    """A method that scores candidate targets and follows a stream."""

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Score the candidates of each event (one line per event), then record the events.

        With `one_by_one`, an event is scored after the events before it have been recorded. Without candidates, the
        result is not used.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The result of a method on one part of a stream."""

    reciprocal_ranks: NDArray[np.float64]
    hits: NDArray[np.bool_]  # whether the event is among the first ten
    updated: int  # events before the part, whose candidates are not scored
    update_seconds: float  # processor time of these events
    scored_seconds: float  # processor time of the events of the part, including the scores of all candidates

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank."""
        return float(self.reciprocal_ranks.mean())

    @property
    def hits_at_10(self) -> float:
        """Share of the events among the first ten."""
        return float(self.hits.mean())


def make_negatives(stream: TimedStream, part: str, count: int, seed: int = 42) -> list[Ids]:
    """Return the negative targets of each event of a part, by the published procedure of the benchmark.

    Up to half of them are targets of the same source in the training part, the others are random. Targets of the same
    source at the same time are left out. If there are not enough targets, all of them are taken.
    """
    published = stream.published_negatives.get(part)
    validation, test = stream.bounds()
    events = slice(validation, test) if part == "val" else slice(test, None)
    src, dst, time = (column[events].tolist() for column in (stream.src, stream.dst, stream.time))
    if published is not None:
        return [np.asarray(published[key], np.int64) for key in zip(src, dst, time, strict=True)]
    rng, targets = np.random.RandomState(seed), stream.targets  # the benchmark's generator
    history: dict[int, set[int]] = {}
    for source, target in zip(stream.src[:validation].tolist(), stream.dst[:validation].tolist(), strict=True):
        history.setdefault(source, set()).add(target)
    simultaneous: dict[tuple[int, int], list[int]] = {}
    for source, target, moment in zip(src, dst, time, strict=True):
        simultaneous.setdefault((source, moment), []).append(target)
    negatives = []
    for source, moment in zip(src, time, strict=True):
        true, seen = simultaneous[source, moment], np.array(sorted(history.get(source, ())), np.int64)
        old = _draw(rng, np.setdiff1d(seen, true), int(count * HISTORICAL_SHARE))
        others = np.setdiff1d(targets, np.concatenate([true, seen]))
        negatives.append(np.concatenate([old, _draw(rng, others, count - len(old))]))
    return negatives


def _draw(rng: np.random.RandomState, values: Ids, count: int) -> Ids:
    return values if count >= len(values) else rng.choice(values, count, replace=False)


def reciprocal_ranks(positive: Scores, negative: Scores) -> NDArray[np.float64]:
    """Return 1 / rank of each positive score among the negative scores of its line; NaN is no candidate."""
    above = (negative > positive[:, None]).sum(axis=1)
    at_least = (negative >= positive[:, None]).sum(axis=1)
    return 1 / (0.5 * (above + at_least) + 1)


def evaluate(
    predictor: LinkPredictor, stream: TimedStream, part: str, negatives: list[Ids], *, one_by_one: bool = False
) -> Evaluation:
    """Stream the events from the beginning to the end of a part, and rank those of the part among their negatives."""
    validation, test = stream.bounds()
    first, last = (validation, test) if part == "val" else (test, len(stream.src))
    ranks, update_seconds, scored_seconds = [], 0.0, 0.0
    for begin, end in _batches(first, last, validation):
        events = slice(begin, end)
        columns = stream.src[events], stream.dst[events], stream.time[events]
        if begin < first:
            began = process_time()
            predictor.process(*columns, None, learn=begin < validation, one_by_one=one_by_one)
            update_seconds += process_time() - began
            continue
        lines = [np.append(target, negatives[i]) for i, target in enumerate(columns[1], begin - first)]
        candidates = np.full((len(lines), max(map(len, lines))), -1)
        for line, values in zip(candidates, lines, strict=True):
            line[: len(values)] = values
        began = process_time()
        scores = predictor.process(*columns, candidates, learn=False, one_by_one=one_by_one)
        scored_seconds += process_time() - began
        ranks.append(reciprocal_ranks(scores[:, 0], np.where(candidates[:, 1:] < 0, np.nan, scores[:, 1:])))
    found = np.concatenate(ranks)
    return Evaluation(found, 1 / found <= 10, first, update_seconds, scored_seconds)


def _batches(first: int, last: int, validation: int) -> Iterator[tuple[int, int]]:
    """Yield the batches of the stream; no batch reaches across the beginning of a part."""
    marks = sorted({0, validation, first, last})
    for begin, end in pairwise(marks):
        for position in range(begin, end, BATCH_SIZE):
            yield position, min(position + BATCH_SIZE, end)
