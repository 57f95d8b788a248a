"""Users and items: what the vectors of a bipartite graph are worth, and that the page about it says what they are."""

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
from ripplevec.views.graph_stats import DENSE_GRAPH, GraphStats
from ripplevec.views.spectral import auto_views

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/bipartite-directed.md"
ITEMS, USERS, FIRST = 400, 2_000, 10
HUBS_TOO = auto_views(GraphStats(DENSE_GRAPH))  # what other dense graphs have
PER_USER = (4, 8, 30)

Scores = NDArray[np.float64]


class Shop:
    """Purchases without the last one of every user, which is to be foretold; vectors by a stream of arriving users."""

    def __init__(self, per_user: int, seed: int) -> None:
        data = purchases(USERS, ITEMS, groups=8, per_user=per_user, seed=seed)
        self.groups = data.labels
        self.next = np.full(USERS, -1)
        kept = []
        for item, user in np.random.default_rng(seed).permutation(data.edges).tolist():
            if self.next[user - ITEMS] < 0:
                self.next[user - ITEMS] = item
            else:
                kept.append((user, item))
        self.edges = sorted(kept)  # users arrive one after the other
        users, items = np.array(self.edges).T
        self.bought = csr_array((np.ones(len(users)), (users - ITEMS, items)), shape=(USERS, ITEMS))
        self.asked = np.flatnonzero(self.bought.sum(axis=1))
        self.popularity = self.bought.sum(axis=0)

    def hits(self, scores: Scores) -> float:
        """How often, in %, the next purchase is among the first ten that a user does not have."""
        open_to = np.where(self.bought.toarray()[self.asked] > 0, -np.inf, scores)
        of_next = open_to[np.arange(len(self.asked)), self.next[self.asked]]
        better = (open_to > of_next[:, None]).sum(axis=1) + (open_to == of_next[:, None]).sum(axis=1) // 2
        return float(100 * np.mean(better < FIRST))

    def cosines(self, **parameters: Any) -> Scores:
        """Of users and items, half of the purchases as the start."""
        model, half = Embedder(dim=32, **parameters), len(self.edges) // 2
        model.fit(self.edges[:half])
        for first in range(half, len(self.edges), 100):
            model.partial_fit(self.edges[first : first + 100])
        items = np.array([model[item] if item in model else np.zeros(32) for item in range(ITEMS)])
        return model.vectors(self.asked + ITEMS) @ items.T

    def factors(self, columns: int) -> Scores:
        """By a truncated SVD of the matrix of purchases."""
        left, values, right = svds(self.bought, columns, rng=0)
        return ((left * values) @ right)[self.asked]

    def told(self) -> Scores:
        """By popularity within the group that a user really has."""
        return self.popularity * (self.groups[:ITEMS] == self.groups[self.asked + ITEMS, None])


@cache
def shop(per_user: int, seed: int = 0) -> Shop:
    return Shop(per_user, seed)


@cache
def cosines(per_user: int, seed: int = 0, *, hubs_too: bool = False) -> Scores:
    return shop(per_user, seed).cosines(**({"views": HUBS_TOO} if hubs_too else {}))


def weighed(scores: Scores, per_user: int, seed: int = 0) -> Scores:
    return np.maximum(scores, 0) * shop(per_user, seed).popularity


RANKINGS: dict[str, Callable[[int], Scores]] = {
    "at random": lambda n: np.random.default_rng(1).random((len(shop(n).asked), ITEMS)),
    "by popularity": lambda n: np.tile(shop(n).popularity, (len(shop(n).asked), 1)),
    "cosine": lambda n: cosines(n),
    "cosine × purchases": lambda n: weighed(cosines(n), n),
    "cosine, with a view of hubs": lambda n: cosines(n, hubs_too=True),
    "SVD of the matrix, 8 columns": lambda n: shop(n).factors(8),
    "SVD of the matrix, 32 columns": lambda n: shop(n).factors(32),
    "by popularity within the true group": lambda n: shop(n).told(),
}


def table() -> dict[str, list[float]]:
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), flags=re.MULTILINE)
    return {name: [float(value) for value in values] for name, *values in rows}


@pytest.mark.parametrize("ranking", RANKINGS)
def test_the_page_says_how_often_the_next_purchase_is_among_the_first_ten(ranking: str) -> None:
    found = [shop(per_user).hits(RANKINGS[ranking](per_user)) for per_user in PER_USER]
    assert table()[ranking] == pytest.approx(found, abs=2.0)


@pytest.mark.parametrize("per_user", PER_USER)
def test_vectors_times_popularity_are_far_above_popularity_and_near_what_the_groups_allow(per_user: int) -> None:
    for seed in (0, 1):
        here = shop(per_user, seed)
        hits = here.hits(weighed(cosines(per_user, seed), per_user, seed))
        least, most = here.hits(np.tile(here.popularity, (len(here.asked), 1))), here.hits(here.told())
        assert hits > least + 0.7 * (most - least)


def test_most_of_those_near_a_user_are_users_and_items_have_to_be_asked_for() -> None:
    here = shop(8)
    model = Embedder(dim=32).fit(here.edges)
    near = [name for user in here.asked[:100] for name, _ in model.nearest(int(user) + ITEMS)]
    assert np.mean(np.array(near) < ITEMS) < 0.25


@pytest.mark.parametrize("per_user", PER_USER)
def test_users_and_items_of_one_group_are_in_one_place(per_user: int) -> None:
    here = shop(per_user)
    nearest = np.argsort(-cosines(per_user), axis=1)[:, :FIRST]
    same = here.groups[nearest] == here.groups[here.asked + ITEMS, None]
    assert same.mean() > 0.75  # one in eight by chance


@pytest.mark.parametrize("per_user", PER_USER[1:])
def test_with_hubs_in_a_view_of_their_own_cosine_alone_would_not_rank_items(per_user: int) -> None:
    """Why bipartite graphs have no such view."""
    for seed in (0, 1):
        here = shop(per_user, seed)
        assert here.hits(cosines(per_user, seed, hubs_too=True)) < here.hits(cosines(per_user, seed)) - 8
