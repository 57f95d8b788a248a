"""Projection of vectors to the plane, arranged by communities that keep their places from fit to fit.

Two principal components show only two directions of many: ten communities would overlap. So communities are found
first, by spherical k-means; their centers get positions in the plane that preserve the distances between them as well
as a plane can (SMACOF); and a vector is placed between these positions by its similarity to each center. A fit starts
from the centers and positions of the previous one and is rotated onto it (Procrustes), so that communities keep their
number and their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment

MAX_COMMUNITIES = 10
"""Largest number of communities: more colors could not be distinguished."""

FIT_SAMPLE = 2000
"""Approximate number of vectors that the centers are fitted to."""

RESTARTS, SEED_CANDIDATES = 4, 8
"""Number of k-means runs with new seeds, and of candidates for each seed (greedy k-means++)."""

MIN_IMPROVEMENT = 0.004
"""Increase of the mean cosine by which new centers must improve on the previous ones to replace them."""

MIN_AXES_QUALITY = 0.75
"""The previous axes are kept while they show at least this share of the variance that the best axes show."""

SOFTMAX_SHARPNESS = 6.0
"""Factor of the cosines in the softmax weights of the centers."""

SPREAD, SPREAD_EXPONENT = 0.85, 0.6
"""Factor and exponent of the distance between a point and its community's position.

