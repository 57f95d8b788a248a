"""Where a vector stands on the map: among the centers of communities, which stay where they are from fit to fit.

A map by two principal components shows two directions of many: ten communities lie over each other. So the vectors'
communities are found first, by k-means; their centers get places in the plane that keep the distances between them as
far as a plane can; and a vector stands between these places, by its likeness to each center. A fit begins with the
centers and places of the one before and is turned onto it, so that communities keep their number and their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMMUNITIES = 10
"""How many there are at most: more colors than this cannot be told apart."""

LEARNED_FROM = 2000
"""How many vectors the centers are learned from."""

STARTS, DRAWS = 4, 8
"""How often k-means is begun afresh, and how many rows are tried for each center to begin with."""

BETTER = 0.004
"""How much better a fresh start must come out to be preferred to what was known, in the mean cosine."""

ENOUGH = 0.75
"""Which share of what the best axes show is enough to keep those that are."""

LIKENESS = 6.0
"""How much more a near center counts than a far one: the exponent of the cosines."""

SPREAD, GATHERED = 0.85, 0.6
"""How far a community spreads around its place: the factor and the exponent of what a vector differs from its centers.

An exponent below 1 opens the dense middle and draws the far ones in.
"""

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A fixed map from vectors to the plane."""

    centers: Points  # (communities, dim), unit rows
    places: Points  # (communities, 2)
    axes: Points  # (dim, 2): the two directions in which vectors differ most from their centers

    @classmethod
    def fit(cls, vectors: NDArray[Any], previous: Projection | None = None) -> Projection:
        """A map for these vectors, as like the previous one as they allow."""
        rows = unit(vectors[:: max(1, -(-len(vectors) // LEARNED_FROM))])
        rows = rows[rows.any(axis=1)]
        if previous is not None and previous.centers.shape[1] != rows.shape[1]:
            previous = None
        if not len(rows):
            return previous or cls._empty(vectors.shape[1])
        centers = communities(rows, None if previous is None else previous.centers)
        residuals = rows - centers[np.argmax(rows @ centers.T, axis=1)]
        return cls(centers, _layout(centers, previous), _axes(residuals, previous))

    @classmethod
    def _empty(cls, dim: int) -> Projection:
        return cls(np.zeros((0, dim)), np.zeros((0, 2)), np.zeros((dim, 2)))

    def place(self, vectors: NDArray[Any]) -> Points:
        """The places of vectors; those without direction stand in the middle."""
        rows = unit(vectors)
        if not len(self.centers):
            return np.zeros((len(rows), 2))
        likeness = rows @ self.centers.T
        weight = np.exp(LIKENESS * (likeness - likeness.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        around = (rows - weight @ self.centers) @ self.axes
        length = np.linalg.norm(around, axis=1, keepdims=True)
        around *= SPREAD * np.where(length > 0, length, 1.0) ** (GATHERED - 1)
        places = weight @ self.places + around
        places[~rows.any(axis=1)] = 0.0
        return places

    def community(self, vectors: NDArray[Any]) -> NDArray[np.int64]:
        """The number of the nearest center; −1 for a vector without direction."""
        rows = unit(vectors)
        if not len(self.centers):
            return np.full(len(rows), -1)
        return np.where(rows.any(axis=1), np.argmax(rows @ self.centers.T, axis=1), -1)


def unit(vectors: NDArray[Any]) -> Points:
    """Rows of length one; rows of zeros stay."""
    rows = np.asarray(vectors, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def communities(rows: Points, known: Points | None) -> Points:
    """The centers of the rows, in the order of those known; found from these, unless a fresh start does better."""
    fresh = max((k_means(rows, drawn(rows, seed)) for seed in range(STARTS)), key=lambda found: _fit(rows, found))
    if known is None or not len(known):
        return fresh
    kept = k_means(rows, known)
    if len(known) >= len(fresh) and _fit(rows, kept) > _fit(rows, fresh) - BETTER:
        return kept
    return in_order(fresh, known)


def _fit(rows: Points, centers: Points) -> float:
    """How like a row is to its center, in the mean."""
    return float((rows @ centers.T).max(axis=1).mean())


def drawn(rows: Points, seed: int) -> Points:
    """Rows to begin with, each the likelier the less it is like those before (k-means++); the best of a few draws."""
    rng = np.random.default_rng(seed)
    chosen = [int(rng.integers(len(rows)))]
    far = 1 - rows @ rows[chosen[0]]
    while len(chosen) < min(COMMUNITIES, len(rows)) and far.max() > 1e-9:
        heights = np.cumsum(np.maximum(far, 0.0))
        draws = np.searchsorted(heights, rng.random(DRAWS) * heights[-1], side="right")
        left = np.minimum(far[:, None], 1 - rows @ rows[draws].T)
        best = int(np.argmin(left.sum(axis=0)))
        chosen.append(int(draws[best]))
        far = left[:, best]
    return rows[chosen]


def in_order(centers: Points, known: Points) -> Points:
    """The centers, each at the number of the known one it is most like; the best pairs first."""
    likeness = centers @ known.T
    number = np.full(len(centers), -1)
    for _ in range(min(likeness.shape)):
        here, there = np.unravel_index(np.argmax(likeness), likeness.shape)
        number[here] = there
        likeness[here], likeness[:, there] = -np.inf, -np.inf
    rest = np.flatnonzero(number < 0)
    free = np.setdiff1d(np.arange(len(centers)), number)
    number[rest] = free[: len(rest)]
    return centers[np.argsort(number, kind="stable")]


def k_means(rows: Points, centers: Points, rounds: int = 20) -> Points:
    """Centers of unit length, each the direction of the mean of the rows that are most like it."""
    for _ in range(rounds):
        nearest = np.argmax(rows @ centers.T, axis=1)
        member = nearest[:, None] == np.arange(len(centers))
        sums = member.T.astype(np.float64) @ rows
        alone = ~sums.any(axis=1)
        moved = unit(np.where(alone[:, None], centers, sums))
        if np.abs(moved - centers).max() < 1e-4:
            return moved
        centers = moved
    return centers


def principal_axes(rows: Points) -> Points:
    """The two directions of largest variance, as columns; the first column's largest entry is positive."""
    centered = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axes = vectors[:, ::-1][:, :2]
    if axes.shape[1] < 2:
        axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    return axes * np.where(axes[np.argmax(np.abs(axes), axis=0), [0, 1]] < 0, -1.0, 1.0)


def turn_onto(points: Points, target: Points) -> Points:
    """The rotation, perhaps with a reflection, that brings points nearest to their targets (Procrustes)."""
    left, _, right = np.linalg.svd(points.T @ target)
    return left @ right


def _axes(residuals: Points, previous: Projection | None) -> Points:
    """The directions in which communities spread; the former ones for as long as they show nearly as much."""
    best = principal_axes(residuals)
    if previous is None or not len(previous.centers):
        return best
    shown, possible = (float(np.square(residuals @ axes).sum()) for axes in (previous.axes, best))
    if shown >= ENOUGH * possible:
        return previous.axes
    return best @ turn_onto(residuals @ best, residuals @ previous.axes)


def _layout(centers: Points, previous: Projection | None) -> Points:
    """Places of the centers, with distances like those between the centers; the known ones near where they were."""
    apart = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    start = (centers - centers.mean(axis=0)) @ principal_axes(centers)
    if previous is None or not len(previous.places):
        return spread_out(start, apart, 2000)
    known = min(len(previous.places), len(centers))
    turned = start @ turn_onto(start[:known] - start[:known].mean(axis=0), previous.places[:known])
    turned[:known] = previous.places[:known]
    places = spread_out(turned, apart, 10)  # a better layout is not worth a map that moves
    middle, before = places[:known].mean(axis=0), previous.places[:known].mean(axis=0)
    return (places - middle) @ turn_onto(places[:known] - middle, previous.places[:known] - before) + before


def spread_out(places: Points, apart: Points, rounds: int) -> Points:
    """Places whose distances are as near to those given as a plane allows: majorization of the stress (SMACOF)."""
    count = len(places)
    for _ in range(rounds):
        distance = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(apart, distance, out=np.zeros_like(apart), where=distance > 1e-12)
        pull = np.diag(ratio.sum(axis=1)) - ratio
        moved = pull @ places / count
        if np.abs(moved - places).max() < 1e-6:
            return moved
        places = moved
    return places
