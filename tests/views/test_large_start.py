"""Starts on large graphs, on graphs small enough for a dense solver: their Ritz sums are close to the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec.views import large_start, solvers
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.large_start import is_large, solve_large
from ripplevec.views.operators import Operator
from ripplevec.views.spectral import SpectralView, auto_views

MIN_SHARE = 0.999  # of the exact eigenvalue sum
SEEDS = st.integers(0, 2**32 - 1)


def share_of_exact_sum(sample: Any, tau: float, columns: int) -> float:
    """Return the sum of the positive Ritz values of a start, as a share of the exact sum."""
    mu, vectors = solve_large(Operator(sample.adjacency, sample.rows, tau), columns)
    exact = np.maximum(sample.spectrum(tau)[:columns], 0)
    assert np.isfinite(vectors).all()
    assert not vectors[~sample.active].any()
    assert (mu <= sample.spectrum(tau)[:columns] + 1e-5).all()
    return float(np.maximum(mu, 0).sum() / exact.sum())


def random_edges(vertices: int, edges: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, vertices, (edges, 2))


def bipartite_edges() -> list[tuple[int, int]]:
    left, right = np.random.default_rng(1).integers(0, [[400], [200]], (2, 3_000))
    return [(int(u), 400 + int(v)) for u, v in zip(left, right, strict=True)]


def preferential_edges(vertices: int = 600) -> list[tuple[int, int]]:
    draw, ends = np.random.default_rng(2), [0, 1]
    for vertex in range(2, vertices):
        for other in draw.choice(ends, 3):
            ends += [vertex, int(other)]
    return list(zip(ends[::2], ends[1::2], strict=True))


GRAPHS: dict[str, tuple[int, Any]] = {
    "random": (600, random_edges(600, 2_400).tolist()),
    "weighted": (600, [(u, v, 10.0 ** (u % 3)) for u, v in random_edges(600, 2_400).tolist()]),
    "many components and lone vertices": (700, random_edges(600, 420).tolist()),
    "rings of five": (600, [(5 * ring + i, 5 * ring + (i + 1) % 5) for ring in range(120) for i in range(5)]),
    "disjoint edges": (600, [(2 * i, 2 * i + 1) for i in range(300)]),
    "bipartite": (600, bipartite_edges()),
    "preferential attachment": (600, preferential_edges()),
    "star with a random graph": (600, [(0, v) for v in range(1, 600)] + random_edges(600, 600).tolist()),
    "path": (600, [(v, v + 1) for v in range(599)]),
}


@pytest.mark.parametrize("tau", [0.25, 200.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_solve_large_captures_the_exact_eigenvalue_sum(create_sample: Any, name: str, tau: float) -> None:
    assert share_of_exact_sum(create_sample(*GRAPHS[name]), tau, 24) > MIN_SHARE


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, edges=st.integers(150, 1_500), columns=st.integers(1, 24), tau=st.sampled_from([0.01, 0.5, 300.0]))
def test_solve_large_captures_the_exact_eigenvalue_sum_of_random_graphs(
    random_sample: Any, seed: int, edges: int, columns: int, tau: float
) -> None:
    assert share_of_exact_sum(random_sample(seed, 300, edges), tau, columns) > MIN_SHARE


@pytest.mark.parametrize("name", ["star", "complete"])
def test_solve_large_handles_spectra_of_few_values(create_sample: Any, name: str) -> None:
    edges = [(0, v) for v in range(1, 100)] if name == "star" else [(u, v) for u in range(100) for v in range(u)]
    sample = create_sample(100, edges)
    mu, vectors = solve_large(Operator(sample.adjacency, 100, 0.25), 5)
    np.testing.assert_allclose(mu, sample.spectrum(0.25)[:5], atol=1e-4)
    assert np.isfinite(vectors).all()
