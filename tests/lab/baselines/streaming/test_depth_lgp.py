from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.lab.baselines.streaming.depth_lgp import DepthLGP

pytest.importorskip("torch")

SMALL = {"dim": 8, "hidden": 16, "steps": 100}


def test_depth_lgp_latent_row_is_conditional_mean_of_gaussian_process(small_stream: Any) -> None:
    method = DepthLGP(**SMALL)
    method.start(small_stream.graph)
    eta, zeta, inner, outer = method._parameters
    method._parameters = (eta, zeta, inner, np.zeros_like(outer))  # h itself, without the network
    known, rows = small_stream.graph.toarray(), method.vectors().astype(np.float64)
    link = np.zeros(len(known))
    link[[2, 5, 11]] = 1
    grown = np.block([[known, link[:, None]], [link[None], np.zeros((1, 1))]])
    square = grown @ grown
    np.fill_diagonal(square, 0)
    precision = np.eye(len(grown)) + sum(
        weight * (np.diag(matrix.sum(axis=1)) - matrix) for weight, matrix in ((eta, grown), (zeta, square))
    )
    expected = -(precision[-1, :-1] @ rows) / precision[-1, -1]
    np.testing.assert_allclose(method.preview([2, 5, 11]), expected, rtol=1e-3, atol=1e-5)


def test_depth_lgp_training_lowers_loss(small_stream: Any) -> None:
    method = DepthLGP(**SMALL)
    method.start(small_stream.graph)
    assert method.losses[-1] < 0.7 * method.losses[0]


def test_depth_lgp_sums_follow_arrivals(small_stream: Any) -> None:
    method = small_stream.run(DepthLGP(**SMALL))
    np.testing.assert_allclose(method._sums.rows, small_stream.final @ method.vectors(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(method._degrees.rows[:, 0], small_stream.final.sum(axis=1))
