from __future__ import annotations

import sys

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.lab.evaluation.label_metrics import (
    Classifier,
    Scores,
    classify,
    classify_multilabel,
    cluster,
    normalize_rows,
)

LABELS = np.tile([0, 1, 2], 40)
RNG = np.random.default_rng(0)
SEPARATE = np.eye(3)[LABELS] + 0.05 * RNG.standard_normal((120, 3))
TRAIN, TEST = np.arange(60), np.arange(60, 120)


def test_classify_separable_classes_scores_one() -> None:
    scores = classify(SEPARATE, LABELS, TRAIN, TEST)
    assert (scores.micro, scores.macro) == (1.0, 1.0)


def test_classify_noise_scores_low() -> None:
    assert classify(RNG.standard_normal((120, 3)), LABELS, TRAIN, TEST).micro < 0.6


def test_classify_ignores_row_lengths() -> None:
    lengths = RNG.uniform(0.01, 100, (120, 1))
    assert classify(SEPARATE * lengths, LABELS, TRAIN, TEST) == classify(SEPARATE, LABELS, TRAIN, TEST)


def test_scores_micro_weighs_vertices_and_macro_classes() -> None:
    classifier = Classifier.train(SEPARATE, LABELS)
    vectors = np.eye(3)[[0, 0, 0, 0]]
    scores = classifier.score(vectors, np.array([0, 0, 0, 1]))
    assert scores.micro == pytest.approx(3 / 4)
    assert scores.macro == pytest.approx((6 / 7 + 0) / 2)


def test_scores_from_predictions_equal_classifier_score() -> None:
    classifier = Classifier.train(SEPARATE, LABELS)
    predicted = np.concatenate([classifier.predict(SEPARATE[:50]), classifier.predict(SEPARATE[50:])])
    assert Scores.from_predictions(LABELS, predicted) == classifier.score(SEPARATE, LABELS)


def test_classify_trains_on_train_rows_only() -> None:
    altered = np.where(np.isin(np.arange(120), TEST), 0, LABELS)
    classifier = Classifier.train(SEPARATE[TRAIN], LABELS[TRAIN])
    assert classify(SEPARATE, altered, TRAIN, TEST) == classifier.score(SEPARATE[TEST], altered[TEST])


def test_classifier_with_one_class_raises() -> None:
    with pytest.raises(InvalidValueError, match="at least two classes"):
        Classifier.train(SEPARATE, np.zeros(120))


def test_classifier_without_scikit_learn_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[eval\]"):
        Classifier.train(SEPARATE, LABELS)


BLOCK_LABELS = np.repeat([0, 1, 2], 30)


def test_cluster_finds_separate_directions_of_any_length() -> None:
    vectors = (np.eye(3)[BLOCK_LABELS] + 0.01 * RNG.standard_normal((90, 3))) * RNG.uniform(0.1, 10, (90, 1))
    found = cluster(vectors, BLOCK_LABELS, repetitions=3)
    assert found.nmi > 0.8
    assert found.completeness > 0.8


def test_cluster_of_noise_scores_low() -> None:
    found = cluster(RNG.standard_normal((90, 3)), BLOCK_LABELS, repetitions=3)
    assert found.nmi < 0.2
    assert found.completeness < 0.2


def test_cluster_of_merged_classes_has_lower_nmi() -> None:
    vectors = np.eye(2)[np.minimum(BLOCK_LABELS, 1)] + 0.01 * RNG.standard_normal((90, 2))
    merged = cluster(vectors, np.minimum(BLOCK_LABELS, 1), repetitions=3)
    split = cluster(vectors, BLOCK_LABELS, repetitions=3)
    assert merged.nmi == pytest.approx(1)
    assert split.nmi < 0.9


def test_cluster_is_determined_by_seed() -> None:
    vectors = RNG.standard_normal((90, 3))
    assert cluster(vectors, BLOCK_LABELS, 2, seed=1) == cluster(vectors, BLOCK_LABELS, 2, seed=1)
    assert cluster(vectors, BLOCK_LABELS, 2, seed=1) != cluster(vectors, BLOCK_LABELS, 2, seed=5)


def test_cluster_without_scikit_learn_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[eval\]"):
        cluster(np.eye(3), np.arange(3))


def test_normalize_rows_keeps_zero_rows() -> None:
    vectors = np.array([[3, 4], [0, 0], [0, -1e-3]], np.float32)
    np.testing.assert_allclose(normalize_rows(vectors), [[0.6, 0.8], [0, 0], [0, -1]])
    assert vectors[0, 0] == 3


def test_normalize_rows_of_rounding_errors_are_zero() -> None:
    vectors = np.array([[300.0, 400.0], [1e-5, -2e-5], [1e-2, 0]])
    np.testing.assert_allclose(normalize_rows(vectors), [[0.6, 0.8], [0, 0], [1, 0]])
    assert not normalize_rows(np.zeros((2, 3))).any()


def test_normalize_rows_of_empty_matrix_is_empty() -> None:
    assert normalize_rows(np.empty((0, 5))).shape == (0, 5)


def test_classify_multilabel_predicts_as_many_labels_as_a_vertex_has() -> None:
    vectors = np.repeat(np.eye(3), 8, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(24, 3))
    labels = np.repeat(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], bool), 8, axis=0)
    train, test = np.arange(0, 24, 2), np.arange(1, 24, 2)
    assert classify_multilabel(vectors, labels, train, test) == Scores(1.0, 1.0)
    unknown = np.column_stack([labels, np.arange(24) % 2 == 1])  # a label that only test vertices have
    scores = classify_multilabel(vectors, unknown, train, test)
    assert 0.5 < scores.macro < scores.micro < 1.0
