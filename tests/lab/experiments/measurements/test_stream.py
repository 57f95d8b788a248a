from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import (
    cluster,
    measure_aging,
    measure_anchor_cosines,
    score_at_end,
    score_on_arrival,
    stream,
)
from ripplevec.lab.experiments.measurements import base, check_trial, run_trial
from ripplevec.views.spectral import SpectralView

STREAM = {"kind": "stream", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8}


def test_stream_metrics_equal_separate_measurements(graph: Dataset) -> None:
    metrics = run_trial(STREAM).metrics
    result = stream(Embedder(dim=8, seed=3), graph, seed=3)
    cosines = measure_anchor_cosines(Embedder(dim=8, seed=3), graph, seed=3)
    assert metrics["current_micro"] == pytest.approx(100 * score_at_end(result).micro)
    assert metrics["current_macro"] == pytest.approx(100 * score_at_end(result).macro)
    assert metrics["arrival_micro"] == pytest.approx(100 * score_on_arrival(result).micro)
    assert metrics["nmi"] == pytest.approx(100 * cluster(result.final_vectors, result.labels).nmi)
    assert metrics["anchors"] == len(cosines) > 3
    assert metrics["anchor_cosine_min"] == pytest.approx(min(cosines))
    assert metrics["anchor_cosine_mean"] == pytest.approx(np.mean(cosines))
    age = measure_aging(result)
    assert metrics["ageing_end"] == pytest.approx(100 * age.end.micro)
    assert metrics["ageing_gain"] == pytest.approx(100 * (age.end.micro - age.beginning.micro))


def test_stream_with_batches_equals_batched_protocol(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, seed=3, batch=30)
    assert run_trial(STREAM | {"batch": 30}).metrics["arrival_micro"] == pytest.approx(
        100 * score_on_arrival(result).micro
    )


def test_stream_exact_embedding_uses_views_of_stream() -> None:
    views = [{"tau": 2.0, "diffusion": 1.0}]
    trial = run_trial(STREAM | {"views": views, "depth": 2})
    metrics, parameters = trial.metrics, trial.parameters
    assert metrics["exact_micro"] > 70
    assert metrics["short_of_exact"] == pytest.approx(metrics["exact_micro"] - metrics["current_micro"])
    assert (parameters["views"][0]["tau"], parameters["depth"]) == (2.0, 2)


def test_stream_each_view_changes_default_views() -> None:
    own = run_trial(STREAM).parameters["views"]
    changed = run_trial(STREAM | {"each_view": {"ridge": 7.0}}).parameters["views"]
    assert [view | {"ridge": 7.0} for view in own] == changed
    assert own != changed


@pytest.mark.parametrize(
    ("given", "gone"),
    [("tau", "tau_per_degree"), ("tau_per_degree", "tau"), ("diffusion", "tail"), ("tail", "diffusion")],
)
def test_stream_community_view_changes_first_view_and_unsets_alternatives(
    given: str, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = planted_partition(communities=4, size=30, inside=20, elsewhere=10)
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: dense)
    own = run_trial(STREAM).parameters["views"]
    assert len(own) > 1
    first, *rest = run_trial(STREAM | {"community_view": {given: 0.7}}).parameters["views"]
    assert (first[given], first[gone]) == (0.7, None)
    assert rest == own[1:]


def test_stream_without_anchors_has_no_cosines() -> None:
    metrics = run_trial(STREAM | {"anchor_growth": 0}).metrics
    assert metrics["anchors"] == 0
    assert "anchor_cosine_min" not in metrics


def test_stream_accepts_rule_paper() -> None:
    assert run_trial(STREAM | {"rule": "paper"}).parameters["views"] == "auto"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dim": 0}, "dim: expected"),
        ({"deep": 2}, "parameters: expected those of the kind.*'deep'"),
        ({"each_view": {"rigde": 1}}, "parameters: expected.*'rigde'"),
        ({"views": [{"tau": -1}]}, "SpectralView.tau"),
        ({"start": None}, "start: expected a share"),
    ],
)
def test_check_trial_with_invalid_stream_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(STREAM | change)


RITZ = {"kind": "ritz", "dataset": "planted", "seed": 3, "start": 0.5, "marks": [0.7, 1.0], "dim": 8}
RITZ_VIEWS: list[dict[str, float]] = [{"tau": 0.5}, {"tau": 9.0, "share": 3}]


def dense_spectrum_share(model: Embedder, tau: float, columns: slice) -> float:
    """Ritz values over eigenvalues of S = (D+τ)^-½ (A + (τ/n) 11ᵀ) (D+τ)^-½ without its trivial one, in dense NumPy."""
    engine = model.engine
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
def test_ritz_share_of_view_equals_dense_computation(graph: Dataset, anchor_growth: float) -> None:
    metrics = run_trial(RITZ | {"views": RITZ_VIEWS, "anchor_growth": anchor_growth}).metrics
    model = Embedder(dim=8, seed=3, anchor_growth=anchor_growth, views=[SpectralView(**view) for view in RITZ_VIEWS])
    stream(model, graph, 0.5, 3)
    assert model.degree(model.ids).min() > 0
    assert len(model) == 240
    first, second = dense_spectrum_share(model, 0.5, slice(0, 2)), dense_spectrum_share(model, 9.0, slice(2, 8))
    assert metrics["view_1@100"] == pytest.approx(first, rel=1e-4)
    assert metrics["view_2@100"] == pytest.approx(second, rel=1e-4)
    assert metrics["lowest@100"] == min(metrics["view_1@100"], metrics["view_2@100"])
    assert {"view_1@70", "view_2@70", "lowest@70"} < metrics.keys()
    assert (metrics["anchors"] > 0) == (anchor_growth > 0)


def test_ritz_share_is_higher_with_anchors() -> None:
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
def test_check_trial_with_invalid_ritz_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(RITZ | change)
