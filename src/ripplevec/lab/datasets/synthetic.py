"""Generators of random graphs with communities or hubs; vertices are numbered in order of arrival.

The seed determines the graph completely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.dataset import Dataset


@njit(cache=True, nogil=True)
def attach_within_communities(
    labels: NDArray[np.int64], first: NDArray[np.int64], noise: float, draws: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw the target of every edge; row v holds the targets of vertex v, −1 where no earlier vertex exists.

    Community c owns the slots from `first[c]` on. They hold every member once and both endpoints of every edge inside
    the community, so that a uniform slot is a member in proportion to its degree plus one. An edge uses three uniform
    draws: whether it leaves its community, which community it goes to then (that of a uniform earlier vertex), and
    which slot it copies.
    """
    count, per_vertex = draws.shape[0], draws.shape[1]
    targets = np.full((count, per_vertex), -1, np.int64)
    used = np.zeros(len(first), np.int64)
    slots = np.empty(count * (1 + 2 * per_vertex), np.int64)
    for vertex in range(count):
        community = labels[vertex]
        for edge in range(per_vertex if vertex else 0):
            leaves = draws[vertex, edge, 0] < noise or used[community] == 0
            chosen = labels[int(draws[vertex, edge, 1] * vertex)] if leaves else community
            targets[vertex, edge] = slots[first[chosen] + int(draws[vertex, edge, 2] * used[chosen])]
        slots[first[community] + used[community]] = vertex
        used[community] += 1
        for edge in range(per_vertex):
            target = targets[vertex, edge]
            if target >= 0 and labels[target] == community:
                slots[first[community] + used[community]] = target
                slots[first[community] + used[community] + 1] = vertex
                used[community] += 2
    return targets


