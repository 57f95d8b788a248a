"""Numba kernels of the link scorer: the history of vertices, the features of a pair, and online logistic regression.

Time is counted in events. A vertex is a row of the history; row −1 is a vertex without a history.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.influence._kernels import sample_slot
from ripplevec.link_scoring._calibration import (
    Calibration,
    calibrate,
    compute_correction,
    count_example,
    decay_counts,
)
from ripplevec.util.numba_intrinsics import allocation_free, kernel

RECENT = 8
"""Partners that a vertex remembers on each side; their numbers fill one cache line."""

POPULARITY_HALF_LIFE, REPEATS_HALF_LIFE = 1_000.0, 30_000.0
"""Half-lives of the decaying counters, in events."""

SOURCE, TARGET = 0, 1
"""Sides of a vertex: its events as the source and as the target of an edge."""

FEATURES = (
    "constant",
    "cosine",  # of the two vectors
    "repeats",  # decayed number of earlier events of the pair, as a logarithm
    "recency",  # 1 / rank of the target among the recent targets of the source
    "recency of the source",  # 1 / rank of the source among the recent sources of the target
    "reply",  # 1 / rank of the target among the recent sources of the source
    "popularity",  # decayed number of events of the target, as a logarithm
    "idle time",  # events since the latest one of the target, as a logarithm
    "latest",  # whether the target is that of the latest event of the source
    "common neighbors",  # recent targets of the source that are recent sources of the target, as a logarithm
)
"""Features of a pair, in the order of the weights."""

WIDTH = len(FEATURES)

MEMORY = 50_000.0
"""Number of events from which the weights are learned: older ones count less and less."""

FORGETTING = np.sqrt(1.0 + 1.0 / MEMORY)
"""Growth of the standard deviation of the weights with every event."""

MIN_CURVATURE = 1e-9
"""Lower bound of p(1 − p) in a learning step."""


class History(NamedTuple):
    """What the scorer remembers of each vertex, by row: constant memory. Axis 1 is the side, `SOURCE` or `TARGET`."""

    partner: NDArray[np.int64]  # (rows, 2, RECENT) rows of the latest partners, latest first; −1 for none
    repeats: NDArray[np.float32]  # (rows, 2, RECENT) decayed number of events with each partner, at the latest one
    tick: NDArray[np.int64]  # (rows, 2, RECENT) time of the latest event with each partner
    events: NDArray[np.float32]  # (rows, 2) decayed number of events, at the latest one
    begin: NDArray[np.int64]  # (rows,) time at which the vertex got its row: earlier entries are about another vertex


class Regression(NamedTuple):
    """State of the online logistic regression."""

    weights: NDArray[np.float64]
    covariance: NDArray[np.float64]  # inverse of the accumulated curvature


@allocation_free(forceinline=True)
def decay(events: int, half_life: float) -> float:
    """Return the share of a counter that is left after a number of events."""
    return np.exp2(-events / half_life)


@allocation_free(forceinline=True)
def is_current(history: History, row: int, side: int, rank: int) -> bool:
    """Return whether the partner of an entry still has the row that the entry names."""
    partner = history.partner[row, side, rank]
    return partner >= 0 and history.tick[row, side, rank] >= history.begin[partner]


@allocation_free(forceinline=True)
def inverse_rank(history: History, row: int, side: int, partner: int) -> float:
    """Return 1 for the latest partner of a vertex, 1/2 for the one before, and so on; 0 if it is not remembered."""
    for rank in range(RECENT):
        if history.partner[row, side, rank] == partner and is_current(history, row, side, rank):
            return 1.0 / (1 + rank)
    return 0.0


@allocation_free(inner=True)
def count_common(history: History, source: int, target: int) -> int:
    """Return how many recent targets of one vertex are recent sources of another."""
    common = 0
    for i in range(RECENT):
        partner = history.partner[source, SOURCE, i]
        if partner < 0:
            break
        for j in range(RECENT):
            if history.partner[target, TARGET, j] == partner:
                common += is_current(history, source, SOURCE, i) and is_current(history, target, TARGET, j)
    return common


@allocation_free(inner=True)
def fill_features(
    history: History, source: int, target: int, now: int, cosine: float, features: NDArray[np.float64]
) -> None:
    """Compute the features of a pair of rows at a time, given the cosine of their vectors."""
    features[:] = 0.0
    features[0], features[1] = 1.0, cosine
    if source >= 0 and target >= 0:
        fill_pair_features(history, source, target, now, features)
    idle = now
    if target >= 0 and history.partner[target, TARGET, 0] >= 0:
        idle = now - history.tick[target, TARGET, 0]
        features[6] = np.log1p(history.events[target, TARGET] * decay(idle, POPULARITY_HALF_LIFE))
    features[7] = np.log1p(idle / POPULARITY_HALF_LIFE)


@allocation_free(inner=True)
def fill_pair_features(history: History, source: int, target: int, now: int, features: NDArray[np.float64]) -> None:
    """Compute the features that depend on both vertices."""
    for rank in range(RECENT):
        if history.partner[source, SOURCE, rank] == target and is_current(history, source, SOURCE, rank):
            elapsed = now - history.tick[source, SOURCE, rank]
            features[2] = np.log1p(history.repeats[source, SOURCE, rank] * decay(elapsed, REPEATS_HALF_LIFE))
            features[3], features[8] = 1.0 / (1 + rank), 1.0 if rank == 0 else 0.0
            break
    features[4] = inverse_rank(history, target, TARGET, source)
    features[5] = inverse_rank(history, source, TARGET, target)
    features[9] = np.log1p(count_common(history, source, target))


@allocation_free(inner=True)
def compute_log_odds(weights: NDArray[np.float64], features: NDArray[np.float64]) -> float:
    """Return the log-odds that logistic regression gives to features, before calibration."""
    total = 0.0
    for i in range(WIDTH):
        total += weights[i] * features[i]
    return total


@allocation_free
def learn(
    regression: Regression,
    features: NDArray[np.float64],
    outcome: float,
    importance: float,
    work: NDArray[np.float64],
) -> None:
    """Take one recursive Newton step of logistic regression: one pass, constant memory, no learning rate."""
    weights, covariance = regression
    probability = 1.0 / (1.0 + np.exp(-compute_log_odds(weights, features)))
    curvature = importance * max(probability * (1.0 - probability), MIN_CURVATURE)
    norm = 0.0
    for i in range(WIDTH):
        total = 0.0
        for j in range(WIDTH):
            total += covariance[i, j] * features[j]
        work[i] = total
        norm += total * features[i]
    scale = 1.0 / (1.0 + curvature * norm)
    for i in range(WIDTH):
        weights[i] += scale * importance * (outcome - probability) * work[i]
        for j in range(WIDTH):
            covariance[i, j] -= scale * curvature * work[i] * work[j]


@allocation_free(inner=True)
def forget(covariance: NDArray[np.float64]) -> None:
    """Let the examples so far count a little less, so that the weights follow the stream.

    The variance of a weight without examples stays at its initial value, 1.
    """
    for i in range(WIDTH):
        if covariance[i, i] < 1.0:
            for j in range(WIDTH):
                covariance[i, j] *= FORGETTING
                covariance[j, i] *= FORGETTING


@allocation_free(inner=True)
def record_event(history: History, source: int, target: int, now: int) -> None:
    """Record an event of two vertices."""
    record_partner(history, source, SOURCE, target, now)
    record_partner(history, target, TARGET, source, now)


@allocation_free(inner=True)
def record_partner(history: History, row: int, side: int, partner: int, now: int) -> None:
    """Record an event of a vertex: its partner moves to the front of the recent ones, and counters grow by one."""
    place, repeats, events = RECENT - 1, 0.0, 0.0
    if history.partner[row, side, 0] >= 0:
        events = history.events[row, side] * decay(now - history.tick[row, side, 0], POPULARITY_HALF_LIFE)
    for rank in range(RECENT):
        if history.partner[row, side, rank] == partner and is_current(history, row, side, rank):
            repeats = history.repeats[row, side, rank] * decay(now - history.tick[row, side, rank], REPEATS_HALF_LIFE)
        if history.partner[row, side, rank] == partner or history.partner[row, side, rank] < 0:
            place = rank
            break
    for rank in range(place, 0, -1):
        history.partner[row, side, rank] = history.partner[row, side, rank - 1]
        history.repeats[row, side, rank] = history.repeats[row, side, rank - 1]
        history.tick[row, side, rank] = history.tick[row, side, rank - 1]
    history.partner[row, side, 0], history.tick[row, side, 0] = partner, now
    history.repeats[row, side, 0], history.events[row, side] = repeats + 1.0, events + 1.0


@kernel
def choose_alternatives(
    history: History, targets: NDArray[np.int64], src: NDArray[np.int64], now: int, key: int, drawn: int
) -> NDArray[np.int64]:
    """Return, for each source, its recent targets, then `drawn` random ones of all targets; −1 for none."""
    chosen = np.full((len(src), RECENT + drawn), -1, np.int64)
    for event in range(len(src)):
        for rank in range(RECENT):
            if is_current(history, src[event], SOURCE, rank):
                chosen[event, rank] = history.partner[src[event], SOURCE, rank]
        for i in range(drawn if len(targets) else 0):
            chosen[event, RECENT + i] = targets[sample_slot(key, now + event, i, len(targets))]
    return chosen


@kernel
def score_rows(
    history: History,
    weights: NDArray[np.float64],
    correction: NDArray[np.float64],
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    now: int,
    cosines: NDArray[np.float32],
    scores: NDArray[np.float64],
) -> None:
    """Score each source with each of its candidates: `dst`, `cosines` and `scores` have one line per source."""
    features = np.empty(WIDTH)
    for i in range(len(src)):
        for j in range(dst.shape[1]):
            fill_features(history, src[i], dst[i, j], now, cosines[i, j], features)
            scores[i, j] = calibrate(correction, compute_log_odds(weights, features))


class Candidates(NamedTuple):
    """Targets to score for each event, and their cosines with its source: one line per event, −1 for none."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float32]


