from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.graph.adjacency import Totals
from ripplevec.views import operators
from ripplevec.views.gpu import usable_cupy
from ripplevec.views.operators import (
    DEVICE_VARIABLE,
    Operator,
    add_in_block_order,
    make_operator,
    sum_over_blocks,
    weighted_cross_products,
)
from ripplevec.views.spectral import SpectralView

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=SEEDS, edges=st.integers(1, 80), tau=st.floats(0.01, 20))
def test_operator_agrees_with_dense_matrices(random_sample: Any, seed: int, edges: int, tau: float) -> None:
    sample, draw = random_sample(seed, edges=edges), np.random.default_rng(seed)
    operator = Operator(sample.adjacency, sample.rows, tau)
    block, other = draw.standard_normal((2, sample.rows, 4)) * sample.active[:, None]
    row_weights = sample.row_weights(tau)
    assert operator.active_count == sample.active.sum()
    np.testing.assert_allclose(operator.row_weights, row_weights, rtol=1e-12)
    np.testing.assert_allclose(operator.center(block), sample.degree @ block / max(operator.active_count, 1), atol=1e-9)
    np.testing.assert_allclose(operator.apply(block), sample.operator_matrix(tau) @ block, atol=1e-9)
    np.testing.assert_allclose(operator.gram(block, other), block.T @ (row_weights[:, None] * other), atol=1e-8)
    np.testing.assert_allclose(operator.column_square_sums(block), (block**2).sum(axis=0), atol=1e-9)
    left, right = operator.gram(block, operator.apply(other)), operator.gram(operator.apply(block), other)
    operator.deflate(block)
    np.testing.assert_allclose(row_weights @ block, 0, atol=1e-8)
    assert not block[~sample.active].any()
    operator.deflate(other)
    left, right = operator.gram(block, operator.apply(other)), operator.gram(operator.apply(block), other)
    np.testing.assert_allclose(left, right, atol=1e-8)  # self-adjoint on deflated blocks


def test_transform_columns_multiplies_in_place(random_sample: Any) -> None:
    sample, draw = random_sample(0), np.random.default_rng(0)
    block, matrix = draw.standard_normal((30, 3)).astype(np.float32), draw.standard_normal((3, 3))
    expected = block @ matrix
    Operator(sample.adjacency, 30, 1.0).transform_columns(block, matrix)
    np.testing.assert_allclose(block, expected, atol=1e-5)


def test_clear_and_scale_work_in_place(random_sample: Any) -> None:
    sample = random_sample(0, edges=20)
    operator, block = Operator(sample.adjacency, 30, 1.0), np.ones((30, 2), np.float32)
    operator.clear_unusable_rows(block)
    assert block.tolist() == np.repeat(sample.active[:, None], 2, axis=1).tolist()
    operator.scale_columns(block, np.array([3.0, 5.0]))
    operator.scale_columns(block, np.array([2.0, 2.0]), np.divide)
    assert block[sample.active].tolist() == [[1.5, 2.5]] * int(sample.active.sum())


