from __future__ import annotations

import numpy as np

from ripplevec.lab.baselines.skip_gram import create_skip_gram, read_vectors, train_skip_gram

WALKS = np.array([[0, 1, 2, 1], [2, 1, 0, -1]])


def test_skip_gram_training_continues_from_earlier_vectors() -> None:
    model = create_skip_gram(dim=4, window=2, seed=0)
    assert not read_vectors(model, 3).any()
    train_skip_gram(model, WALKS, epochs=1)
    first = read_vectors(model, 6)
    assert first.any(axis=1).tolist() == [True, True, True, False, False, False]
    train_skip_gram(model, np.array([[4, 5, 4, 5]]), epochs=1)
    second = read_vectors(model, 6)
    np.testing.assert_array_equal(second[:3], first[:3])
    assert second[4:].any(axis=1).all()
