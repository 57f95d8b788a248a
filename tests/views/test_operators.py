from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.views import operators
from ripplevec.views.operators import Operator, cross, in_order, total

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=SEEDS, edges=st.integers(1, 80), tau=st.floats(0.01, 20))
def test_everything_agrees_with_dense_matrices(randomly: Any, seed: int, edges: int, tau: float) -> None:
    sample, draw = randomly(seed, edges=edges), np.random.default_rng(seed)
    operator = Operator(sample.adjacency, sample.rows, tau)
    block, other = draw.standard_normal((2, sample.rows, 4)) * sample.active[:, None]
    measure = sample.measure(tau)
    assert operator.active_count == sample.active.sum()
    np.testing.assert_allclose(operator.row_weights, measure, rtol=1e-12)
    np.testing.assert_allclose(operator.center(block), sample.degree @ block / max(operator.active_count, 1), atol=1e-9)
    np.testing.assert_allclose(operator.apply(block), sample.walk(tau) @ block, atol=1e-9)
    np.testing.assert_allclose(operator.gram(block, other), block.T @ (measure[:, None] * other), atol=1e-8)
    np.testing.assert_allclose(operator.column_square_sums(block), (block**2).sum(axis=0), atol=1e-9)
    left, right = operator.gram(block, operator.apply(other)), operator.gram(operator.apply(block), other)
    operator.deflate(block)
    np.testing.assert_allclose(measure @ block, 0, atol=1e-8)
    assert not block[~sample.active].any()
    operator.deflate(other)
    left, right = operator.gram(block, operator.apply(other)), operator.gram(operator.apply(block), other)
    np.testing.assert_allclose(left, right, atol=1e-8)  # self-adjoint once the constant is out


def test_a_turn_is_a_product_in_place(randomly: Any) -> None:
    sample, draw = randomly(0), np.random.default_rng(0)
    block, turn = draw.standard_normal((30, 3)).astype(np.float32), draw.standard_normal((3, 3))
    expected = block @ turn
    Operator(sample.adjacency, 30, 1.0).transform_columns(block, turn)
    np.testing.assert_allclose(block, expected, atol=1e-5)


def test_scaling_and_clearing_are_done_in_place(randomly: Any) -> None:
    sample = randomly(0, edges=20)
    operator, block = Operator(sample.adjacency, 30, 1.0), np.ones((30, 2), np.float32)
    operator.clear_unusable_rows(block)
    assert block.tolist() == np.repeat(sample.active[:, None], 2, axis=1).tolist()
    operator.scale_columns(block, np.array([3.0, 5.0]))
    operator.scale_columns(block, np.array([2.0, 2.0]), np.divide)
    assert block[sample.active].tolist() == [[1.5, 2.5]] * int(sample.active.sum())


