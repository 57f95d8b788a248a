"""One-pass check of saved edges compared with a check of the dense matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec.graph import _check_kernels as kernels
from ripplevec.graph._check_kernels import GraphPart, SavedEdges
from ripplevec.graph.adjacency import Adjacency

KEY = np.uint64(0x1234_5678_9ABC_DEF0)


def create_saved_edges(seed: int, rows: int = 12) -> SavedEdges:
    random, adjacency = np.random.default_rng(seed), Adjacency()
    adjacency.ensure_rows(rows)
    pairs = random.integers(0, rows, (30, 2))
    adjacency.apply(np.zeros(30, np.int8), pairs, random.uniform(0.5, 2, 30).astype(np.float32))
    packed = adjacency.to_packed(np.arange(rows))
    weight, strength = packed["weight"], packed["strength"]
    return SavedEdges(packed["degree"], strength, strength, packed["neighbor"], weight, weight, weight)


def check(edges: SavedEdges) -> tuple[int, int]:
    rows = len(edges.degree)
    seen = np.full(rows, -1, np.int64)
    fault, _, balance = kernels.check_edges(edges, GraphPart(np.array([rows]), 0), seen, 1024, 1e-6, KEY, False)
    return int(fault), int(balance)


def is_valid(edges: SavedEdges) -> bool:
    """Check the same properties with a dense matrix."""
    rows = len(edges.degree)
    if (edges.neighbor < 0).any() or (edges.neighbor >= rows).any():
        return False
    indptr = np.concatenate([[0], np.cumsum(edges.degree)])
    matrix = csr_array((edges.weight.astype(np.float64), edges.neighbor, indptr), shape=(rows, rows))
    unique = csr_array((np.ones(edges.neighbor.size), edges.neighbor, indptr), shape=(rows, rows)).toarray().max() <= 1
    dense = matrix.toarray()
    valid = unique and not np.diag(dense).any() and np.array_equal(dense, dense.T) and (edges.weight > 0).all()
    return bool(valid and np.allclose(dense.sum(axis=1), edges.strength, rtol=1e-12, atol=0))


@pytest.mark.parametrize("seed", range(40))
def test_check_edges_random_damage_matches_matrix_check(seed: int) -> None:
    edges, random = create_saved_edges(seed), np.random.default_rng(seed)
    assert check(edges) == (kernels.OK, 0)
    assert is_valid(edges)
    changed: dict[str, Any] = {"neighbor": edges.neighbor.copy(), "weight": edges.weight.copy()}
    changed["neighbor"][random.integers(edges.neighbor.size)] = random.integers(-1, 13)
    if seed % 3 == 0:
        changed["weight"][random.integers(edges.weight.size)] = random.choice([0.0, 1.5, np.nan])
    strength = edges.strength.copy()
    if seed % 2 and not np.isnan(changed["weight"]).any():
        rows = np.repeat(np.arange(12), edges.degree)
        strength = np.bincount(rows, changed["weight"].astype(np.float64), 12)
    tampered = SavedEdges(edges.degree, strength, strength, *changed.values(), changed["weight"], changed["weight"])
    assert (check(tampered) == (kernels.OK, 0)) == is_valid(tampered)
