"""Kept attributes: rows of any length, replaced and gathered."""

from __future__ import annotations

import numpy as np

from ripplevec.attributes.kept import KeptAttributes


def entries(*columns: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array(columns, np.int32), np.array(columns, np.float32) / 2


def test_rows_are_replaced_by_longer_and_shorter_ones() -> None:
    kept = KeptAttributes()
    for columns in ((3, 1), (5,), (1, 2, 3, 4, 5, 6), ()):
        kept.set(4, *entries(*columns))
        kept.set(0, *entries(9, 8))
        assert kept.get(4)[0].tolist() == list(columns)
        assert kept.get(0)[1].tolist() == [4.5, 4.0]
    assert kept.get(100)[0].size == 0


def test_a_row_that_is_used_again_takes_no_more_memory() -> None:
    kept = KeptAttributes()
    kept.set(0, *entries(1, 2, 3))
    size = kept.nbytes
    for _ in range(50):
        kept.clear(0)
        kept.set(0, *entries(4, 5, 6, 7))
    assert kept.nbytes == size


def test_gathered_rows_can_be_set_again() -> None:
    kept, other = KeptAttributes(), KeptAttributes()
    for row, columns in enumerate([(1,), (), (2, 3, 4)]):
        kept.set(row, *entries(*columns))
    gathered = kept.gather(np.arange(4))
    other.set_all(np.arange(4), gathered["begin"], gathered["columns"], gathered["values"])
    for row in range(4):
        assert other.get(row)[0].tolist() == kept.get(row)[0].tolist()
