"""Generated graphs, with communities or with hubs; the order of the vertices is the order of their arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.base import Dataset


def growing_communities(
    vertices: int = 20_000, communities: int = 10, edges_per_vertex: int = 5, noise: float = 0.1, seed: int = 0
) -> Dataset:
    """Communities that grow by preferential attachment: a newcomer links to the well-linked of its own community.

    Each of its edges goes, with probability `noise`, to anywhere instead. Edges drawn twice count once.
    """
    from ripplevec.lab.datasets._kernels import attach

    _positive(vertices=vertices, communities=communities, edges_per_vertex=edges_per_vertex)
    if not 0 <= noise <= 1:
        raise InvalidValueError.of("noise", "a share between 0 and 1", noise)
    rng = np.random.default_rng(seed)
    labels = rng.integers(communities, size=vertices)
    room = np.bincount(labels, minlength=communities) * (1 + 2 * edges_per_vertex)
    draws = rng.random((vertices, edges_per_vertex, 3))
    targets = attach(labels, np.cumsum(room) - room, noise, draws).ravel()
    sources = np.repeat(np.arange(vertices), edges_per_vertex)
    pairs = np.column_stack([sources, targets])[targets >= 0]
    return Dataset.of("growing communities", pairs, labels)


def nested_communities(
    groups: int = 10,
    communities_per_group: int = 100,
    size: int = 20,
    inside: float = 6.0,
    group: float = 1.5,
    elsewhere: float = 0.5,
    seed: int = 0,
) -> Dataset:
    """Many small communities in a few labeled groups, in random order.

    `inside`, `group` and `elsewhere` are the mean degrees to one's own community, to other communities of the group,
    and to other groups.
    """
    _positive(groups=groups, communities_per_group=communities_per_group, size=size)
    rng = np.random.default_rng(seed)
    communities = groups * communities_per_group
    pairs = np.concatenate(
        [
            _between("inside", inside, communities, size, 1, rng),
            _between("group", group, groups, communities_per_group, size, rng),
            _between("elsewhere", elsewhere, 1, groups, communities_per_group * size, rng),
        ]
    )
    order = rng.permutation(communities * size)
    labels = np.empty(len(order), np.int64)
    labels[order] = np.repeat(np.arange(groups), communities_per_group * size)
    return Dataset.of("nested communities", order[pairs], labels)


def planted_partition(
    communities: int = 10, size: int = 100, inside: float = 8.0, elsewhere: float = 2.0, seed: int = 0
) -> Dataset:
    """Equal communities in random order; `inside` and `elsewhere` are the mean degrees to one's own and the others."""
    nested = nested_communities(communities, 1, size, inside, 0.0, elsewhere, seed)
    return replace(nested, name="planted partition")


class Drift(NamedTuple):
    """Edges that come one after the other between vertices whose communities change."""

    edges: NDArray[np.int64]  # (events, 2): a pair may come again
    time: NDArray[np.float64]  # of each: one unit of time per event
    labels: NDArray[np.int64]  # (phases, vertices): the community of each vertex, from one move to the next
    phase: NDArray[np.int64]  # of each event: which of these held


def drifting_communities(
    vertices: int = 600,
    communities: int = 6,
    events: int = 6_000,
    phases: int = 2,
    moving: float = 1.0,
    noise: float = 0.1,
    seed: int = 0,
) -> Drift:
    """Communities that hold for `events` events each, whereupon a share `moving` of the vertices go to others.

    Every event is an edge between two vertices of one community, or, with probability `noise`, between any two.
    """
    _positive(vertices=vertices, communities=communities, events=events, phases=phases)
    for name, share in (("moving", moving), ("noise", noise)):
        if not 0 <= share <= 1:
            raise InvalidValueError.of(name, "a share between 0 and 1", share)
    rng = np.random.default_rng(seed)
    labels = [rng.integers(communities, size=vertices)]
    while len(labels) < phases:
        elsewhere = rng.integers(1, max(communities, 2), size=vertices)
        moved = np.where(rng.random(vertices) < moving, labels[-1] + elsewhere, labels[-1]) % communities
        labels.append(moved)
    pairs = [_meetings(label, events, noise, rng) for label in labels]
    phase = np.repeat(np.arange(phases), events)
    return Drift(np.concatenate(pairs), np.arange(phase.size, dtype=np.float64), np.stack(labels), phase)


