"""Tests of the id table benchmark: its ids are distinct, and wrong lookups are detected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec.batch import ids_to_list, take_ids


@pytest.fixture
def ids(benchmark: Callable[[str], Any]) -> Any:
    return benchmark("ids")


@pytest.mark.parametrize("function", ["create_integers", "create_texts"])
def test_created_ids_of_different_shifts_are_distinct(ids: Any, function: str) -> None:
    order = np.random.default_rng(0).permutation(1_000)
    id_lists = [ids_to_list(getattr(ids, function)(order, shift)) for shift in (0, 1)]
    assert len({*id_lists[0], *id_lists[1]}) == 2_000
    assert function == "create_integers" or f"user-{10 * order[0]}" == id_lists[0][0]
    assert function == "create_texts" or max(id_lists[1]) > 2**62


def test_check_table_raises_on_wrong_lookups(ids: Any) -> None:
    order = np.arange(10)
    known_ids, unknown_ids = ids.create_integers(order, 0), ids.create_integers(order, 1)
    table = ids.create_table(*ids.split_endpoints(known_ids))
    ids.check_table(table, known_ids, unknown_ids, order)
    for known, unknown, rows in (
        (known_ids, known_ids, order),
        (take_ids(known_ids, order[::-1]), unknown_ids, order),
        (known_ids, unknown_ids, order[::-1]),
    ):
        with pytest.raises(RuntimeError, match="another row"):
            ids.check_table(table, known, unknown, rows)


def test_ids_record_contains_all_documented_metrics(ids: Any, render_block: Callable[..., str]) -> None:
    metrics = ids.measure(2_001)
    assert "2,000 ids" in render_block("ids", metrics)
    assert 16 < metrics["int_bytes_per_id"] < metrics["text_bytes_per_id"] < 500