@given(columns=st.integers(1, 300), room=st.integers(0, 300), kind=st.sampled_from([np.float32, np.float64]))
def test_column_chunks_cover_all_columns_and_fit_the_workspace(
    random_sample: Any, columns: int, room: int, kind: Any
) -> None:
    operator, block = Operator(random_sample(0).adjacency, 30, 1.0), np.empty((30, columns), kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "WORKSPACE_BYTES", room * 30 * block.itemsize)
        chunks, workspace = operator.column_chunks(block), operator.allocate_workspace(block)
    assert [column for chunk in chunks for column in range(chunk.start, chunk.stop)] == list(range(columns))
    widths = [chunk.stop - chunk.start for chunk in chunks]
    assert workspace.shape == (30, max(widths))
    assert max(widths) <= max(room, operators.COLUMN_GROUP)
    assert len(chunks) == 1 or all(width % operators.COLUMN_GROUP == 0 for width in widths[:-1])
    assert len(chunks) == 1 or (len(chunks) - 1) * max(room // 16 * 16, 16) < columns  # no more chunks than needed


def test_make_noise_depends_on_the_seed_only(random_sample: Any) -> None:
    operator = Operator(random_sample(0).adjacency, 30, 1.0)
    assert operator.make_noise(1, 2, np.float32).tobytes() == operator.make_noise(1, 2, np.float32).tobytes()
    assert not np.array_equal(operator.make_noise(1, 2, np.float32), operator.make_noise(2, 2, np.float32))


@settings(max_examples=30)
@given(seed=SEEDS, edges=st.integers(20, 200), tau=st.floats(0.01, 300))
def test_spectrum_lower_bound_lies_below_the_spectrum(random_sample: Any, seed: int, edges: int, tau: float) -> None:
    sample = random_sample(seed, vertices=60, edges=edges)
    bound = Operator(sample.adjacency, sample.rows, tau).spectrum_lower_bound()
    assert -1 <= bound <= sample.spectrum(tau)[-1] + 0.02


@settings(max_examples=30)
@given(seed=SEEDS, edges=st.integers(20, 200), tau=st.floats(0.01, 300))
def test_spectrum_bounds_enclose_the_spectrum(random_sample: Any, seed: int, edges: int, tau: float) -> None:
    sample = random_sample(seed, vertices=60, edges=edges)
    (low, top), spectrum = Operator(sample.adjacency, sample.rows, tau).spectrum_bounds(), sample.spectrum(tau)
    # The start vector may nearly miss a component of two vertices; the error is small and hardly grows in a filter.
    assert -1 <= low <= spectrum[-1] + 0.06
    assert spectrum[0] - 0.06 <= top <= 1


@pytest.mark.parametrize("rank", [5, 40, 150, 400])
def test_estimate_spectrum_gives_the_eigenvalue_of_a_rank(random_sample: Any, rank: int) -> None:
    sample = random_sample(7, vertices=800, edges=4000, weighted=False)
    estimate, spectrum = Operator(sample.adjacency, sample.rows, 0.5).estimate_spectrum(), sample.spectrum(0.5)
    assert estimate.shares.sum() == pytest.approx(1)
    assert (np.diff(estimate.values) < 0).all()
    assert abs(estimate.quantile(rank / spectrum.size) - spectrum[rank - 1]) < 0.08
    assert estimate.quantile(2.0) == estimate.values[-1]


def test_spectrum_lower_bound_for_large_tau_is_tight(random_sample: Any) -> None:
    sample = random_sample(1, vertices=100, edges=400, weighted=False)
    bound, exact = Operator(sample.adjacency, 100, 200.0).spectrum_lower_bound(), sample.spectrum(200.0)[-1]
    assert -0.5 < exact < 0
    assert 1.5 * exact < bound <= exact + 1e-3


def test_operator_gives_the_same_bits_for_any_number_of_threads(
    random_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 7)
    monkeypatch.setattr(operators, "SUB_BLOCK_ROWS", 3)
    sample, draw = random_sample(2, vertices=100, edges=300), np.random.default_rng(0)
    block = draw.standard_normal((100, 4)).astype(np.float32)

    def run_all(threads: int) -> bytes:
        operator, rows = Operator(sample.adjacency, 100, 0.5, threads), block.copy()
        operator.deflate(rows)
        step = operator.apply(rows)
        operator.transform_columns(rows, np.arange(16.0).reshape(4, 4))
        parts = (
            rows,
            step,
            operator.gram(rows, step),
            operator.column_square_sums(rows),
            operator.make_noise(3, 2, np.float32),
        )
        parts += operator.gram(rows, rows), np.array(operator.spectrum_bounds())
        return b"".join(part.tobytes() for part in parts)

    assert run_all(1) == run_all(2) == run_all(3)


def test_add_in_block_order_adds_from_first_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 2)
    parts = {4: np.array([1e-20]), 0: np.array([1e20]), 2: np.array([-1e20])}
    assert add_in_block_order(parts, 5).tolist() == [1e-20]  # in any other order the small term is lost


