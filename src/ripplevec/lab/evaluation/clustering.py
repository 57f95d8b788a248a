"""How well groups of vectors agree with labels: k-means, NMI and completeness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import MissingExtraError
from ripplevec.lab.evaluation.rows import unit_rows


@dataclass(frozen=True, slots=True)
class Agreement:
    """Between 0 and 1, mean over the repetitions: normalized mutual information, and completeness."""

    nmi: float
    completeness: float


def cluster(vectors: NDArray[Any], labels: NDArray[Any], repetitions: int = 10, seed: int = 0) -> Agreement:
    """Group unit rows into as many clusters as there are classes, and compare with the classes."""
    try:
        from sklearn.cluster import KMeans
        from sklearn.metrics import completeness_score, normalized_mutual_info_score
    except ImportError as error:
        raise MissingExtraError("clustering", "eval") from error
    rows, classes = unit_rows(vectors), len(np.unique(labels))
    groups = [KMeans(classes, n_init=1, random_state=seed + turn).fit_predict(rows) for turn in range(repetitions)]
    return Agreement(
        float(np.mean([normalized_mutual_info_score(labels, group) for group in groups])),
        float(np.mean([completeness_score(labels, group) for group in groups])),
    )
