from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import (
    attach_by_degree,
    attach_within_communities,
    drifting_communities,
    growing_communities,
    nested_communities,
    planted_partition,
    preferential_attachment,
    purchases,
    rmat,
)


def share_inside(dataset: Dataset) -> float:
    ends = dataset.labels[dataset.edges]
    return float(np.mean(ends[:, 0] == ends[:, 1]))


def test_growing_communities_have_mostly_internal_edges() -> None:
    dataset = growing_communities(5_000, communities=10, edges_per_vertex=5, noise=0.1)
    assert (dataset.vertices, dataset.classes) == (5_000, 10)
    assert 9.0 < dataset.mean_degree <= 10.0
    assert share_inside(dataset) == pytest.approx(0.91, abs=0.02)


def test_growing_communities_link_each_vertex_to_earlier_one() -> None:
    dataset = growing_communities(500, communities=4, edges_per_vertex=3)
    assert np.unique(dataset.edges[:, 1]).tolist() == list(range(1, 500))


def test_growing_communities_have_hubs() -> None:
    degrees = growing_communities(5_000, communities=2, edges_per_vertex=5, noise=0).adjacency().sum(axis=0)
    assert degrees.max() > 10 * degrees.mean()


def test_growing_communities_without_noise_only_first_members_link_out() -> None:
    dataset = growing_communities(1_000, communities=5, edges_per_vertex=3, noise=0)
    crossing = dataset.labels[dataset.edges[:, 0]] != dataset.labels[dataset.edges[:, 1]]
    founders = np.unique(dataset.labels, return_index=True)[1]
    assert set(dataset.edges[crossing, 1].tolist()) <= set(founders.tolist())


def test_nested_communities_have_requested_degrees() -> None:
    dataset = nested_communities(groups=4, communities_per_group=10, size=20, inside=6, group=1.5, elsewhere=0.5)
    assert (dataset.vertices, dataset.classes) == (800, 4)
    assert dataset.mean_degree == pytest.approx(8.0)
    assert share_inside(dataset) == pytest.approx(7.5 / 8)
    assert np.bincount(dataset.labels).tolist() == [200] * 4


def test_nested_communities_by_default_have_20000_vertices() -> None:
    dataset = nested_communities()
    assert (dataset.vertices, dataset.classes, dataset.mean_degree) == (20_000, 10, pytest.approx(8.0))


def test_nested_communities_with_inside_edges_only_are_components() -> None:
    from scipy.sparse.csgraph import connected_components

    dataset = nested_communities(groups=3, communities_per_group=5, size=6, inside=5, group=0, elsewhere=0)
    count, component = connected_components(dataset.adjacency())
    assert count == 15
    assert np.bincount(component).tolist() == [6] * 15


def test_planted_partition_order_is_independent_of_labels() -> None:
    labels = planted_partition(communities=4, size=100).labels
    assert np.count_nonzero(np.diff(labels)) > 200


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(2, 12), st.data())
def test_planted_partition_has_exact_edge_counts(communities: int, size: int, data: st.DataObject) -> None:
    inside = data.draw(st.integers(0, size - 1))
    elsewhere = data.draw(st.integers(0, (communities - 1) * size))
    dataset = planted_partition(communities, size, inside, elsewhere)
    ends = dataset.labels[dataset.edges]
    within = int(np.count_nonzero(ends[:, 0] == ends[:, 1]))
    vertices = communities * size
    assert (within, len(ends) - within) == (round(vertices * inside / 2), round(vertices * elsewhere / 2))


@pytest.mark.parametrize("per_vertex", [1, 4])
def test_preferential_attachment_matches_theoretical_degrees(per_vertex: int) -> None:
    vertices, m = 100_000, per_vertex
    dataset = preferential_attachment(vertices, per_vertex)
    assert np.unique(dataset.edges[:, 1]).tolist() == list(range(1, vertices))
    degrees = np.bincount(dataset.edges.ravel())
    for k in range(m, m + 6):
        expected = 2 * m * (m + 1) / (k * (k + 1) * (k + 2))
        assert np.mean(degrees == k) == pytest.approx(expected, rel=0.04)
    k = 10 * m
    assert np.mean(degrees >= k) == pytest.approx(m * (m + 1) / (k * (k + 1)), rel=0.1)


def test_rmat_matches_theoretical_degrees() -> None:
    scale, per_vertex, shares = 9, 8, (0.6, 0.2, 0.15, 0.05)
    cell = np.ones((1, 1))
    for _ in range(scale):
        cell = np.kron(cell, np.reshape(shares, (2, 2)))
    linked = 1 - (1 - cell - cell.T) ** (per_vertex << scale)
    np.fill_diagonal(linked, 0)
    expected = linked.sum(axis=1)
    datasets = [rmat(scale, per_vertex, shares, seed) for seed in range(20)]
    degrees = np.array([np.bincount(dataset.edges.ravel(), minlength=1 << scale) for dataset in datasets])
    spread = (linked * (1 - linked)).sum(axis=1)
    assert degrees.mean() == pytest.approx(expected.mean(), rel=0.01)
    assert (degrees**2).mean() == pytest.approx((expected**2 + spread).mean(), rel=0.02)
    assert degrees.max(axis=1).mean() == pytest.approx(expected.max(), rel=0.03)


def test_rmat_has_hubs_only_with_unequal_shares_and_in_random_order() -> None:
    even = np.bincount(rmat(12, 8, (0.25,) * 4).edges.ravel())
    assert even.max() < 3 * even.mean()
    skewed = np.bincount(rmat(12, 8).edges.ravel(), minlength=1 << 12)
    assert skewed.max() > 20 * skewed.mean()
    assert skewed[:2048].sum() == pytest.approx(skewed.sum() / 2, rel=0.2)