@allocation_free(forceinline=True)
def is_negative(others: NDArray[np.int64], i: int, target: int) -> bool:
    """Return whether another target is a negative example: random ones only if they are not recent ones, too."""
    return others[i] >= 0 and others[i] != target and (i < RECENT or others[i] not in others[:RECENT])


@allocation_free(inner=True)
def learn_from_event(
    history: History,
    regression: Regression,
    calibration: Calibration,
    source: int,
    target: int,
    now: int,
    cosine: float,
    others: NDArray[np.int64],
    cosines: NDArray[np.float32],
    importance: float,
    features: NDArray[np.float64],
    work: NDArray[np.float64],
) -> None:
    """Learn from an event, a positive example, and from other targets, negative ones.

    Recent targets of the source come first, each of which counts once, then random targets, each of which counts
    `importance` times. The calibration counts all of them with the weights before the event, as predictions have them.
    """
    forget(regression.covariance)
    decay_counts(calibration, 1.0 - 1.0 / MEMORY)
    fill_features(history, source, target, now, cosine, features[0])
    count_example(calibration, compute_log_odds(regression.weights, features[0]), 1.0, 1.0)
    for i in range(len(others)):
        if is_negative(others, i, target):
            fill_features(history, source, others[i], now, cosines[i], features[1 + i])
            weight = 1.0 if i < RECENT else importance
            count_example(calibration, compute_log_odds(regression.weights, features[1 + i]), 0.0, weight)
    learn(regression, features[0], 1.0, 1.0, work)
    for i in range(len(others)):
        if is_negative(others, i, target):
            learn(regression, features[1 + i], 0.0, 1.0 if i < RECENT else importance, work)


