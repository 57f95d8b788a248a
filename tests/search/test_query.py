from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.search.query import query_from_row, query_from_vector

EDGES = planted_partition(communities=2, size=20, inside=6, elsewhere=1, seed=0).edges


@pytest.fixture(params=[True, False])
def engine(request: pytest.FixtureRequest) -> Any:
    """Return the engine of a small model after an anchor, so that its coordinates are rotated."""
    model = Embedder(dim=4, normalize=request.param).fit(EDGES)
    model.partial_fit([("new", 0), ("new", 1)])
    model.anchor()
    return model._engine


def cosine(left: Any, right: Any) -> float:
    return float(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)))


def test_query_from_row_excludes_the_row_and_has_its_served_vector(engine: Any) -> None:
    row = engine.graph.ids.find_row("new")
    query = query_from_row(engine.rule, engine.store.vectors[row], row)
    assert query.exclude == row
    np.testing.assert_allclose(query.served, engine.rule.to_served(engine.store.vectors[[row]])[0])
    assert np.linalg.norm(query.internal) == pytest.approx(1)


def test_query_from_vector_excludes_nothing_and_points_in_the_same_direction(engine: Any) -> None:
    row = engine.graph.ids.find_row("new")
    of_row = query_from_row(engine.rule, engine.store.vectors[row], row)
    query = query_from_vector(engine.rule, of_row.served.astype(np.float64))
    assert query.exclude == -1
    assert query.internal.shape == (1, 4)
    assert cosine(query.internal[0], of_row.internal[0]) == pytest.approx(1, abs=1e-5)