An exponent below 1 widens the dense middle and pulls outliers in.
"""

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A fixed map from vectors to the plane."""

    centers: Points  # (communities, dim), unit rows
    positions: Points  # (communities, 2)
    axes: Points  # (dim, 2): the two directions in which vectors differ most from their centers

    @classmethod
    def fit(cls, vectors: NDArray[Any], previous: Projection | None = None) -> Projection:
        """Fit a projection to vectors, as similar to the previous one as they allow."""
        rows = normalize(vectors[:: max(1, -(-len(vectors) // FIT_SAMPLE))])
        rows = rows[rows.any(axis=1)]
        if previous is not None and previous.centers.shape[1] != rows.shape[1]:
            previous = None
        if not len(rows):
            return previous or cls._empty(vectors.shape[1])
        centers = fit_centers(rows, None if previous is None else previous.centers)
        residuals = rows - centers[np.argmax(rows @ centers.T, axis=1)]
        return cls(centers, _layout_centers(centers, previous), _choose_axes(residuals, previous))

    @classmethod
    def _empty(cls, dim: int) -> Projection:
        return cls(np.zeros((0, dim)), np.zeros((0, 2)), np.zeros((dim, 2)))

    def project(self, vectors: NDArray[Any]) -> Points:
        """Return the positions of vectors; zero vectors are placed at the origin."""
        rows = normalize(vectors)
        if not len(self.centers):
            return np.zeros((len(rows), 2))
        similarity = rows @ self.centers.T
        weight = np.exp(SOFTMAX_SHARPNESS * (similarity - similarity.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        offset = (rows - weight @ self.centers) @ self.axes
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        offset *= SPREAD * np.where(length > 0, length, 1.0) ** (SPREAD_EXPONENT - 1)
        positions = weight @ self.positions + offset
        positions[~rows.any(axis=1)] = 0.0
        return positions

    def assign_communities(self, vectors: NDArray[Any]) -> NDArray[np.int64]:
        """Return the number of the nearest center of each vector; −1 for a zero vector."""
        rows = normalize(vectors)
        if not len(self.centers):
            return np.full(len(rows), -1)
        return np.where(rows.any(axis=1), np.argmax(rows @ self.centers.T, axis=1), -1)


def normalize(vectors: NDArray[Any]) -> Points:
    """Scale rows to unit length; zero rows stay zero."""
    rows = np.asarray(vectors, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def fit_centers(rows: Points, previous: Points | None) -> Points:
    """Fit community centers: from the previous ones and in their order, unless a restart is clearly better."""
    candidates = (k_means(rows, choose_seeds(rows, seed)) for seed in range(RESTARTS))
    restarted = max(candidates, key=lambda centers: _mean_similarity(rows, centers))
    if previous is None or not len(previous):
        return restarted
    continued = k_means(rows, previous)
    gain = _mean_similarity(rows, restarted) - MIN_IMPROVEMENT
    if len(previous) >= len(restarted) and _mean_similarity(rows, continued) > gain:
        return continued
    return match_order(restarted, previous)


def _mean_similarity(rows: Points, centers: Points) -> float:
    """Return the mean cosine between a row and its nearest center."""
    return float((rows @ centers.T).max(axis=1).mean())


def choose_seeds(rows: Points, seed: int) -> Points:
    """Choose rows as initial centers by greedy k-means++: likelier the less similar they are to those chosen before."""
    rng = np.random.default_rng(seed)
    chosen = [int(rng.integers(len(rows)))]
    distance = 1 - rows @ rows[chosen[0]]
    while len(chosen) < min(MAX_COMMUNITIES, len(rows)) and distance.max() > 1e-9:
        cumulative = np.cumsum(np.maximum(distance, 0.0))
        candidates = np.searchsorted(cumulative, rng.random(SEED_CANDIDATES) * cumulative[-1], side="right")
        remaining = np.minimum(distance[:, None], 1 - rows @ rows[candidates].T)
        best = int(np.argmin(remaining.sum(axis=0)))
        chosen.append(int(candidates[best]))
        distance = remaining[:, best]
    return rows[chosen]


def match_order(centers: Points, previous: Points) -> Points:
    """Reorder centers so that they have the numbers of similar previous ones: the sum of the cosines is maximal."""
    matched, match = linear_sum_assignment(centers @ previous.T, maximize=True)
    number = np.full(len(centers), -1)
    number[matched] = match
    unmatched = np.flatnonzero(number < 0)
    free = np.setdiff1d(np.arange(len(centers)), number)
    number[unmatched] = free[: len(unmatched)]
    return centers[np.argsort(number, kind="stable")]


def k_means(rows: Points, centers: Points, rounds: int = 20) -> Points:
    """Run spherical k-means: each center becomes the direction of the mean of its nearest rows.

    `kmeans2` of SciPy minimizes Euclidean distances to centers of any length, which gives other communities.
    """
    for _ in range(rounds):
        nearest = np.argmax(rows @ centers.T, axis=1)
        member = nearest[:, None] == np.arange(len(centers))
        sums = member.T.astype(np.float64) @ rows
        is_empty = ~sums.any(axis=1)
        updated = normalize(np.where(is_empty[:, None], centers, sums))
        if np.abs(updated - centers).max() < 1e-4:
            return updated
        centers = updated
    return centers


def principal_axes(rows: Points) -> Points:
    """Return the two directions of largest variance as columns, with the largest entry of each positive."""
    centered = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axes = vectors[:, ::-1][:, :2]
    if axes.shape[1] < 2:
        axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))
    return axes * np.where(axes[np.argmax(np.abs(axes), axis=0), [0, 1]] < 0, -1.0, 1.0)


def fit_rotation(points: Points, target: Points) -> Points:
    """Return the rotation, possibly with a reflection, that maps points closest to their targets (Procrustes)."""
    rotation: Points = orthogonal_procrustes(points, target)[0]
    return rotation


def _choose_axes(residuals: Points, previous: Projection | None) -> Points:
    """Return the directions in which communities spread; the previous ones while they show nearly as much variance."""
    best = principal_axes(residuals)
    if previous is None or not len(previous.centers):
        return best
    shown, possible = (float(np.square(residuals @ axes).sum()) for axes in (previous.axes, best))
    if shown >= MIN_AXES_QUALITY * possible:
        return previous.axes
    return best @ fit_rotation(residuals @ best, residuals @ previous.axes)


def _layout_centers(centers: Points, previous: Projection | None) -> Points:
    """Return positions of the centers that preserve their distances; known centers stay close to their positions."""
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    start = (centers - centers.mean(axis=0)) @ principal_axes(centers)
    if previous is None or not len(previous.positions):
        return smacof(start, distances, 2000)
    known = min(len(previous.positions), len(centers))
    rotated = start @ fit_rotation(start[:known] - start[:known].mean(axis=0), previous.positions[:known])
    rotated[:known] = previous.positions[:known]
    positions = smacof(rotated, distances, 10)  # few rounds: a stable map matters more than a better layout
    middle, before = positions[:known].mean(axis=0), previous.positions[:known].mean(axis=0)
    rotation = fit_rotation(positions[:known] - middle, previous.positions[:known] - before)
    return (positions - middle) @ rotation + before


def smacof(positions: Points, distances: Points, rounds: int) -> Points:
    """Move positions so that their distances approach the given ones: stress majorization (SMACOF)."""
    count = len(positions)
    for _ in range(rounds):
        current = np.linalg.norm(positions[:, None] - positions[None], axis=2)
        ratio = np.divide(distances, current, out=np.zeros_like(distances), where=current > 1e-12)
        guttman = np.diag(ratio.sum(axis=1)) - ratio
        updated = guttman @ positions / count
        if np.abs(updated - positions).max() < 1e-6:
            return updated
        positions = updated
    return positions