@njit(cache=True, nogil=True)
def attach_by_degree(draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw the target of every edge of the vertices 1, 2, …: a uniform endpoint of the earlier edges.

    Row v − 1 of `draws` belongs to vertex v. A vertex occurs among the endpoints as often as its degree. Edge i stores
    its target at 2i and its source at 2i + 1; all edges of vertex 1 go to vertex 0.
    """
    arrivals, per_vertex = draws.shape
    endpoints = np.zeros(2 * arrivals * per_vertex, np.int64)
    for arrival in range(arrivals):
        earlier = 2 * arrival * per_vertex
        for edge in range(per_vertex):
            slot = earlier + 2 * edge
            endpoints[slot] = endpoints[int(draws[arrival, edge] * earlier)]
            endpoints[slot + 1] = arrival + 1
    return endpoints[::2].copy()


def growing_communities(
    vertices: int = 20_000, communities: int = 10, edges_per_vertex: int = 5, noise: float = 0.1, seed: int = 0
) -> Dataset:
    """Generate communities that grow by preferential attachment.

    A new vertex links to vertices of its own community in proportion to their degrees. With probability `noise` an
    edge goes to the community of a random earlier vertex instead. Duplicate edges count once.

    Examples
    --------
    >>> from ripplevec.lab.datasets.synthetic import growing_communities
    >>> growing_communities(vertices=100, communities=4).classes
    4
    """

    _check_positive(vertices=vertices, communities=communities, edges_per_vertex=edges_per_vertex)
    if not 0 <= noise <= 1:
        raise InvalidValueError.of("noise", "a share between 0 and 1", noise)
    rng = np.random.default_rng(seed)
    labels = rng.integers(communities, size=vertices)
    slots = np.bincount(labels, minlength=communities) * (1 + 2 * edges_per_vertex)
    draws = rng.random((vertices, edges_per_vertex, 3))
    targets = attach_within_communities(labels, np.cumsum(slots) - slots, noise, draws).ravel()
    sources = np.repeat(np.arange(vertices), edges_per_vertex)
    pairs = np.column_stack([sources, targets])[targets >= 0]
    return Dataset.from_pairs("growing communities", pairs, labels)


def nested_communities(
    groups: int = 10,
    communities_per_group: int = 100,
    size: int = 20,
    inside: float = 6.0,
    group: float = 1.5,
    elsewhere: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Generate many small communities within a few labeled groups, in random order.

    `inside`, `group` and `elsewhere` are the mean numbers of neighbors a vertex has in its own community, in other
    communities of its group, and in other groups.
    """
    _check_positive(groups=groups, communities_per_group=communities_per_group, size=size)
    rng = np.random.default_rng(seed)
    communities = groups * communities_per_group
    pairs = np.concatenate(
        [
            _sample_pairs("inside", inside, communities, size, 1, rng),
            _sample_pairs("group", group, groups, communities_per_group, size, rng),
            _sample_pairs("elsewhere", elsewhere, 1, groups, communities_per_group * size, rng),
        ]
    )
    order = rng.permutation(communities * size)
    labels = np.empty(len(order), np.int64)
    labels[order] = np.repeat(np.arange(groups), communities_per_group * size)
    return Dataset.from_pairs("nested communities", order[pairs], labels)


def planted_partition(
    communities: int = 10, size: int = 100, inside: float = 8.0, elsewhere: float = 2.0, seed: int = 0
) -> Dataset:
    """Generate communities of equal size in random order.

    `inside` and `elsewhere` are the mean numbers of neighbors a vertex has in its own community and in the others.
    """
    nested = nested_communities(communities, 1, size, inside, 0.0, elsewhere, seed)
    return replace(nested, name="planted partition")


class Drift(NamedTuple):
    """A sequence of edge events between vertices whose communities change over time."""

    edges: NDArray[np.int64]  # (events, 2); a pair may occur repeatedly
    time: NDArray[np.float64]  # per event; one unit of time per event
    labels: NDArray[np.int64]  # (phases, vertices): the community of each vertex in each phase
    phase: NDArray[np.int64]  # per event: its row in `labels`


def drifting_communities(
    vertices: int = 600,
    communities: int = 6,
    events: int = 6_000,
    phases: int = 2,
    moving: float = 1.0,
    noise: float = 0.1,
    seed: int = 0,
) -> Drift:
    """Generate edge events between communities that change between phases.

    A phase has `events` events. After it, a share `moving` of the vertices moves to another community. An event is an
    edge between two vertices of one community or, with probability `noise`, between any two.
    """
    _check_positive(vertices=vertices, communities=communities, events=events, phases=phases)
    for name, share in (("moving", moving), ("noise", noise)):
        if not 0 <= share <= 1:
            raise InvalidValueError.of(name, "a share between 0 and 1", share)
    rng = np.random.default_rng(seed)
    labels = [rng.integers(communities, size=vertices)]
    while len(labels) < phases:
        offset = rng.integers(1, max(communities, 2), size=vertices)
        moved = np.where(rng.random(vertices) < moving, labels[-1] + offset, labels[-1]) % communities
        labels.append(moved)
    pairs = [_sample_events(label, events, noise, rng) for label in labels]
    phase = np.repeat(np.arange(phases), events)
    return Drift(np.concatenate(pairs), np.arange(phase.size, dtype=np.float64), np.stack(labels), phase)


def _sample_events(labels: NDArray[np.int64], events: int, noise: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs of distinct vertices: any vertex, and one of its community or, with probability `noise`, any other."""
    order = np.argsort(labels, kind="stable")
    size = np.bincount(labels)
    begin = (np.cumsum(size) - size)[labels]  # position in `order` at which the community of a vertex begins
    sources = rng.integers(labels.size, size=events)
    inside = order[begin[sources] + rng.integers(size[labels[sources]])]
    targets = np.where(rng.random(events) < noise, rng.integers(labels.size, size=events), inside)
    return np.column_stack([sources, np.where(sources == targets, (targets + 1) % labels.size, targets)])


def preferential_attachment(vertices: int = 20_000, edges_per_vertex: int = 5, seed: int = 0) -> Dataset:
    """Generate a graph with hubs: each edge of a new vertex goes to an earlier vertex in proportion to its degree.

    With m edges per vertex, a share 2m(m+1) / (k(k+1)(k+2)) of the vertices has degree k ≥ m (Barabási and Albert).
    Duplicate edges count once. All vertices have the same label.
    """

    _check_positive(vertices=vertices, edges_per_vertex=edges_per_vertex)
    targets = attach_by_degree(np.random.default_rng(seed).random((vertices - 1, edges_per_vertex)))
    sources = np.repeat(np.arange(1, vertices), edges_per_vertex)
    labels = np.zeros(vertices, np.int64)
    return Dataset.from_pairs("preferential attachment", np.column_stack([sources, targets]), labels)


def purchases(
    users: int = 2_000, items: int = 400, groups: int = 8, per_user: float = 8.0, elsewhere: float = 0.2, seed: int = 0
) -> Dataset:
    """Generate a bipartite graph of users who buy items; items are the vertices 0 … items−1, users follow.

    A user buys `per_user` items on average and at least one, a share `elsewhere` of them outside its own group, which
    is its label. The popularity of items follows a Zipf law with exponent 0.8.
    """
    _check_positive(users=users, items=items, groups=groups)
    if not 1 <= per_user <= items:
        raise InvalidValueError.of("per_user", f"a mean between 1 and {items:,}", per_user)
    if not 0 < elsewhere < 1:
        raise InvalidValueError.of("elsewhere", "a share between 0 and 1", elsewhere)
    rng = np.random.default_rng(seed)
    labels = rng.integers(groups, size=items + users)
    popularity = (1.0 + rng.permutation(items)) ** -0.8
    in_group = labels[:items] == np.arange(groups)[:, None]
    inside, outside = in_group * popularity, ~in_group * popularity
    probability = (1 - elsewhere) * inside / np.maximum(inside.sum(axis=1, keepdims=True), popularity.min())
    probability += elsewhere * outside / np.maximum(outside.sum(axis=1, keepdims=True), popularity.min())
    counts = np.minimum(1 + rng.poisson(per_user - 1, users), items)
    bought = [
        np.argpartition(rng.exponential(size=items) / probability[group], count - 1)[:count]  # without replacement
        for group, count in zip(labels[items:], counts, strict=True)
    ]
    pairs = np.column_stack([np.repeat(np.arange(items, items + users), counts), np.concatenate(bought)])
    return Dataset.from_pairs("purchases", pairs, labels)


def rmat(
    scale: int = 14, edges_per_vertex: int = 8, shares: Sequence[float] = (0.57, 0.19, 0.19, 0.05), seed: int = 0
) -> Dataset:
    """Generate a recursive-matrix (R-MAT) graph of 2^scale vertices in random order, whose hubs link to hubs.

    Each edge chooses a quarter of the adjacency matrix with the probabilities `shares`, then a quarter of that quarter,
    and so on. Duplicate edges count once and self-loops are dropped, so there are fewer edges than draws; many vertices
    have none. All vertices have the same label.
    """
    _check_positive(scale=scale, edges_per_vertex=edges_per_vertex)
    if len(shares) != 4 or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise InvalidValueError.of("shares", "four shares that sum to 1", shares)
    rng = np.random.default_rng(seed)
    vertices = 1 << scale
    rows, columns = np.zeros((2, vertices * edges_per_vertex), np.int64)
    bounds = np.cumsum(shares)[:3]
    for _ in range(scale):
        quarter = np.searchsorted(bounds, rng.random(len(rows)), side="right")
        rows, columns = rows << 1 | quarter >> 1, columns << 1 | quarter & 1
    pairs = rng.permutation(vertices)[np.column_stack([rows, columns])]
    return Dataset.from_pairs("R-MAT", pairs, np.zeros(vertices, np.int64))


def _sample_pairs(
    name: str, degree: float, parents: int, units: int, members: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw distinct pairs of vertices in different units of the same parent, `degree` per vertex on average.

    Vertices are numbered parent by parent, unit by unit. All such pairs are numbered, and pair numbers are drawn.
    """
    unit_pairs = units * (units - 1) // 2
    possible = parents * unit_pairs * members**2
    wanted = round(parents * units * members * degree / 2)
    if not 0 <= wanted <= possible:
        highest = (units - 1) * members
        raise InvalidValueError.of(name, f"a mean degree between 0 and {highest:,}", degree)
    number = rng.choice(possible, wanted, replace=False) if wanted else np.empty(0, np.int64)
    number, second = np.divmod(number, members)
    number, first = np.divmod(number, members)
    parent, pair = np.divmod(number, max(unit_pairs, 1))
    later = ((1 + np.sqrt(1 + 8 * pair)) / 2).astype(np.int64)
    earlier = pair - later * (later - 1) // 2
    return np.column_stack([(parent * units + later) * members + first, (parent * units + earlier) * members + second])


def _check_positive(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise InvalidValueError.of(name, "a positive integer", value)
