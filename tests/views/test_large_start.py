"""Starts on large graphs, on graphs small enough for a dense solver: their Ritz sums are close to the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.views import large_start, operators
from ripplevec.views.large_start import is_large, solve_large
from ripplevec.views.operators import Operator
from ripplevec.views.recipes import RECIPES
from ripplevec.views.solvers import solve_leading_eigenpairs
from ripplevec.views.spectral import SpectralView

MIN_SHARE = 0.999  # of the exact eigenvalue sum, on the graphs below
MIN_SHARE_OF_ANY = 0.995  # on any random graph: the iteration stops while the sum still changes by up to 2 %
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
    assert share_of_exact_sum(random_sample(seed, 300, edges), tau, columns) > MIN_SHARE_OF_ANY


@pytest.mark.parametrize("name", ["star", "complete"])
def test_solve_large_handles_spectra_of_few_values(create_sample: Any, name: str) -> None:
    edges = [(0, v) for v in range(1, 100)] if name == "star" else [(u, v) for u in range(100) for v in range(u)]
    sample = create_sample(100, edges)
    mu, vectors = solve_large(Operator(sample.adjacency, 100, 0.25), 5)
    np.testing.assert_allclose(mu, sample.spectrum(0.25)[:5], atol=1e-4)
    assert np.isfinite(vectors).all()


def test_solve_large_replaces_columns_that_lost_rank(create_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A far too strong first filter leaves only the strongest directions, in float32."""
    monkeypatch.setattr(large_start, "MAX_GAIN_RATIO", 1e30)
    monkeypatch.setattr(large_start, "DEGREE", 60)
    sample = create_sample(*GRAPHS["star with a random graph"])
    assert share_of_exact_sum(sample, 200.0, 24) > MIN_SHARE


def test_solve_large_gives_the_same_bits_for_any_number_of_threads(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 64)
    monkeypatch.setattr(operators, "SUB_BLOCK_ROWS", 16)
    sample = create_sample(*GRAPHS["many components and lone vertices"])

    def solve(threads: int) -> list[bytes]:
        return [part.tobytes() for part in solve_large(Operator(sample.adjacency, sample.rows, 0.25, threads), 12)]

    assert solve(1) == solve(2) == solve(3)


def test_solve_large_takes_few_passes_and_reports_them(create_sample: Any) -> None:
    reports: list[tuple[str, float]] = []
    sample = create_sample(*GRAPHS["random"])
    solve_large(Operator(sample.adjacency, sample.rows, 0.25), 24, lambda step, share: reports.append((step, share)))
    assert reports == [("start", 0.5), ("start", 0.75)]


def test_start_solves_small_graphs_to_convergence_and_large_ones_briefly(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = create_sample(*GRAPHS["preferential attachment"])
    view = SpectralView(tau=0.25)

    def values() -> bytes:
        return view.start(sample.adjacency, sample.rows, 8, threads=1).mu.tobytes()

    def solved_by(solve: Any) -> bytes:
        operator = view._make_operator(sample.adjacency, sample.rows, 1)
        return bytes(solve(operator, 8)[0].tobytes())

    assert values() == solved_by(solve_leading_eigenpairs)
    monkeypatch.setattr(large_start, "MIN_VERTICES", sample.rows - 1)
    assert values() == solved_by(solve_large) != solved_by(solve_leading_eigenpairs)


def test_is_large_requires_more_vertices_than_columns(community_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = community_sample()  # 120 vertices
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    assert not is_large(operator, 4)
    monkeypatch.setattr(large_start, "MIN_VERTICES", 0)
    assert is_large(operator, 49)
    assert not is_large(operator, 50)


@pytest.mark.parametrize("view", [*RECIPES["communities+strong-hubs"], *RECIPES["sparse"]])
def test_anchor_after_a_large_start_finds_little_more(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch, view: SpectralView
) -> None:
    monkeypatch.setattr(large_start, "MIN_VERTICES", 0)
    sample = create_sample(*GRAPHS["preferential attachment"])
    basis = view.start(sample.adjacency, sample.rows, 16, threads=1)
    anchored = view.anchor(sample.adjacency, basis.rows.copy(), basis.mu, seed=0, threads=1)
    assert anchored.mu.sum() < 1.001 * basis.mu.sum()


@pytest.mark.parametrize("parameters", [{}, {"directed": True}, {"storage": "float16"}, {"dim": 31}])
def test_embedder_after_a_large_start_equals_one_that_converged(
    create_sample: Any, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any]
) -> None:
    """Clear communities, in a dense graph with two views: cosines between vertices agree."""
    draw = np.random.default_rng(3)
    src = np.repeat(np.arange(1_000), 10)
    inside = src % 20 + 20 * draw.integers(0, 50, src.size)
    dst = np.where(draw.random(src.size) < 0.8, inside, draw.integers(0, 1_000, src.size))
    edges = np.stack([src, dst], axis=1)[src != dst]

    def cosines() -> NDArray[np.float64]:
        vectors = Embedder(**{"dim": 24, "seed": 1, **parameters}).fit(edges).to_numpy().astype(np.float64)
        return vectors @ vectors.T

    expected = cosines()
    monkeypatch.setattr(large_start, "MIN_VERTICES", 0)
    found = cosines()
    assert not np.array_equal(found, expected)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98