@kernel
def observe_events(
    history: History,
    regression: Regression,
    calibration: Calibration,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    now: int,
    cosines: NDArray[np.float32],
    alternatives: Candidates,
    importance: float,
    candidates: Candidates,
    by_batch: bool,
    scores: NDArray[np.float64],
) -> None:
    """Score events and their candidates one after the other, learn from each event and record it.

    The first column of `scores` is for the event, the others are for its candidates. Without alternatives, nothing is
    learned. With `by_batch`, events are recorded after all of them have been scored and learned from. The correction
    of the probabilities is the one before the events.
    """
    features, work = np.empty(WIDTH), np.empty(WIDTH)
    examples = np.empty((1 + alternatives.rows.shape[1], WIDTH))
    correction = compute_correction(calibration)
    for event in range(len(src)):
        source, target, time = src[event], dst[event], now if by_batch else now + event
        for i in range(candidates.rows.shape[1]):
            fill_features(history, source, candidates.rows[event, i], time, candidates.cosines[event, i], features)
            scores[event, 1 + i] = calibrate(correction, compute_log_odds(regression.weights, features))
        fill_features(history, source, target, time, cosines[event], features)
        scores[event, 0] = calibrate(correction, compute_log_odds(regression.weights, features))
        if alternatives.rows.shape[1]:
            learn_from_event(
                history,
                regression,
                calibration,
                source,
                target,
                time,
                cosines[event],
                alternatives.rows[event],
                alternatives.cosines[event],
                importance,
                examples,
                work,
            )
        if not by_batch:
            record_event(history, source, target, time)
    for event in range(len(src) if by_batch else 0):
        record_event(history, src[event], dst[event], now + event)


@kernel
def fill_cosines(
    units: NDArray[np.float32], src: NDArray[np.int64], dst: NDArray[np.int64], cosines: NDArray[np.float32]
) -> None:
    """Compute the dot product of the unit vectors of each source and each of its candidates; 0 for −1."""
    for i in range(len(src)):
        for j in range(dst.shape[1]):
            total = np.float32(0.0)
            if src[i] >= 0 and dst[i, j] >= 0:
                for column in range(units.shape[1]):
                    total += units[src[i], column] * units[dst[i, j], column]
            cosines[i, j] = total
