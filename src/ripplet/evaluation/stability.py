"""Whether what is built on the vectors keeps working: how far an anchor moves them, how a classifier ages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplet.datasets import Dataset
from ripplet.evaluation.classification import Classifier, Scores
from ripplet.evaluation.protocols import Arrivals, StreamingModel, StreamResult, start_size
from ripplet.evaluation.rows import unit_rows


@dataclass(frozen=True, slots=True)
class Ageing:
    """Scores of one classifier, never retrained, on the same vertices: at the start, and at the end of the stream."""

    beginning: Scores
    end: Scores


def anchor_cosines(
    model: StreamingModel, dataset: Dataset, start: float = 0.5, seed: int | None = 0, batch: int = 1
) -> list[float]:
    """For each anchor of a stream the mean cosine of the vectors served just before and just after it.

    Vectors are followed through the changes the model reports; those that are zero on either side are left out.
    """
    arrivals, begin = Arrivals.of(dataset, seed), start_size(dataset, start)
    model.fit(arrivals.batch(0, begin))
    known = np.array(model.vectors(arrivals.order[:begin]))
    served = np.zeros((dataset.vertices, known.shape[1]), known.dtype)
    served[arrivals.order[:begin]] = known
    cosines = []
    for place in range(begin, dataset.vertices, batch):
        changes = model.partial_fit(arrivals.batch(place, min(place + batch, dataset.vertices)))
        if changes.anchored:
            before = arrivals.order[:place]
            cosines.append(_mean_cosine(served[before], model.vectors(before)))
            present = arrivals.order[: place + batch]
            served[present] = model.vectors(present)
        else:
            served[np.asarray(changes.ids, np.int64)] = changes.vectors
    return cosines


def ageing(result: StreamResult, seed: int = 0) -> Ageing:
    """Train once on a random half of the start; score the other half at the start and at the end of the stream."""
    half = np.random.default_rng(seed).permutation(result.start)
    train, test = half[: result.start // 2], half[result.start // 2 :]
    trained = Classifier.train(result.start_vectors[train], result.labels[train])
    return Ageing(
        trained.score(result.start_vectors[test], result.labels[test]),
        trained.score(result.final_vectors[test], result.labels[test]),
    )


def _mean_cosine(before: NDArray[Any], after: NDArray[Any]) -> float:
    placed = before.any(axis=1) & after.any(axis=1)
    return float(np.mean(np.sum(unit_rows(before[placed]) * unit_rows(after[placed]), axis=1)))