@given(rows=st.integers(1, 40), block=st.integers(1, 12), sub_block=st.integers(1, 12), threads=st.integers(1, 3))
def test_sum_over_blocks_adds_every_row_once(rows: int, block: int, sub_block: int, threads: int) -> None:
    numbers = 2.0 ** np.arange(rows)  # exact in every order
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "BLOCK_ROWS", block)
        patch.setattr(operators, "SUB_BLOCK_ROWS", sub_block)
        assert (
            sum_over_blocks(lambda first, last: numbers[first:last].sum(keepdims=True), rows, threads) == 2.0**rows - 1
        )


def test_weighted_cross_products_of_no_rows_are_zero() -> None:
    assert weighted_cross_products(np.empty((0, 2)), np.empty((0, 3)), 1, np.empty(0)).tolist() == [
        [0, 0, 0],
        [0, 0, 0],
    ]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
def test_clear_unusable_rows_zeroes_invalid_rows(random_sample: Any, bad: float) -> None:
    sample = random_sample(0)
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = np.random.default_rng(0).standard_normal((sample.rows, 3)).astype(np.float32)
    block[2, 1] = bad
    cleared = block.copy()
    operator.clear_unusable_rows(cleared)
    kept = operator.active.copy()
    kept[2] = False
    assert np.array_equal(cleared, np.where(kept[:, None], block, 0))


def test_max_row_length_is_the_largest_length_and_propagates_nan(random_sample: Any) -> None:
    sample = random_sample(0)
    operator = Operator(sample.adjacency, sample.rows, 0.5, threads=2)
    block = np.random.default_rng(0).standard_normal((sample.rows, 3)).astype(np.float32)
    assert operator.max_row_length(block) == pytest.approx(np.linalg.norm(block.astype(float), axis=1).max())
    block[1, 1] = np.nan
    assert np.isnan(operator.max_row_length(block))


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    usable_cupy.cache_clear()


def operator_type(sample: Any, device: str) -> type:
    return type(make_operator(device, sample.adjacency, sample.rows, 0.5, 1))


def test_make_operator_by_default_uses_the_cpu(random_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    assert operator_type(random_sample(0), "auto") is operator_type(random_sample(0), "cpu") is Operator
    monkeypatch.setenv(DEVICE_VARIABLE, "cpu")
    assert operator_type(random_sample(0), "auto") is Operator


@pytest.mark.usefixtures("no_cupy")
def test_make_operator_without_cupy_raises_with_the_extra(random_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtraError, match=r"device=\"cuda\" needs .*pip install .*\[gpu\]'"):
        operator_type(random_sample(0), "cuda")
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda")
    with pytest.raises(MissingExtraError):
        operator_type(random_sample(0), "auto")
    assert operator_type(random_sample(0), "cpu") is Operator  # the view overrides the environment


def test_make_operator_with_an_unknown_device_raises(random_sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_VARIABLE, "abacus")
    with pytest.raises(InvalidValueError, match=f"{DEVICE_VARIABLE}: expected one of 'cpu', 'cuda', got 'abacus'"):
        operator_type(random_sample(0), "auto")


def test_make_operator_of_a_remote_graph_delegates_to_it() -> None:
    class RemoteGraph:
        def totals(self, rows: int) -> Totals:
            return Totals(endpoints=20, strength=40.0, active=5)

        def operator(self, tau: float) -> Any:
            return tau

    class FailingGraph(RemoteGraph):
        def operator(self, tau: float) -> Any:
            raise LookupError(tau)

    assert make_operator("cuda", RemoteGraph(), 7, 0.5, 1) == 0.5
    for view, tau in (
        (SpectralView(tau=0.5), 1.0),  # half the mean weight
        (SpectralView(tau_per_degree=0.5), 4.0),  # half the mean strength
    ):
        with pytest.raises(LookupError) as failure:
            view.start(FailingGraph(), 7, 2, threads=1)
        assert failure.value.args == (tau,)
