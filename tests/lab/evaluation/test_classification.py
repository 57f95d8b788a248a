from __future__ import annotations

import sys

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.lab.evaluation.classification import Classifier, Scores, classify

LABELS = np.tile([0, 1, 2], 40)
RNG = np.random.default_rng(0)
SEPARATE = np.eye(3)[LABELS] + 0.05 * RNG.standard_normal((120, 3))
TRAIN, TEST = np.arange(60), np.arange(60, 120)


def test_separate_classes_are_told_apart() -> None:
    scores = classify(SEPARATE, LABELS, TRAIN, TEST)
    assert (scores.micro, scores.macro) == (1.0, 1.0)


def test_noise_is_not() -> None:
    assert classify(RNG.standard_normal((120, 3)), LABELS, TRAIN, TEST).micro < 0.6


def test_the_length_of_a_row_does_not_count() -> None:
    lengths = RNG.uniform(0.01, 100, (120, 1))
    assert classify(SEPARATE * lengths, LABELS, TRAIN, TEST) == classify(SEPARATE, LABELS, TRAIN, TEST)


def test_micro_weighs_vertices_and_macro_classes() -> None:
    trained = Classifier.train(SEPARATE, LABELS)
    vectors = np.eye(3)[[0, 0, 0, 0]]
    scores = trained.score(vectors, np.array([0, 0, 0, 1]))
    assert scores.micro == pytest.approx(3 / 4)
    assert scores.macro == pytest.approx((6 / 7 + 0) / 2)


def test_what_is_told_can_be_scored_later() -> None:
    trained = Classifier.train(SEPARATE, LABELS)
    told = np.concatenate([trained.tell(SEPARATE[:50]), trained.tell(SEPARATE[50:])])
    assert Scores.of(LABELS, told) == trained.score(SEPARATE, LABELS)


def test_only_the_train_rows_teach() -> None:
    spoiled = np.where(np.isin(np.arange(120), TEST), 0, LABELS)
    taught = Classifier.train(SEPARATE[TRAIN], LABELS[TRAIN])
    assert classify(SEPARATE, spoiled, TRAIN, TEST) == taught.score(SEPARATE[TEST], spoiled[TEST])


def test_one_class_cannot_be_learned() -> None:
    with pytest.raises(InvalidValueError, match="at least two classes"):
        Classifier.train(SEPARATE, np.zeros(120))


def test_a_missing_extra_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(MissingExtraError, match=r"ripplevec\[eval\]"):
        Classifier.train(SEPARATE, LABELS)