@given(columns=st.integers(1, 300), room=st.integers(0, 300), kind=st.sampled_from([np.float32, np.float64]))
def test_parts_are_even_cover_everything_and_fit(randomly: Any, columns: int, room: int, kind: Any) -> None:
    operator, block = Operator(randomly(0).adjacency, 30, 1.0), np.empty((30, columns), kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "WORKSPACE_BYTES", room * 30 * block.itemsize)
        parts, spare = operator.column_chunks(block), operator.allocate_workspace(block)
    assert [column for part in parts for column in range(part.start, part.stop)] == list(range(columns))
    widths = [part.stop - part.start for part in parts]
    assert spare.shape == (30, max(widths))
    assert max(widths) <= max(room, operators.TOGETHER)
    assert len(parts) == 1 or all(width % operators.TOGETHER == 0 for width in widths[:-1])
    assert len(parts) == 1 or (len(parts) - 1) * max(room // 16 * 16, 16) < columns  # no more parts than needed


def test_noise_depends_on_the_seed_alone(randomly: Any) -> None:
    operator = Operator(randomly(0).adjacency, 30, 1.0)
    assert operator.make_noise(1, 2, np.float32).tobytes() == operator.make_noise(1, 2, np.float32).tobytes()
    assert not np.array_equal(operator.make_noise(1, 2, np.float32), operator.make_noise(2, 2, np.float32))


@settings(max_examples=30)
@given(seed=SEEDS, edges=st.integers(20, 200), tau=st.floats(0.01, 300))
def test_lowest_lies_below_the_spectrum(randomly: Any, seed: int, edges: int, tau: float) -> None:
    sample = randomly(seed, vertices=60, edges=edges)
    lowest = Operator(sample.adjacency, sample.rows, tau).spectrum_lower_bound()
    assert -1 <= lowest <= sample.spectrum(tau)[-1] + 0.02


@settings(max_examples=30)
@given(seed=SEEDS, edges=st.integers(20, 200), tau=st.floats(0.01, 300))
def test_the_spectrum_lies_between_its_ends(randomly: Any, seed: int, edges: int, tau: float) -> None:
    sample = randomly(seed, vertices=60, edges=edges)
    (low, top), spectrum = Operator(sample.adjacency, sample.rows, tau).spectrum_bounds(), sample.spectrum(tau)
    # One vector may hardly see a component of two vertices; what is missed is little, and grows little in a filter.
    assert -1 <= low <= spectrum[-1] + 0.06
    assert spectrum[0] - 0.06 <= top <= 1


def test_lowest_is_near_where_tau_is_large(randomly: Any) -> None:
    sample = randomly(1, vertices=100, edges=400, weighted=False)
    lowest, exact = Operator(sample.adjacency, 100, 200.0).spectrum_lower_bound(), sample.spectrum(200.0)[-1]
    assert -0.5 < exact < 0
    assert 1.5 * exact < lowest <= exact + 1e-3


def test_threads_and_blocks_share_the_work_without_changing_a_bit(
    randomly: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 7)
    monkeypatch.setattr(operators, "SUB_BLOCK_ROWS", 3)
    sample, draw = randomly(2, vertices=100, edges=300), np.random.default_rng(0)
    block = draw.standard_normal((100, 4)).astype(np.float32)

    def everything(threads: int) -> bytes:
        operator, own = Operator(sample.adjacency, 100, 0.5, threads), block.copy()
        operator.deflate(own)
        step = operator.apply(own)
        operator.transform_columns(own, np.arange(16.0).reshape(4, 4))
        parts = (
            own,
            step,
            operator.gram(own, step),
            operator.column_square_sums(own),
            operator.make_noise(3, 2, np.float32),
        )
        parts += operator.gram(own, own), np.array(operator.spectrum_bounds())
        return b"".join(part.tobytes() for part in parts)

    assert everything(1) == everything(2) == everything(3)


def test_sums_of_blocks_are_taken_first_to_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 2)
    parts = {4: np.array([1e-20]), 0: np.array([1e20]), 2: np.array([-1e20])}
    assert in_order(parts, 5).tolist() == [1e-20]  # in any other order the small one is lost


@given(rows=st.integers(1, 40), block=st.integers(1, 12), at_once=st.integers(1, 12), threads=st.integers(1, 3))
def test_a_total_takes_every_row_once(rows: int, block: int, at_once: int, threads: int) -> None:
    numbers = 2.0 ** np.arange(rows)  # exact in every order
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "BLOCK_ROWS", block)
        patch.setattr(operators, "SUB_BLOCK_ROWS", at_once)
        assert total(lambda first, last: numbers[first:last].sum(keepdims=True), rows, threads) == 2.0**rows - 1


def test_a_product_over_no_rows_is_zero() -> None:
    assert cross(np.empty((0, 2)), np.empty((0, 3)), 1, np.empty(0)).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e30])
def test_rows_that_no_step_can_have_made_are_cleared(randomly: Any, bad: float) -> None:
    sample = randomly(0)
    operator = Operator(sample.adjacency, sample.rows, 0.5)
    block = np.random.default_rng(0).standard_normal((sample.rows, 3)).astype(np.float32)
    block[2, 1] = bad
    cleared = block.copy()
    operator.clear_unusable_rows(cleared)
    kept = operator.active.copy()
    kept[2] = False
    assert np.array_equal(cleared, np.where(kept[:, None], block, 0))


def test_longest_row_is_the_largest_length_and_nan_where_an_entry_is(randomly: Any) -> None:
    sample = randomly(0)
    operator = Operator(sample.adjacency, sample.rows, 0.5, threads=2)
    block = np.random.default_rng(0).standard_normal((sample.rows, 3)).astype(np.float32)
    assert operator.max_row_length(block) == pytest.approx(np.linalg.norm(block.astype(float), axis=1).max())
    block[1, 1] = np.nan
    assert np.isnan(operator.max_row_length(block))
