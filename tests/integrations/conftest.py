"""A small model with a history: weights, a removal, ids of both kinds."""

from __future__ import annotations

import pytest

from ripplevec import Embedder

EDGES = [("a", "b"), ("b", "c", 2.0), ("c", "a", 0.5), ("c", "d"), (7, "a"), (7, "d", 3.0), ("d", "e")]


@pytest.fixture
def model() -> Embedder:
    made = Embedder(dim=3).fit(EDGES)
    made.remove_vertex("b")
    made.add_vertex("f", ["a", 7, "e"])
    made.add_vertex("alone")
    return made
