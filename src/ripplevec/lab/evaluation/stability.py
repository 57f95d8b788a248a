"""Stability of the coordinates: how far arrivals and anchors move vectors, and how a classifier ages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.label_metrics import Classifier, Scores, normalize_rows
from ripplevec.lab.evaluation.protocols import ChangedVectors, StreamingModel, StreamResult, stream


@dataclass(frozen=True, slots=True)
class ClassifierAging:
    """Scores of one classifier that is never retrained, on the same vertices: at the start and at the end."""

    beginning: Scores
    end: Scores


class AnchorObserver:
    """Stream observer that measures how much anchors and arrivals move vectors.

    `cosines` holds, per anchor, the mean cosine of the vectors just before and just after it; vectors that are zero on
    either side are left out. Successive steps with vectors of an anchor count as one. `movements` holds, per step
    between anchors, the sum of the distances that known vertices moved. Vectors are tracked through the changes that
    the model reports.
    """

    def __init__(self) -> None:
        self.cosines: list[float] = []
        self.movements: list[float] = []
        self._last_vector: dict[int, NDArray[Any]] = {}
        self._before_anchor: NDArray[Any] | None = None  # vectors of the vertices that were present, if one is moving

    def begin(self, model: StreamingModel, present: NDArray[np.int64]) -> None:
        """Record the vectors of the start."""
        self._record(present.tolist(), model.vectors(present))

    def step(self, model: StreamingModel, present: NDArray[np.int64], arrived: int, changes: ChangedVectors) -> None:
        """Record changed vectors; compare all vectors if an anchor ran."""
        if not changes.anchored:
            self._before_anchor = None
            self.movements.append(self._total_distance(changes))
            self._record(changes.ids, changes.vectors)
            return
        ids, vectors = present.tolist(), model.vectors(present)
        if self._before_anchor is None:
            self._before_anchor = np.array([self._last_vector[v] for v in ids[: len(ids) - arrived]])
            self.cosines.append(1.0)
        self.cosines[-1] = _mean_cosine(self._before_anchor, vectors[: len(self._before_anchor)])
        self._record(ids, vectors)

    def _total_distance(self, changes: ChangedVectors) -> float:
        pairs = [
            (self._last_vector[v], after)
            for v, after in zip(changes.ids, changes.vectors, strict=True)
            if v in self._last_vector
        ]
        return float(sum(np.linalg.norm(after - before) for before, after in pairs))

    def _record(self, ids: list[int], vectors: NDArray[Any]) -> None:
        self._last_vector.update(zip(ids, np.array(vectors), strict=True))


def measure_anchor_cosines(
    model: StreamingModel, dataset: Dataset, start: float = 0.5, seed: int | None = 0, batch: int = 1
) -> list[float]:
    """Stream a data set; return the mean cosine before and after each anchor (see `AnchorObserver`)."""
    observer = AnchorObserver()
    stream(model, dataset, start, seed, batch, observer=observer)
    return observer.cosines


def measure_aging(result: StreamResult, seed: int = 0) -> ClassifierAging:
    """Train once on a random half of the start; score the other half at the start and at the end of the stream."""
    order = np.random.default_rng(seed).permutation(result.start)
    train, test = order[: result.start // 2], order[result.start // 2 :]
    classifier = Classifier.train(result.start_vectors[train], result.labels[train])
    return ClassifierAging(
        classifier.score(result.start_vectors[test], result.labels[test]),
        classifier.score(result.final_vectors[test], result.labels[test]),
    )


def _mean_cosine(before: NDArray[Any], after: NDArray[Any]) -> float:
    placed = before.any(axis=1) & after.any(axis=1)
    return float(np.mean(np.sum(normalize_rows(before[placed]) * normalize_rows(after[placed]), axis=1)))