def _meetings(labels: NDArray[np.int64], events: int, noise: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Pairs of different vertices: anyone, and with them one of their community, or anyone."""
    order = np.argsort(labels, kind="stable")
    size = np.bincount(labels)
    begin = (np.cumsum(size) - size)[labels]  # where the community of a vertex begins in this order
    first = rng.integers(labels.size, size=events)
    inside = order[begin[first] + rng.integers(size[labels[first]])]
    second = np.where(rng.random(events) < noise, rng.integers(labels.size, size=events), inside)
    return np.column_stack([first, np.where(first == second, (second + 1) % labels.size, second)])


def preferential_attachment(vertices: int = 20_000, edges_per_vertex: int = 5, seed: int = 0) -> Dataset:
    """Hubs that grow: every edge of a newcomer goes to an earlier vertex in proportion to its degree.

    A share 2m(m+1) / (k(k+1)(k+2)) of the vertices has k ≥ m edges, m per newcomer (Barabási and Albert). Edges drawn
    twice count once. All vertices have the same label.
    """
    from ripplevec.lab.datasets._kernels import copy_ends

    _positive(vertices=vertices, edges_per_vertex=edges_per_vertex)
    targets = copy_ends(np.random.default_rng(seed).random((vertices - 1, edges_per_vertex)))
    sources = np.repeat(np.arange(1, vertices), edges_per_vertex)
    labels = np.zeros(vertices, np.int64)
    return Dataset.of("preferential attachment", np.column_stack([sources, targets]), labels)


def purchases(
    users: int = 2_000, items: int = 400, groups: int = 8, per_user: float = 8.0, elsewhere: float = 0.2, seed: int = 0
) -> Dataset:
    """Users who buy items: a bipartite graph. Items are the vertices 0 … items−1, users arrive behind them.

    A user buys `per_user` items in the mean, one at least, a share `elsewhere` of them outside the group that is its
    label; within a group some items sell far better than others (Zipf, exponent 0.8).
    """
    _positive(users=users, items=items, groups=groups)
    if not 1 <= per_user <= items:
        raise InvalidValueError.of("per_user", f"a mean between 1 and {items:,}", per_user)
    if not 0 < elsewhere < 1:
        raise InvalidValueError.of("elsewhere", "a share between 0 and 1", elsewhere)
    rng = np.random.default_rng(seed)
    labels = rng.integers(groups, size=items + users)
    popularity = (1.0 + rng.permutation(items)) ** -0.8
    own = labels[:items] == np.arange(groups)[:, None]
    inside, outside = own * popularity, ~own * popularity
    taste = (1 - elsewhere) * inside / np.maximum(inside.sum(axis=1, keepdims=True), popularity.min())
    taste += elsewhere * outside / np.maximum(outside.sum(axis=1, keepdims=True), popularity.min())
    bought = np.minimum(1 + rng.poisson(per_user - 1, users), items)
    chosen = [
        np.argpartition(rng.exponential(size=items) / taste[group], count - 1)[:count]  # without repetition
        for group, count in zip(labels[items:], bought, strict=True)
    ]
    pairs = np.column_stack([np.repeat(np.arange(items, items + users), bought), np.concatenate(chosen)])
    return Dataset.of("purchases", pairs, labels)


def rmat(
    scale: int = 14, edges_per_vertex: int = 8, shares: Sequence[float] = (0.57, 0.19, 0.19, 0.05), seed: int = 0
) -> Dataset:
    """A recursive matrix (R-MAT) of 2^scale vertices in random order: hubs, and hubs among the neighbors of hubs.

    Every edge falls into one quarter of the adjacency matrix after another, in these shares. Edges drawn twice count
    once and self-loops are left out, so there are fewer edges than drawn; many vertices have none. All vertices have
    the same label.
    """
    _positive(scale=scale, edges_per_vertex=edges_per_vertex)
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
    return Dataset.of("R-MAT", pairs, np.zeros(vertices, np.int64))


def _between(
    name: str, degree: float, parents: int, units: int, members: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Distinct random pairs of vertices in different units of the same parent, `degree` per vertex in the mean.

    Vertices are numbered parent by parent, unit by unit. Every such pair has a number, and numbers are drawn.
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


def _positive(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise InvalidValueError.of(name, "a positive integer", value)
