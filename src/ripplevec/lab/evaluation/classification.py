"""How well labels can be told from vectors: one-vs-rest logistic regression, micro- and macro-F1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.lab.evaluation.rows import unit_rows

LENGTH = 3.0
"""The length rows are given before training: at C = 1 unit rows would be shrunk too much."""


@dataclass(frozen=True, slots=True)
class Scores:
    """F1 between 0 and 1: over all vertices (micro) and as the mean over the classes (macro)."""

    micro: float
    macro: float

    @classmethod
    def of(cls, labels: NDArray[Any], told: NDArray[Any]) -> Scores:
        """F1 of what was told about vertices with these labels."""
        from sklearn.metrics import f1_score

        micro, macro = (f1_score(labels, told, average=average, zero_division=0) for average in ("micro", "macro"))
        return cls(float(micro), float(macro))


@dataclass(frozen=True, slots=True)
class Classifier:
    """A trained classifier, to be applied to vectors of any later time."""

    model: Any

    @classmethod
    def train(cls, vectors: NDArray[Any], labels: NDArray[Any]) -> Classifier:
        """Train on labeled vectors."""
        try:
            from sklearn.linear_model import LogisticRegression
            from sklearn.multiclass import OneVsRestClassifier
        except ImportError as error:
            raise MissingExtraError("classification", "eval") from error
        if len(np.unique(labels)) < 2:
            raise InvalidValueError.of("labels", "at least two classes to tell apart", np.unique(labels).tolist())
        model = OneVsRestClassifier(LogisticRegression(C=1.0, max_iter=1000))
        return cls(model.fit(LENGTH * unit_rows(vectors), labels))

    def tell(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """The labels it gives to vectors."""
        told: NDArray[Any] = self.model.predict(LENGTH * unit_rows(vectors))
        return told

    def score(self, vectors: NDArray[Any], labels: NDArray[Any]) -> Scores:
        """F1 of what it says about these vectors."""
        return Scores.of(labels, self.tell(vectors))


def classify(vectors: NDArray[Any], labels: NDArray[Any], train: NDArray[np.int64], test: NDArray[np.int64]) -> Scores:
    """Scores on the `test` rows of a classifier trained on the `train` rows."""
    return Classifier.train(vectors[train], labels[train]).score(vectors[test], labels[test])
