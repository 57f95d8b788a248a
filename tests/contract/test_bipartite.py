"""Quality of the vectors of a bipartite graph of users and items, and the figures on the page about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from ripplevec import Embedder
from ripplevec.lab.datasets.synthetic import purchases
from ripplevec.views.recipes import RECIPES

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/bipartite-directed.md"
ITEMS, USERS, FIRST = 400, 2_000, 10
WITH_HUB_VIEW = RECIPES["communities+strong-hubs"]
PER_USER = (4, 8, 30)

Scores = NDArray[np.float64]


class Shop:
    """Purchases without one per user, which is to be predicted; vectors from a stream of arriving users."""

    def __init__(self, per_user: int, seed: int) -> None:
        data = purchases(USERS, ITEMS, groups=8, per_user=per_user, seed=seed)
        self.groups = data.labels
        self.next = np.full(USERS, -1)
        edges = []
        for item, user in np.random.default_rng(seed).permutation(data.edges).tolist():
            if self.next[user - ITEMS] < 0:
                self.next[user - ITEMS] = item
            else:
                edges.append((user, item))
        self.edges = sorted(edges)  # users arrive one by one
        users, items = np.array(self.edges).T
        self.bought = csr_array((np.ones(len(users)), (users - ITEMS, items)), shape=(USERS, ITEMS))
        self.users = np.flatnonzero(self.bought.sum(axis=1))
        self.popularity = self.bought.sum(axis=0)

    def hits(self, scores: Scores) -> float:
        """Return how often, in %, the next purchase is among the top ten items that a user does not have."""
        candidates = np.where(self.bought.toarray()[self.users] > 0, -np.inf, scores)
        next_scores = candidates[np.arange(len(self.users)), self.next[self.users]]
        better = (candidates > next_scores[:, None]).sum(axis=1) + (candidates == next_scores[:, None]).sum(axis=1) // 2
        return float(100 * np.mean(better < FIRST))

    def cosines(self, **parameters: Any) -> Scores:
        """Return cosines of users and items of a model that starts with half of the purchases."""
        model, half = Embedder(dim=32, **parameters), len(self.edges) // 2
        model.fit(self.edges[:half])
        for first in range(half, len(self.edges), 100):
            model.partial_fit(self.edges[first : first + 100])
        items = np.array([model[item] if item in model else np.zeros(32) for item in range(ITEMS)])
        return model.vectors(self.users + ITEMS) @ items.T

    def factors(self, columns: int) -> Scores:
        """Return scores by a truncated SVD of the purchase matrix."""
        left, values, right = svds(self.bought, columns, rng=0)
        return ((left * values) @ right)[self.users]

    def true_groups(self) -> Scores:
        """Return scores by popularity within the true group of each user."""
        return self.popularity * (self.groups[:ITEMS] == self.groups[self.users + ITEMS, None])


@cache
def shop(per_user: int, seed: int = 0) -> Shop:
    return Shop(per_user, seed)


@cache
def cosines(per_user: int, seed: int = 0, *, with_hub_view: bool = False) -> Scores:
    return shop(per_user, seed).cosines(**({"views": WITH_HUB_VIEW} if with_hub_view else {}))


def times_popularity(scores: Scores, per_user: int, seed: int = 0) -> Scores:
    return np.maximum(scores, 0) * shop(per_user, seed).popularity


RANKINGS: dict[str, Callable[[int], Scores]] = {
    "at random": lambda n: np.random.default_rng(1).random((len(shop(n).users), ITEMS)),
    "by popularity": lambda n: np.tile(shop(n).popularity, (len(shop(n).users), 1)),
    "cosine": lambda n: cosines(n),
    "cosine × purchases": lambda n: times_popularity(cosines(n), n),
    "cosine, with a hub view": lambda n: cosines(n, with_hub_view=True),
    "truncated SVD, 8 dimensions": lambda n: shop(n).factors(8),
    "truncated SVD, 32 dimensions": lambda n: shop(n).factors(32),
    "by popularity within the true group": lambda n: shop(n).true_groups(),
}


def table() -> dict[str, list[float]]:
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    return {name: [float(value) for value in values] for name, *values in rows}


@pytest.mark.parametrize("ranking", RANKINGS)
def test_documented_hit_rates_match(ranking: str) -> None:
    found = [shop(per_user).hits(RANKINGS[ranking](per_user)) for per_user in PER_USER]
    assert table()[ranking] == pytest.approx(found, abs=2.0)


@pytest.mark.parametrize("per_user", PER_USER)
def test_cosine_times_popularity_is_near_the_true_group_ranking(per_user: int) -> None:
    for seed in (0, 1):
        data = shop(per_user, seed)
        hits = data.hits(times_popularity(cosines(per_user, seed), per_user, seed))
        low, high = data.hits(np.tile(data.popularity, (len(data.users), 1))), data.hits(data.true_groups())
        assert hits > low + 0.7 * (high - low)


def test_nearest_of_a_user_are_mostly_users() -> None:
    data = shop(8)
    model = Embedder(dim=32).fit(data.edges)
    near = [name for user in data.users[:100] for name, _ in model.nearest(int(user) + ITEMS)]
    assert np.mean(np.array(near) < ITEMS) < 0.25


@pytest.mark.parametrize("per_user", PER_USER)
def test_users_and_items_of_one_group_are_near_each_other(per_user: int) -> None:
    data = shop(per_user)
    nearest = np.argsort(-cosines(per_user), axis=1)[:, :FIRST]
    same = data.groups[nearest] == data.groups[data.users + ITEMS, None]
    assert same.mean() > 0.75  # 1/8 by chance


@pytest.mark.parametrize("per_user", PER_USER[1:])
def test_hub_view_worsens_the_ranking_of_items(per_user: int) -> None:
    """This is why hidden edges select views without hubs for bipartite graphs."""
    for seed in (0, 1):
        data = shop(per_user, seed)
        assert data.hits(cosines(per_user, seed, with_hub_view=True)) < data.hits(cosines(per_user, seed)) - 8
