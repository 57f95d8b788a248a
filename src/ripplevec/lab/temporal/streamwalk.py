"""StreamWalk of online node2vec: vectors from temporal walks that end in the newest edge.

The first method of Béres et al., "Node embeddings in dynamic graphs" (2019). With every edge (u, v), walks backward in
time are sampled from u; v and the vertices of each walk are trained as a pair by skip-gram with negative sampling. An
edge of age t is followed with probability proportional to exp(−t / half-life).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ripplevec.influence._kernels import mix
from ripplevec.lab.temporal.predictors import CountingPredictor
from ripplevec.lab.temporal.protocol import Scores
from ripplevec.lab.temporal.streams import Ids

REMEMBERED = 16
"""Latest edges of a vertex that a walk chooses from."""


@njit(cache=True, nogil=True)
def draw(random: NDArray[np.uint64]) -> float:
    """Return the next uniform number in [0, 1) of a generator."""
    random[0] = mix(random[0])
    return (random[0] >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def train_pair(
    vectors: NDArray[np.float32],
    contexts: NDArray[np.float32],
    center: int,
    context: int,
    present: NDArray[np.int64],
    negatives: int,
    rate: float,
    random: NDArray[np.uint64],
) -> None:
    """Take one step of skip-gram with negative sampling for a pair; `present` are the vertices to draw from."""
    change = np.zeros(vectors.shape[1], np.float32)
    for i in range(negatives + 1):
        other = context if i == 0 else present[int(draw(random) * len(present))]
        total = np.float32(0)
        for d in range(vectors.shape[1]):
            total += vectors[center, d] * contexts[other, d]
        error = np.float32(rate * ((1.0 if i == 0 else 0.0) - 1.0 / (1.0 + np.exp(-total))))
        for d in range(vectors.shape[1]):
            change[d] += error * contexts[other, d]
            contexts[other, d] += error * vectors[center, d]
    for d in range(vectors.shape[1]):
        vectors[center, d] += change[d]


@njit(cache=True, nogil=True)
def step_back(
    neighbors: Ids, times: NDArray[np.float64], vertex: int, time: float, half_life: float, random: NDArray[np.uint64]
) -> tuple[int, float]:
    """Follow a random earlier edge of a vertex, a recent one more likely; return its other end and time, or −1."""
    total = 0.0
    for i in range(REMEMBERED):
        if neighbors[vertex, i] >= 0 and times[vertex, i] <= time:
            total += np.exp2((times[vertex, i] - time) / half_life)
    if total < 1e-12:
        return -1, time
    left = draw(random) * total
    found, moment = -1, time
    for i in range(REMEMBERED):
        if neighbors[vertex, i] >= 0 and times[vertex, i] <= time:
            found, moment = neighbors[vertex, i], times[vertex, i]
            left -= np.exp2((moment - time) / half_life)
            if left <= 0:
                break
    return found, moment


@njit(cache=True, nogil=True)
def stream_walk(
    vectors: NDArray[np.float32],
    contexts: NDArray[np.float32],
    neighbors: Ids,
    times: NDArray[np.float64],
    src: Ids,
    dst: Ids,
    now: int,
    present: Ids,
    settings: tuple[int, int, int, float, float],
    seed: int,
) -> None:
    """Train the vectors with the walks of each edge, in both directions, and record the edges."""
    walks, length, negatives, rate, half_life = settings
    random = np.array([mix(seed)])
    for event in range(len(src)):
        time = float(now + event)
        for first, second in ((src[event], dst[event]), (dst[event], src[event])):
            for _ in range(walks):
                train_pair(vectors, contexts, second, first, present, negatives, rate, random)
                vertex, moment = first, time
                for _ in range(length - 1):
                    vertex, moment = step_back(neighbors, times, vertex, moment, half_life, random)
                    if vertex < 0:
                        break
                    train_pair(vectors, contexts, second, vertex, present, negatives, rate, random)
        for first, second in ((src[event], dst[event]), (dst[event], src[event])):
            oldest = np.argmin(times[first])
            neighbors[first, oldest], times[first, oldest] = second, time


class StreamWalkPredictor(CountingPredictor):
    """Cosines of the vectors of StreamWalk, which are updated batch by batch."""

    def __init__(
        self,
        dim: int = 128,
        walks: int = 4,
        length: int = 3,
        negatives: int = 5,
        rate: float = 0.035,
        half_life: float = 5_000.0,
        seed: int = 0,
    ) -> None:
        self.dim, self.seed, self.events = dim, seed, 0
        self.settings = (walks, length, negatives, rate, half_life)
        self._resize(0)

    def _resize(self, size: int) -> None:
        """Create vectors for vertices 0 … size−1, keeping those that exist."""
        rng = np.random.default_rng([self.seed, size])
        old = getattr(self, "vectors", np.empty((0, self.dim), np.float32))
        new = ((rng.random((size - len(old), self.dim)) - 0.5) / self.dim).astype(np.float32)
        self.vectors = np.concatenate([old, new])
        empty = np.empty((0, self.dim), np.float32)
        self.contexts = np.concatenate([getattr(self, "contexts", empty), np.zeros_like(new)])
        rows = np.full((len(new), REMEMBERED), -1)
        self.neighbors = np.concatenate([getattr(self, "neighbors", rows[:0]), rows])
        self.times = np.concatenate([getattr(self, "times", np.empty((0, REMEMBERED))), np.full(rows.shape, -np.inf)])
        self.is_present = np.append(getattr(self, "is_present", np.zeros(0, np.bool_)), np.zeros(len(new), np.bool_))

    def score(self, src: Ids, candidates: Ids) -> Scores:
        """Return the cosines of each source and its candidates; 0 for vertices without an edge."""
        self._resize(max(len(self.vectors), int(max(src.max(), candidates.max())) + 1))
        units = self.vectors / np.maximum(np.linalg.norm(self.vectors, axis=1, keepdims=True), 1e-12)
        units[~self.is_present] = 0
        return np.stack([units[line] @ units[source] for source, line in zip(src, candidates, strict=True)])

    def record(self, src: Ids, dst: Ids, time: Ids) -> None:
        """Train with the walks of each event."""
        self._resize(max(len(self.vectors), int(max(src.max(), dst.max())) + 1))
        self.is_present[src] = self.is_present[dst] = True
        present, seed = np.flatnonzero(self.is_present), np.uint64(self.seed * 1_000_003 + self.events)
        state = self.vectors, self.contexts, self.neighbors, self.times
        stream_walk(*state, src, dst, self.events, present, self.settings, seed)
        self.events += len(src)
