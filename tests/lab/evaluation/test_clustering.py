from __future__ import annotations

import sys

import numpy as np
import pytest

from ripplevec.errors import MissingExtraError
from ripplevec.lab.evaluation.clustering import cluster

LABELS = np.repeat([0, 1, 2], 30)
RNG = np.random.default_rng(0)


def test_separate_directions_are_the_classes_whatever_the_lengths() -> None:
    vectors = (np.eye(3)[LABELS] + 0.01 * RNG.standard_normal((90, 3))) * RNG.uniform(0.1, 10, (90, 1))
    found = cluster(vectors, LABELS, repetitions=3)
    assert found.nmi > 0.8
    assert found.completeness > 0.8


def test_noise_agrees_with_nothing() -> None:
    found = cluster(RNG.standard_normal((90, 3)), LABELS, repetitions=3)
    assert found.nmi < 0.2
    assert found.completeness < 0.2


def test_two_classes_in_one_place_are_complete_but_not_informative() -> None:
    vectors = np.eye(2)[np.minimum(LABELS, 1)] + 0.01 * RNG.standard_normal((90, 2))
    merged = cluster(vectors, np.minimum(LABELS, 1), repetitions=3)
    split = cluster(vectors, LABELS, repetitions=3)
    assert merged.nmi == pytest.approx(1)
    assert split.nmi < 0.9


def test_the_seed_decides_everything() -> None:
    vectors = RNG.standard_normal((90, 3))
    assert cluster(vectors, LABELS, 2, seed=1) == cluster(vectors, LABELS, 2, seed=1)
    assert cluster(vectors, LABELS, 2, seed=1) != cluster(vectors, LABELS, 2, seed=5)


def test_a_missing_extra_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"ripplevec\[eval\]"):
        cluster(np.eye(3), np.arange(3))
