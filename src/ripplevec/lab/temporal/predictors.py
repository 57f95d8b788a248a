"""Link predictors: the link scorer, the cosine alone, and baselines that only count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch
from ripplevec.embedder import Embedder
from ripplevec.lab.temporal.protocol import Scores
from ripplevec.lab.temporal.streams import Ids
from ripplevec.link_scoring.link_scorer import LinkScorer

NO_SCORES = np.empty((0, 0))

TIME_WINDOW = 0.15
"""Share of the latest events that EdgeBank with a window remembers, as in the benchmark."""


class CountingPredictor:
    """A predictor without vectors; it follows the stream event by event or batch by batch."""

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Score the candidates of each event, then record the events."""
        if not one_by_one or candidates is None:
            scores = NO_SCORES if candidates is None else self.score(src, candidates)
            self.record(src, dst, time)
            return scores
        lines = []
        for i in range(len(src)):
            event = slice(i, i + 1)
            lines.append(self.score(src[event], candidates[event]))
            self.record(src[event], dst[event], time[event])
        return np.concatenate(lines)

    def score(self, src: Ids, candidates: Ids) -> Scores:
        """Return the scores of the candidates of each source."""
        raise NotImplementedError

    def record(self, src: Ids, dst: Ids, time: Ids) -> None:
        """Record events."""
        raise NotImplementedError


@dataclass(slots=True)
class EdgeBank(CountingPredictor):
    """EdgeBank: 1 for a pair that has occurred before, in the whole past or within a window of time; 0 otherwise."""

    window: bool = False
    latest: dict[tuple[int, int], float] = field(default_factory=dict)
    first_time: float = np.nan
    last_time: float = np.nan
    training: list[NDArray[Any]] = field(default_factory=list)
    width: float = np.inf

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Score the candidates of each event, then record the events; the training part determines the window."""
        if learn:
            self.training.append(time)
        elif self.window and self.width == np.inf:
            times = np.concatenate(self.training)
            self.width = float(times.max() - np.quantile(times, 1 - TIME_WINDOW))
        return CountingPredictor.process(self, src, dst, time, candidates, learn=learn, one_by_one=one_by_one)

    def score(self, src: Ids, candidates: Ids) -> Scores:
        """Return whether each pair is remembered."""
        oldest = self.last_time - self.width if self.window else -np.inf
        return np.array(
            [
                [self.latest.get((source, target), -np.inf) >= oldest for target in line]
                if oldest > -np.inf
                else [(source, target) in self.latest for target in line]
                for source, line in zip(src.tolist(), candidates.tolist(), strict=True)
            ],
            np.float64,
        )

    def record(self, src: Ids, dst: Ids, time: Ids) -> None:
        """Remember pairs with the time of their latest event."""
        self.latest.update(zip(zip(src.tolist(), dst.tolist(), strict=True), time.tolist(), strict=True))
        self.last_time = float(np.nanmax([self.last_time, time[-1]]))


@dataclass(slots=True)
class Popularity(CountingPredictor):
    """The number of events of a target, decaying with a half-life in events; None: without decay."""

    half_life: float | None = None
    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    events: int = 0

    def score(self, src: Ids, candidates: Ids) -> Scores:
        """Return the number of events of each candidate."""
        return np.where(candidates < len(self.counts), _take(self.counts, candidates, 0.0), 0.0)

    def record(self, src: Ids, dst: Ids, time: Ids) -> None:
        """Count events; a later event counts more, instead of the earlier ones less."""
        self.counts = _grow(self.counts, int(dst.max()) + 1, 0.0)
        order = self.events + np.arange(len(dst))
        growth = np.ones(len(dst)) if self.half_life is None else np.exp2((order - order[0]) / self.half_life)
        if self.half_life is not None:
            self.counts *= np.exp2(-len(dst) / self.half_life)
        np.add.at(self.counts, dst, growth)
        self.events += len(dst)


@dataclass(slots=True)
class Recency(CountingPredictor):
    """How recently the pair has occurred; among pairs that never have, how recently the target has."""

    pairs: dict[tuple[int, int], int] = field(default_factory=dict)
    targets: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    events: int = 0

    def score(self, src: Ids, candidates: Ids) -> Scores:
        """Return the number of the latest event of each pair, or a fraction for the latest event of the target."""
        scores = _take(self.targets, candidates, 0.0) / (self.events + 1)
        for line, source, targets in zip(scores, src.tolist(), candidates.tolist(), strict=True):
            for i, target in enumerate(targets):
                line[i] += self.pairs.get((source, target), 0)
        return scores

    def record(self, src: Ids, dst: Ids, time: Ids) -> None:
        """Number events."""
        self.targets = _grow(self.targets, int(dst.max()) + 1, 0.0)
        for source, target in zip(src.tolist(), dst.tolist(), strict=True):
            self.events += 1
            self.pairs[source, target] = self.events
            self.targets[target] = self.events


def _grow(array: NDArray[np.float64], size: int, fill: float) -> NDArray[np.float64]:
    return array if size <= len(array) else np.append(array, np.full(size - len(array), fill))


def _take(array: NDArray[np.float64], positions: Ids, missing: float) -> NDArray[np.float64]:
    known = (positions >= 0) & (positions < len(array))
    return (
        np.where(known, array[np.where(known, positions, 0)], missing)
        if len(array)
        else np.full(positions.shape, missing)
    )


class ScorerPredictor:
    """The link scorer; vectors are updated batch by batch, the history event by event."""

    def __init__(self, **parameters: Any) -> None:
        self.scorer = LinkScorer(Embedder(**parameters), seed=parameters.get("seed", 0))

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Score the candidates of each event, then apply the events to the model and the scorer."""
        batch = Batch.of(src, dst)
        if candidates is not None and not one_by_one:
            scores = self.scorer.score_candidates(src, candidates)
            self.scorer.partial_fit(batch, learn=learn)
            return scores
        return self.scorer.partial_fit(batch, learn=learn, candidates=candidates).candidate_scores


class CosinePredictor:
    """The cosine of the vectors of a model that is updated batch by batch; nothing else."""

    def __init__(self, **parameters: Any) -> None:
        self.model = Embedder(**parameters)

    def process(
        self, src: Ids, dst: Ids, time: Ids, candidates: Ids | None, *, learn: bool, one_by_one: bool
    ) -> Scores:
        """Score the candidates of each event, then apply the events to the model."""
        scores = NO_SCORES
        if candidates is not None:
            vertices, position = np.unique(np.concatenate([src, candidates.ravel()]), return_inverse=True)
            rows = self.model.engine.find_rows(vertices)
            units = np.zeros((len(vertices), self.model.dim), np.float32)
            units[rows >= 0] = self.model.engine.unit_vectors(rows[rows >= 0])
            others = position[len(src) :].reshape(candidates.shape)
            scores = np.stack([units[line] @ units[source] for source, line in zip(position, others, strict=False)])
        self.model.partial_fit(Batch.of(src, dst))
        return scores.astype(np.float64)
