"""Names in the benchmark: distinct, known ones found, unknown ones not; wrong answers are no rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import ids_to_list, take_ids


@pytest.fixture
def ids(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("ids")


@pytest.mark.parametrize("kind", ["integers", "texts"])
def test_shifts_give_other_names_and_all_are_distinct(ids: Any, kind: str) -> None:
    order = np.random.default_rng(0).permutation(1_000)
    named = [ids_to_list(getattr(ids, kind)(order, shift)) for shift in (0, 1)]
    assert len({*named[0], *named[1]}) == 2_000
    assert kind == "integers" or f"user-{10 * order[0]}" == named[0][0]
    assert kind == "texts" or max(named[1]) > 2**62


def test_answers_that_are_wrong_stop_it(ids: Any) -> None:
    order = np.arange(10)
    names, others = ids.integers(order, 0), ids.integers(order, 1)
    table = ids.grown(*ids.in_pairs(names))
    ids.check(table, names, others, order)
    for known, unknown, rows in (
        (names, names, order),
        (take_ids(names, order[::-1]), others, order),
        (names, others, order[::-1]),
    ):
        with pytest.raises(RuntimeError, match="another row"):
            ids.check(table, known, unknown, rows)


def test_a_record_says_what_the_page_asks_for(ids: Any, page_of: Callable[..., str]) -> None:
    figures = ids.measure(2_001)
    assert "2,000 ids" in page_of("ids", figures)
    assert 16 < figures["int_bytes_per_id"] < figures["text_bytes_per_id"] < 500
