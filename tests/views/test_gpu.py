"""The GPU operator agrees with the CPU operator up to rounding; skipped without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.errors import RipplevecError
from ripplevec.views import gpu, large_start, operators
from ripplevec.views.operators import Operator
from ripplevec.views.recipes import RECIPES
from ripplevec.views.spectral import SpectralView

try:
    gpu.usable_cupy()
except RipplevecError as reason:
    pytest.skip(str(reason), allow_module_level=True)

from ripplevec.views.gpu import GpuOperator


@pytest.fixture
def both(random_sample: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Operator, GpuOperator]:
    monkeypatch.setattr(gpu, "HUB_DEGREE", 6)  # some rows are hubs
    monkeypatch.setattr(gpu, "CHUNK_ROWS", 300)
    sample = random_sample(3, vertices=1000, edges=3000)
    assert (sample.adjacency.links.degree[:1000] > 6).any()
    assert not sample.active.all()
    return tuple(kind(sample.adjacency, 1000, 0.5) for kind in (Operator, GpuOperator))  # type: ignore[return-value]


@pytest.mark.parametrize("columns", [1, 31, 96, 130, 300])
def test_gpu_operator_agrees_with_cpu_in_every_operation(both: tuple[Operator, GpuOperator], columns: int) -> None:
    draw, factors = np.random.default_rng(columns), (0.7, -0.3, -1.0)
    source, target = draw.standard_normal((2, 1000, columns)).astype(np.float32)
    matrix, scale = draw.standard_normal((columns, columns)), draw.uniform(1, 2, columns)
    source[5], source[700] = np.nan, 1e30  # cleared

    def run_all(operator: Operator) -> list[Any]:
        left, right = operator.to_device(source.copy()), operator.to_device(target.copy())
        operator.clear_unusable_rows(left)
        operator.deflate(left)
        operator.combine(left, right, factors)
        numbers = (
            operator.center(left),
            operator.gram(left, right),
            operator.column_norms(left),
            operator.column_square_sums(right),
        )
        operator.transform_columns(left, matrix)
        operator.scale_columns(left, scale)
        operator.scale_columns(right, scale, np.divide)
        blocks = left, right, operator.apply(right), operator.make_noise(3, columns, np.float32)
        return [
            *numbers,
            np.array([*operator.spectrum_bounds(), operator.max_row_length(left)]),
            *map(operator.to_host, blocks),
        ]

    for here, there in zip(*map(run_all, both), strict=True):
        assert isinstance(there, np.ndarray)
        np.testing.assert_allclose(there, here, atol=1e-5 * np.abs(here).max())


@pytest.mark.parametrize("view", RECIPES["communities+strong-hubs"])
@pytest.mark.parametrize("workspace_bytes", [0, operators.WORKSPACE_BYTES])
def test_anchor_on_gpu_agrees_with_cpu(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch, view: SpectralView, workspace_bytes: int
) -> None:
    monkeypatch.setattr(operators, "WORKSPACE_BYTES", workspace_bytes)
    sample = community_sample(groups=8, size=100)
    rows = Operator(sample.adjacency, sample.rows, 1.0).make_noise(5, 20, np.float32)
    rows[:, 4] = 0

    def anchored(device: str) -> Any:
        monkeypatch.setenv("RIPPLEVEC_DEVICE", device)
        return view.anchor(sample.adjacency, rows.copy(), np.full(20, 0.3), seed=1, threads=1)

    here, there = anchored("cpu"), anchored("cuda")
    np.testing.assert_allclose(there.mu, here.mu, atol=1e-5)
    np.testing.assert_allclose(there.rows @ there.rows.T, here.rows @ here.rows.T, atol=1e-3)
    assert there.rows.tobytes() == anchored("cuda").rows.tobytes()


@pytest.mark.parametrize("min_large", [large_start.MIN_VERTICES, 0])
@pytest.mark.parametrize("size", [20, 150])
def test_start_on_gpu_agrees_with_cpu(
    community_sample: Any, monkeypatch: pytest.MonkeyPatch, size: int, min_large: int
) -> None:
    monkeypatch.setattr(large_start, "MIN_VERTICES", min_large)
    sample = community_sample(groups=5, size=size)
    bases = [
        SpectralView(tau=0.5, diffusion=1, device=device).start(sample.adjacency, sample.rows, 4, threads=1)
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(bases[1].mu, bases[0].mu, atol=1e-4)
    np.testing.assert_allclose(np.abs(bases[1].rows), np.abs(bases[0].rows), atol=1e-2)
