from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import stream
from ripplevec.lab.experiments.measurements import run_trial
from ripplevec.views.spectral import SpectralView

RITZ = {"kind": "ritz", "dataset": "planted", "seed": 3, "start": 0.5, "marks": [0.7, 1.0], "dim": 8}
VIEWS: list[dict[str, float]] = [{"tau": 0.5}, {"tau": 9.0, "share": 3}]


def by_hand(model: Embedder, tau: float, columns: slice) -> float:
    """Ritz values over eigenvalues of S = (D+τ)^-½ (A + (τ/n) 11ᵀ) (D+τ)^-½ without its trivial one, in dense NumPy."""
    engine = model._engine
    rows = engine.graph.row_count
    adjacency = engine.graph.adjacency.to_csr().toarray()[:rows, :rows]
    measure = adjacency.sum(axis=1) + tau * adjacency.sum() / (adjacency > 0).sum()
    root, size = np.sqrt(measure), len(measure)
    tau = measure[0] - adjacency[0].sum()
    trivial = root / np.linalg.norm(root)
    symmetric = (adjacency + tau / size) / np.outer(root, root) - np.outer(trivial, trivial)
    block = root[:, None] * engine.store.vectors[:rows, columns]
    basis = np.linalg.qr(block - np.outer(trivial, trivial @ block))[0]
    count = basis.shape[1]
    return float(np.trace(basis.T @ symmetric @ basis) / np.linalg.eigvalsh(symmetric)[-count:].sum())


@pytest.mark.parametrize("anchor_growth", [0, 0.05])
def test_the_share_of_every_view_is_that_of_dense_matrices(graph: Dataset, anchor_growth: float) -> None:
    figures = run_trial(RITZ | {"views": VIEWS, "anchor_growth": anchor_growth}).metrics
    model = Embedder(dim=8, seed=3, anchor_growth=anchor_growth, views=[SpectralView(**view) for view in VIEWS])
    stream(model, graph, 0.5, 3)
    assert np.all(model._engine.graph.adjacency.links.degree[:240] > 0)
    first, second = by_hand(model, 0.5, slice(0, 2)), by_hand(model, 9.0, slice(2, 8))
    assert figures["view_1@100"] == pytest.approx(first, rel=1e-4)
    assert figures["view_2@100"] == pytest.approx(second, rel=1e-4)
    assert figures["lowest@100"] == min(figures["view_1@100"], figures["view_2@100"])
    assert {"view_1@70", "view_2@70", "lowest@70"} < figures.keys()
    assert (figures["anchors"] > 0) == (anchor_growth > 0)


def test_anchors_keep_more_of_it() -> None:
    kept, lost = (run_trial(RITZ | {"anchor_growth": growth}).metrics["lowest@100"] for growth in (0.05, 0))
    assert lost < kept <= 1 + 1e-6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"marks": None}, "marks: expected"),
        ({"dim": 0}, "dim: expected"),
        ({"deep": 1}, "parameters: expected.*'deep'"),
        ({"rule": "paper"}, "rule: expected.*ripple"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(RITZ | change)
