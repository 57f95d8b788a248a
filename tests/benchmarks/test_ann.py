"""The stream of the benchmark of search, small: who is asked, who leaves, and the record that fills the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import growing_communities

AnnIndex = pytest.importorskip("ripplevec.search.ann", reason="an index needs usearch").AnnIndex


@pytest.fixture
def ann(benchmark: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    made = benchmark("ann")
    for name, value in {"QUERIES": 10, "NEAREST": 5, "ROUNDS": 3, "CHURN_ROUNDS": 2}.items():
        monkeypatch.setattr(made, name, value)
    return made


@pytest.fixture
def model() -> Embedder:
    return Embedder(dim=8, search="ann").fit(growing_communities(300, 4, 4, seed=1).edges)


def test_recall_counts_those_that_exact_search_finds(
    ann: Any, model: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.catch_up(model)
    recall, through, exactly = ann.ask(model, np.random.default_rng(0))
    assert recall == 1
    assert min(through, exactly) > 0
    properly = AnnIndex.nearest
    for skipped, expected in ((2, 0.6), (5, 0.0)):
        monkeypatch.setattr(
            AnnIndex,
            "nearest",
            lambda index, present, query, count, skipped=skipped: tuple(
                part[:, skipped:] for part in properly(index, present, query, count + skipped)
            ),
        )
        assert ann.ask(model, np.random.default_rng(0))[0] == pytest.approx(expected, abs=0.05)


def test_as_many_leave_as_are_told_to(ann: Any, model: Embedder) -> None:
    ann.leave(model, np.random.default_rng(0), 30)
    assert len(model) == 270


def test_a_record_says_what_the_page_asks_for(ann: Any, page_of: Callable[..., str]) -> None:
    figures = ann.measure(600)
    assert "600 vertices" in page_of("ann", figures)
    assert figures["recall_least"] <= figures["recall_mean"] <= 1
    assert figures["churn_share"] == pytest.approx(0.1)
    assert figures["anchors"] > 0
