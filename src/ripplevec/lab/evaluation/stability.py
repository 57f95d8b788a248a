"""Whether what is built on the vectors keeps working: how far arrivals and anchors move them, how a classifier ages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.classification import Classifier, Scores
from ripplevec.lab.evaluation.protocols import Changes, StreamingModel, StreamResult, stream
from ripplevec.lab.evaluation.rows import unit_rows


@dataclass(frozen=True, slots=True)
class Ageing:
    """Scores of one classifier, never retrained, on the same vertices: at the start, and at the end of the stream."""

    beginning: Scores
    end: Scores


class AnchorWatch:
    """Watches a stream; for each anchor the mean cosine of the vectors served just before and just after it.

    And for each step between anchors the `movements`: how far known vertices went, all distances together. Vectors are
    followed through the changes the model reports; cosines leave out those that are zero on either side.
    """

    def __init__(self) -> None:
        self.cosines: list[float] = []
        self.movements: list[float] = []
        self._served: dict[int, NDArray[Any]] = {}

    def begin(self, model: StreamingModel, present: NDArray[np.int64]) -> None:
        """Note the vectors of the start."""
        self._note(present.tolist(), model.vectors(present))

    def step(self, model: StreamingModel, present: NDArray[np.int64], arrived: int, changes: Changes) -> None:
        """Note what changed, and compare where an anchor ran."""
        if not changes.anchored:
            self.movements.append(self._movement(changes))
            self._note(changes.ids, changes.vectors)
            return
        ids, vectors = present.tolist(), model.vectors(present)
        known = len(ids) - arrived
        self.cosines.append(_mean_cosine(np.array([self._served[v] for v in ids[:known]]), vectors[:known]))
        self._note(ids, vectors)

    def _movement(self, changes: Changes) -> float:
        known = [
            (self._served[v], now) for v, now in zip(changes.ids, changes.vectors, strict=True) if v in self._served
        ]
        return float(sum(np.linalg.norm(now - before) for before, now in known))

    def _note(self, ids: list[int], vectors: NDArray[Any]) -> None:
        self._served.update(zip(ids, np.array(vectors), strict=True))


def anchor_cosines(
    model: StreamingModel, dataset: Dataset, start: float = 0.5, seed: int | None = 0, batch: int = 1
) -> list[float]:
    """Stream a data set for what `AnchorWatch` sees."""
    watch = AnchorWatch()
    stream(model, dataset, start, seed, batch, watch=watch)
    return watch.cosines


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
