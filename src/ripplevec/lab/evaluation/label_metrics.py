"""Agreement of vectors with vertex labels: classification (F1 scores) and clustering (NMI, completeness)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, MissingExtraError

MIN_RELATIVE_LENGTH = 1e-6
"""Rows shorter than this share of the longest are rounding errors: scaled to length one, they would be noise."""

ROW_LENGTH = 3.0
"""Length of the rows a classifier is trained on: with C = 1, unit rows would be regularized too strongly."""


@dataclass(frozen=True, slots=True)
class Scores:
    """F1 scores between 0 and 1: over all vertices (micro), and as the mean over the classes (macro)."""

    micro: float
    macro: float

    @classmethod
    def from_predictions(cls, labels: NDArray[Any], predicted: NDArray[Any]) -> Scores:
        """Compare predicted labels with the true ones."""
        from sklearn.metrics import f1_score

        micro, macro = (f1_score(labels, predicted, average=average, zero_division=0) for average in ("micro", "macro"))
        return cls(float(micro), float(macro))


@dataclass(frozen=True, slots=True)
class Classifier:
    """A trained one-vs-rest logistic regression, which can be applied to vectors of any later time."""

    model: Any

    @classmethod
    def train(cls, vectors: NDArray[Any], labels: NDArray[Any]) -> Classifier:
        """Train on labeled vectors."""
        if len(np.unique(labels)) < 2:
            raise InvalidValueError.of("labels", "at least two classes", np.unique(labels).tolist())
        return cls(_create_regression().fit(ROW_LENGTH * normalize_rows(vectors), labels))

    def predict(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Return the predicted label of each vector."""
        predicted: NDArray[Any] = self.model.predict(ROW_LENGTH * normalize_rows(vectors))
        return predicted

    def score(self, vectors: NDArray[Any], labels: NDArray[Any]) -> Scores:
        """Return the F1 scores of the predictions for these vectors."""
        return Scores.from_predictions(labels, self.predict(vectors))


@dataclass(frozen=True, slots=True)
class MultiLabelClassifier:
    """A logistic regression per label. It predicts as many labels of a vertex as the vertex has."""

    model: Any
    known: NDArray[np.bool_]  # which labels occurred in training

    @classmethod
    def train(cls, vectors: NDArray[Any], labels: NDArray[np.bool_]) -> MultiLabelClassifier:
        """Train on vectors with any number of labels each."""
        known = np.asarray(labels.any(axis=0))
        rows = ROW_LENGTH * normalize_rows(vectors)
        return cls(_create_regression().fit(rows, labels[:, known].astype(np.int8)), known)

    def score(self, vectors: NDArray[Any], labels: NDArray[np.bool_]) -> Scores:
        """Return the F1 scores of the predictions for these vectors."""
        probabilities = np.full(labels.shape, -1.0)
        probabilities[:, self.known] = self.model.predict_proba(ROW_LENGTH * normalize_rows(vectors))
        place = np.argsort(np.argsort(-probabilities, axis=1, kind="stable"), axis=1)
        return Scores.from_predictions(labels, place < labels.sum(axis=1, keepdims=True))


def _create_regression() -> Any:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier
    except ImportError as error:
        raise MissingExtraError("classification", "eval") from error
    return OneVsRestClassifier(LogisticRegression(C=1.0, max_iter=1000))


def classify(vectors: NDArray[Any], labels: NDArray[Any], train: NDArray[np.int64], test: NDArray[np.int64]) -> Scores:
    """Train a classifier on some rows and score it on others.

    Parameters
    ----------
    vectors : array of shape (n, dim)
        One vector per vertex.
    labels : array of shape (n,)
        One label per vertex.
    train, test : array of int
        Rows to train on, and rows to score.

    Returns
    -------
    Scores
        Micro- and macro-F1 on the test rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ripplevec.lab.evaluation import classify
    >>> vectors, labels = np.array([[1.0, 0], [0, 1], [2, 0], [0, 3]]), np.array([0, 1, 0, 1])
    >>> classify(vectors, labels, train=np.array([0, 1]), test=np.array([2, 3]))
    Scores(micro=1.0, macro=1.0)
    """
    return Classifier.train(vectors[train], labels[train]).score(vectors[test], labels[test])


def classify_multilabel(
    vectors: NDArray[Any], labels: NDArray[np.bool_], train: NDArray[np.int64], test: NDArray[np.int64]
) -> Scores:
    """Train a classifier per label on some rows, and predict for others as many labels as each of them has.

    Parameters
    ----------
    vectors : array of shape (n, dim)
        One vector per vertex.
    labels : array of shape (n, classes)
        Which labels each vertex has.
    train, test : array of int
        Rows to train on, and rows to score.

    Returns
    -------
    Scores
        Micro- and macro-F1 on the test rows.
    """
    return MultiLabelClassifier.train(vectors[train], labels[train]).score(vectors[test], labels[test])


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """Agreement of clusters with labels, between 0 and 1: normalized mutual information, and completeness.

    Both are means over the repetitions of k-means.
    """

    nmi: float
    completeness: float


def cluster(vectors: NDArray[Any], labels: NDArray[Any], repetitions: int = 10, seed: int = 0) -> ClusterScores:
    """Cluster unit rows by k-means, one cluster per class, and compare the clusters with the labels.

    Parameters
    ----------
    vectors : array of shape (n, dim)
        One vector per vertex.
    labels : array of shape (n,)
        One label per vertex.
    repetitions : int
        Number of k-means runs.
    seed : int
        Random seed of the first run; later runs count up from it.

    Returns
    -------
    ClusterScores
        Mean agreement over the runs.
    """
    try:
        from sklearn.cluster import KMeans
        from sklearn.metrics import completeness_score, normalized_mutual_info_score
    except ImportError as error:
        raise MissingExtraError("clustering", "eval") from error
    rows, classes = normalize_rows(vectors), len(np.unique(labels))
    runs = [KMeans(classes, n_init=1, random_state=seed + run).fit_predict(rows) for run in range(repetitions)]
    return ClusterScores(
        float(np.mean([normalized_mutual_info_score(labels, clusters) for clusters in runs])),
        float(np.mean([completeness_score(labels, clusters) for clusters in runs])),
    )


def normalize_rows(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Scale every row to length one; rows that are zero up to rounding, of vertices without a vector, become zero."""
    rows = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    is_zero = lengths <= MIN_RELATIVE_LENGTH * lengths.max(initial=0.0)
    return np.where(is_zero, 0.0, rows) / np.where(is_zero, 1.0, lengths)
