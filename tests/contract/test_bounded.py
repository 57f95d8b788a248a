"""No valid stream makes rows grow without bound, and no anchor makes good vectors worse."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.rules import anchor
from ripplevec.views.spectral import SpectralView


def random_attachment(vertices: int = 2_000, edges: int = 3) -> np.ndarray:
    rng, targets = np.random.default_rng(1), np.arange(1, vertices)
    return np.stack(
        [np.repeat(targets, edges), (rng.random((vertices - 1, edges)) * targets[:, None]).astype(int).ravel()], 1
    )


def communities(vertices: int = 1_200) -> np.ndarray:
    """Return edges of six communities, given by the vertex modulo 6."""
    rng, every = np.random.default_rng(2), np.arange(vertices)
    within = (every[:, None] + 6 * rng.integers(1, vertices // 6, (vertices, 5))) % vertices
    across = rng.integers(0, vertices, (vertices, 1))
    return np.stack([np.repeat(every, 6), np.concatenate([within, across], axis=1).ravel()], 1)


def chain(length: int, back: int) -> list[list[tuple[str, Any]]]:
    """Return arrivals with edges to the `back` arrivals before them; the first ones to vertices 0, 1, …."""
    return [
        [(f"p{i}", f"p{i - step}" if i >= step else step - 1) for step in range(1, back + 1)] for i in range(length)
    ]


def assert_bounded(model: Embedder) -> None:
    engine = model.engine
    rows, coordinates = engine.store.vectors[: engine.graph.row_count].astype(np.float64), engine.rule.coordinates
    assert np.isfinite(rows).all()
    for part, bound in zip(coordinates.parts, coordinates.length_bounds, strict=True):
        assert np.linalg.norm(rows[:, part], axis=1).max() <= bound * 1.001


def purity(model: Embedder, vertices: int) -> float:
    """Return the share of nearest neighbors in the same community."""
    near = [(vertex, other) for vertex in range(0, vertices, 40) for other, _ in model.nearest(vertex)]
    return float(np.mean([isinstance(other, int) and other % 6 == vertex % 6 for vertex, other in near]))


@pytest.mark.parametrize("storage", ["float32", "float16"])
@pytest.mark.parametrize("growth", ["auto", 0])
@pytest.mark.parametrize("back", [1, 2])
def test_chain_of_arrivals_stays_bounded_and_zeroes_no_vector(storage: str, growth: Any, back: int) -> None:
    model = Embedder(dim=16, storage=storage, anchor_growth=growth).fit(communities())
    for batch in chain(400, back):
        model.partial_fit(batch)
    assert_bounded(model)
    model.anchor()
    assert_bounded(model)
    vectors = model.to_numpy()
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()
    assert len(model.nearest(5)) == 10
    assert purity(model, 1_200) > 0.9


def test_chain_in_one_batch_stays_bounded() -> None:
    model = Embedder(dim=16, threads=2).fit(random_attachment())
    model.partial_fit([edge for batch in chain(3_000, 2) for edge in batch])
    assert_bounded(model)
    assert model.to_numpy().any(axis=1).all()


@pytest.mark.parametrize("weights", [(1e30, 1.0), (1e-30, 1.0), (1e30, 1e-30)])
def test_chain_with_extreme_weights_stays_bounded(weights: tuple[float, float]) -> None:
    model = Embedder(dim=8, views=[SpectralView(tau=0.5), SpectralView(tau_per_degree=16.0)]).fit(
        random_attachment(500)
    )
    for number, batch in enumerate(chain(200, 2)):
        model.partial_fit([(*edge, weights[number % 2]) for edge in batch])
        assert_bounded(model)


def test_chain_of_arrivals_brings_the_next_anchor_forward() -> None:
    """Shortened rows count like arrivals: an anchor comes before the graph has grown by `anchor_growth`."""
    model = Embedder(dim=16, anchor_pace="immediate").fit(random_attachment())
    model.partial_fit([])
    arrivals = 0
    while not model.partial_fit(chain(400, 2)[arrivals]).anchored:
        arrivals += 1
        assert arrivals < 100, "no anchor within 5 % of growth"
    assert arrivals < 90
    assert model.diagnostics()["rows_shortened"] == 0  # reset by the anchor


def stream(model: Embedder) -> Embedder:
    for number in range(30):
        model.add_vertex(f"n{number}", [number, number + 1, number + 2])
    return model


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
def test_anchor_repairs_nonfinite_rows(bad: float) -> None:
    good, model = (stream(Embedder(dim=8, anchor_growth=0).fit(random_attachment(600))) for _ in range(2))
    model.engine.store.vectors[[3, 100, 400]] = bad
    good.anchor()
    model.anchor()
    assert_bounded(model)
    assert np.sum(good.to_numpy() * model.to_numpy(), axis=1).mean() > 0.95
    assert model.to_numpy().any(axis=1).all()
    assert model.diagnostics()["anchors_refused"] == 0


@pytest.mark.parametrize("pace", ["immediate", "gradual"])
def test_anchor_repairs_zero_vectors(pace: str) -> None:
    model = stream(Embedder(dim=8, anchor_pace=pace).fit(communities(600)))
    model.engine.store.vectors[:] = 0
    for number in range(60):
        model.add_vertex(f"m{number}", [number, number + 7])
    assert model.to_numpy().any(axis=1).mean() > 0.9
    assert purity(model, 600) > 0.9


def test_anchor_without_a_usable_result_keeps_the_vectors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If neither the correction nor the solution from scratch is finite, batches continue with the current vectors."""
    model = stream(Embedder(dim=8, anchor_pace="immediate").fit(random_attachment(600)))

    def with_bad_row(solve: Any) -> Any:
        def solve_badly(*arguments: Any, **options: Any) -> Any:
            basis = solve(*arguments, **options)
            basis.rows[7] = np.nan
            object.__setattr__(basis, "longest", np.nan)
            return basis

        return solve_badly

    for name in ("start", "anchor"):
        monkeypatch.setattr(SpectralView, name, with_bad_row(getattr(SpectralView, name)))
    before, ids = model.to_numpy(), model.ids
    anchored = [model.partial_fit([(f"m{number}", number)]).anchored for number in range(60)]
    after = model.vectors(ids)
    assert not any(anchored)
    assert np.isfinite(after).all()
    assert np.sum(before * after, axis=1).mean() > 0.9
    assert not model.anchor().anchored
    assert model.diagnostics()["anchors_refused"] >= 1
    assert "anchor refused, vectors kept" in caplog.text
    monkeypatch.undo()
    assert len(model.anchor())
    assert_bounded(model)


def test_anchor_that_lost_the_spectrum_solves_from_scratch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = stream(Embedder(dim=8).fit(random_attachment(600)))
    expected = stream(Embedder(dim=8).fit(random_attachment(600)))
    correct_bases = anchor.correct_bases

    def lose_spectrum(*arguments: Any, **options: Any) -> Any:
        bases = correct_bases(*arguments, **options)
        for basis in bases:
            basis.rows[:, 1:] = 0
            basis.mu[1:] = 0
        return bases

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(anchor, "correct_bases", lose_spectrum)
        model.anchor()
    expected.anchor()
    assert "anchor result unusable, solving from scratch" in caplog.text
    actual, reference = model.to_numpy(), expected.to_numpy()
    assert np.corrcoef((actual @ actual.T).ravel(), (reference @ reference.T).ravel())[0, 1] > 0.95
