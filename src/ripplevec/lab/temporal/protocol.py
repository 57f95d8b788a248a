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
    source at the same time are left out. If there are not enough targets, all of them are taken. The draws equal those
    of py-tgb with the same seed: its generator draws for the validation part first, and events with the same source,
    target and time share the negatives of the last of them.
    """
    published = stream.published_negatives.get(part)
    if published is not None:
        return [np.asarray(published[key], np.int64) for key in _keys(stream, part)]
    rng = np.random.RandomState(seed)  # the benchmark's generator
    history = _targets_by_source(stream)
    for drawn_part in ("val", "test") if part == "test" else ("val",):
        negatives = _draw_negatives(stream, drawn_part, history, count, rng)
    return [negatives[key] for key in _keys(stream, part)]


def _keys(stream: TimedStream, part: str) -> list[tuple[int, int, int]]:
    """Return source, target and time of each event of a part."""
    validation, test = stream.bounds()
    events = slice(validation, test) if part == "val" else slice(test, None)
    return list(zip(*(column[events].tolist() for column in (stream.src, stream.dst, stream.time)), strict=True))


def _targets_by_source(stream: TimedStream) -> dict[int, Ids]:
    """Return the distinct targets of each source in the training part."""
    targets: dict[int, set[int]] = {}
    training = slice(0, stream.bounds()[0])
    for source, target in zip(stream.src[training].tolist(), stream.dst[training].tolist(), strict=True):
        targets.setdefault(source, set()).add(target)
    return {source: np.array(sorted(seen), np.int64) for source, seen in targets.items()}


def _draw_negatives(
    stream: TimedStream, part: str, history: dict[int, Ids], count: int, rng: np.random.RandomState
) -> dict[tuple[int, int, int], Ids]:
    """Draw negative targets for each event of a part, in order."""
    keys, everything, nothing = _keys(stream, part), stream.targets, np.empty(0, np.int64)
    simultaneous: dict[tuple[int, int], list[int]] = {}
    for source, target, moment in keys:
        simultaneous.setdefault((source, moment), []).append(target)
    negatives = {}
    for source, target, moment in keys:
        true, seen = simultaneous[source, moment], history.get(source, nothing)
        old = np.setdiff1d(seen, true)
        old = rng.choice(old, min(len(old), int(count * HISTORICAL_SHARE)), replace=False)
        others = np.setdiff1d(everything, np.concatenate([true, seen]))
        if count - len(old) <= len(others):
            others = rng.choice(others, count - len(old), replace=False)
        negatives[source, target, moment] = np.concatenate([old, others])
    return negatives


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