def test_purchases_prefer_own_group_and_popular_items() -> None:
    dataset = purchases(users=1_000, items=200, groups=5, per_user=6, elsewhere=0.3)
    bought, users = dataset.edges.T
    assert bought.max() < 200 <= users.min()
    assert len(np.unique(users)) == 1_000
    assert len(users) / 1_000 == pytest.approx(6, abs=0.3)
    assert share_inside(dataset) == pytest.approx(0.7, abs=0.05)
    assert np.bincount(bought).max() > 8 * np.bincount(bought).mean()


def test_purchases_with_empty_group_or_all_items_bought_work() -> None:
    assert len(purchases(users=30, items=2, groups=9, per_user=1).edges) == 30
    assert np.bincount(purchases(users=100, items=4, groups=1, per_user=4).edges[:, 1]).max() == 4


@pytest.mark.parametrize("generate", [preferential_attachment, rmat])
def test_generator_without_communities_gives_one_label(generate: Callable[..., Dataset]) -> None:
    assert generate().classes == 1


def test_preferential_attachment_of_single_vertex_has_no_edges() -> None:
    assert preferential_attachment(1).edges.shape == (0, 2)


@pytest.mark.parametrize(
    "generate", [growing_communities, nested_communities, planted_partition, preferential_attachment, purchases, rmat]
)
def test_generator_is_determined_by_seed(generate: Callable[..., Dataset]) -> None:
    first, again, other = generate(seed=3), generate(seed=3), generate(seed=4)
    assert np.array_equal(first.edges, again.edges)
    assert np.array_equal(first.labels, again.labels)
    assert not np.array_equal(first.edges, other.edges)


def test_generator_with_impossible_arguments_raises() -> None:
    with pytest.raises(InvalidValueError, match="inside: expected a mean degree between 0 and 19"):
        nested_communities(inside=20)
    with pytest.raises(InvalidValueError, match="communities: expected a positive integer"):
        growing_communities(communities=0)
    with pytest.raises(InvalidValueError, match="noise"):
        growing_communities(noise=1.5)
    with pytest.raises(InvalidValueError, match="vertices: expected a positive integer"):
        preferential_attachment(0)
    with pytest.raises(InvalidValueError, match="per_user: expected a mean between 1 and 5"):
        purchases(items=5)
    with pytest.raises(InvalidValueError, match="elsewhere: expected a share between 0 and 1"):
        purchases(elsewhere=0.0)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.5, 0.5, 0.5, -0.5), (0.3, 0.3, 0.3, 0.3)])
def test_rmat_with_shares_not_summing_to_one_raises(shares: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValueError, match="shares: expected four shares that sum to 1"):
        rmat(shares=shares)


@pytest.mark.parametrize("moving", [0.0, 0.4, 1.0])
def test_drifting_communities_have_internal_events_and_moving_members(moving: float) -> None:
    drift = drifting_communities(500, communities=5, events=4_000, phases=3, moving=moving, noise=0.2, seed=1)
    assert drift.edges.shape == (12_000, 2)
    assert (drift.edges[:, 0] != drift.edges[:, 1]).all()
    assert (np.diff(drift.time) == 1).all()
    assert np.bincount(drift.phase).tolist() == [4_000] * 3
    for phase, labels in enumerate(drift.labels):
        ends = labels[drift.edges[drift.phase == phase]]
        assert np.mean(ends[:, 0] == ends[:, 1]) == pytest.approx(0.8 + 0.2 / 5, abs=0.03)
    for before, after in pairwise(drift.labels):
        assert np.mean(before != after) == pytest.approx(moving, abs=0.07)


def test_drifting_communities_are_determined_by_seed_and_check_arguments() -> None:
    one, again, other = (drifting_communities(50, events=100, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(left, right) for left, right in zip(one, again, strict=True))
    assert not np.array_equal(one.edges, other.edges)
    for wrong in ({"moving": 1.5}, {"noise": -0.1}, {"phases": 0}):
        with pytest.raises(InvalidValueError, match=next(iter(wrong))):
            drifting_communities(**wrong)


def reference(labels: np.ndarray, noise: float, draws: np.ndarray) -> list[list[int]]:
    slots: dict[int, list[int]] = {label: [] for label in range(int(labels.max()) + 1)}
    targets = []
    for vertex, own in enumerate(labels):
        row = []
        for leave, whose, which in draws[vertex]:
            home = own if leave >= noise and slots[own] else labels[int(whose * vertex)]
            row.append(slots[home][int(which * len(slots[home]))] if vertex else -1)
        slots[own].append(vertex)
        slots[own] += [end for target in row if vertex and labels[target] == own for end in (target, vertex)]
        targets.append(row)
    return targets


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.floats(0, 1), st.integers(0, 1000))
def test_attach_within_communities_equals_python_reference(
    vertices: int, communities: int, per_vertex: int, noise: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(communities, size=vertices)
    draws = rng.random((vertices, per_vertex, 3))
    sizes = np.bincount(labels, minlength=communities) * (1 + 2 * per_vertex)
    targets = attach_within_communities(labels, np.cumsum(sizes) - sizes, noise, draws)
    assert targets.tolist() == reference(labels, noise, draws)


@settings(max_examples=30)
@given(st.integers(0, 40), st.integers(1, 4), st.integers(0, 1000))
def test_attach_by_degree_equals_python_reference(arrivals: int, per_vertex: int, seed: int) -> None:
    draws = np.random.default_rng(seed).random((arrivals, per_vertex))
    ends: list[int] = []
    for vertex, row in enumerate(draws, start=1):
        earlier = list(ends) or [0]
        for draw in row:
            ends += [earlier[int(draw * len(earlier))], vertex]
    assert attach_by_degree(draws).tolist() == ends[::2]
