"""Compiled kernels of the baselines that sample: random walks, and the edge sampling of LINE and DNE.

Draws are counter-based: a draw depends on its key and counters alone, so that threads do not influence each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_uniform

MAX_REJECTIONS = 32  # rejection-sampling trials per step before the probabilities are summed up


class WalkGraph(NamedTuple):
    """A weighted graph to walk on, in compressed sparse rows.

    The sorted neighbors of v are at the slots `first[v]` to `first[v + 1] - 1`. `cumulative[s]` is the sum of the
    weights of all slots before s.
    """

    first: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    cumulative: NDArray[np.float64]


class AliasTable(NamedTuple):
    """A discrete distribution sampled in constant time: entry i yields i with `chance[i]`, else `other[i]`."""

    chance: NDArray[np.float64]
    other: NDArray[np.int64]


class EdgeSampler(NamedTuple):
    """The distributions that LINE and DNE sample from: directed edges by weight, and noise vertices."""

    endpoints: NDArray[np.int64]  # per directed edge: source, target
    by_weight: AliasTable
    noise: AliasTable


class TrainingSchedule(NamedTuple):
    """A training of LINE or DNE: total samples, noise vertices per sample, and the initial rate of the linear decay."""

    samples: int
    negatives: int
    rate: float


def build_walk_graph(matrix: csr_array) -> WalkGraph:
    """Convert a matrix of weights with sorted rows."""
    cumulative = np.concatenate([[0.0], np.cumsum(matrix.data)])
    return WalkGraph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), cumulative)


@njit(cache=True, nogil=True)
def _sample_slot(cumulative: NDArray[np.float64], begin: int, end: int, share: float) -> int:
    """Return the slot at which this share of the weight of the slots `begin` to `end - 1` is reached."""
    target = cumulative[begin] + share * (cumulative[end] - cumulative[begin])
    return begin + np.searchsorted(cumulative[begin + 1 : end], target, side="right")


@njit(cache=True, nogil=True)
def walk_by_weight(
    first: NDArray[np.int64],
    neighbor: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` with a random walk from its start; steps are drawn in proportion to edge weight.

    The first three arguments are the fields of a `WalkGraph`. A walk that cannot continue is filled up with −1.
    """
    for row in range(len(starts)):
        current = starts[row]
        for step in range(walks.shape[1]):
            walks[row, step] = current
            if current < 0 or first[current] == first[current + 1]:
                current = -1
                continue
            share = draw_uniform(key, starts[row], step)
            current = neighbor[_sample_slot(cumulative, first[current], first[current + 1], share)]


@njit(cache=True, nogil=True)
def _step_bias(graph: WalkGraph, biases: tuple[float, float, float], previous: int, candidate: int) -> float:
    """Return node2vec's factor for a step: biases for returning, for a neighbor of `previous`, for other vertices."""
    if candidate == previous:
        return biases[0]
    neighbors = graph.neighbor[graph.first[previous] : graph.first[previous + 1]]
    position = np.searchsorted(neighbors, candidate)
    return biases[1] if position < len(neighbors) and neighbors[position] == candidate else biases[2]


@njit(cache=True, nogil=True)
def _sample_biased_slot(
    graph: WalkGraph, biases: tuple[float, float, float], previous: int, current: int, key: int, start: int, step: int
) -> int:
    """Draw a slot of `current` in proportion to weight times bias, by rejection sampling.

    Slots are drawn by weight and accepted by bias. After `MAX_REJECTIONS` rejections, which are independent of the next
    draw, the products are summed up and one draw decides.
    """
    begin, end = graph.first[current], graph.first[current + 1]
    largest = max(biases[0], biases[1], biases[2])
    for trial in range(MAX_REJECTIONS):
        slot = _sample_slot(graph.cumulative, begin, end, draw_uniform(key, start, step + (2 * trial << 32)))
        threshold = largest * draw_uniform(key, start, step + (2 * trial + 1 << 32))
        if previous < 0 or threshold < _step_bias(graph, biases, previous, graph.neighbor[slot]):
            return slot
    sums = np.zeros(end - begin + 1)
    for slot in range(begin, end):
        weight = graph.cumulative[slot + 1] - graph.cumulative[slot]
        sums[slot - begin + 1] = sums[slot - begin] + weight * _step_bias(graph, biases, previous, graph.neighbor[slot])
    return begin + _sample_slot(sums, 0, end - begin, draw_uniform(key, start, step + (2 * MAX_REJECTIONS << 32)))


@njit(cache=True, nogil=True)
def walk_with_bias(
    graph: WalkGraph,
    biases: tuple[float, float, float],
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` as `walk_by_weight` does, with steps that depend on the previous vertex.

    `biases` multiply the weight of a step: back to the previous vertex, to one of its neighbors, to any other vertex.
    """
    for row in range(len(starts)):
        previous, current = -1, starts[row]
        for step in range(walks.shape[1]):
            walks[row, step] = current
            if current < 0 or graph.first[current] == graph.first[current + 1]:
                current = -1
                continue
            slot = _sample_biased_slot(graph, biases, previous, current, key, starts[row], step)
            previous, current = current, graph.neighbor[slot]


@njit(cache=True, nogil=True)
def build_alias_table(weights: NDArray[np.float64]) -> AliasTable:
    """Build the alias table of a distribution in proportion to weights (Vose's method)."""
    count = len(weights)
    chance, other = weights * (count / weights.sum()), np.arange(count)
    small_entries, large_entries = np.flatnonzero(chance < 1), np.flatnonzero(chance >= 1)
    small_count, large_count = len(small_entries), len(large_entries)
    stack = np.empty(count, np.int64)
    stack[:small_count] = small_entries
    while small_count and large_count:
        small_count -= 1
        small, large = stack[small_count], large_entries[large_count - 1]
        other[small] = large
        chance[large] -= 1 - chance[small]
        if chance[large] < 1:
            large_count -= 1
            stack[small_count] = large
            small_count += 1
    for entry in stack[:small_count]:  # below 1 by rounding only
        chance[entry] = 1
    return AliasTable(chance, other)


@njit(cache=True, nogil=True)
def sample_alias(table: AliasTable, share: float) -> int:
    """Return the entry for a uniform number in [0, 1): its integer part chooses a row, its fraction decides."""
    scaled = share * len(table.chance)
    entry = int(scaled)
    return entry if scaled - entry < table.chance[entry] else table.other[entry]


@njit(cache=True, nogil=True)
def train_on_edges(
    sampler: EdgeSampler,
    vectors: NDArray[np.float32],
    contexts: NDArray[np.float32],
    schedule: TrainingSchedule,
    key: int,
    first: int,
    last: int,
) -> None:
    """Apply the samples `first` to `last - 1` of LINE: attract the endpoints of an edge, repel noise vertices.

    `contexts` is `vectors` itself for first-order proximity, and a separate matrix for second-order proximity.
    """
    step = np.empty(vectors.shape[1], np.float32)
    for sample in range(first, last):
        rate = schedule.rate * max(1 - sample / schedule.samples, 1e-4)
        edge = sample_alias(sampler.by_weight, draw_uniform(key, sample, 0))
        source, target = sampler.endpoints[edge]
        step[:] = 0
        for trial in range(schedule.negatives + 1):
            other = target if trial == 0 else sample_alias(sampler.noise, draw_uniform(key, sample, trial))
            if trial and other in (source, target):
                continue
            push = np.float32(rate * ((trial == 0) - 1 / (1 + np.exp(-np.dot(vectors[source], contexts[other])))))
            for j in range(len(step)):
                step[j] += push * contexts[other, j]
                contexts[other, j] += push * vectors[source, j]
        for j in range(len(step)):
            vectors[source, j] += step[j]


@njit(cache=True, nogil=True)
def train_selected_on_edges(
    sampler: EdgeSampler,
    vectors: NDArray[np.float32],
    contexts: NDArray[np.float32],
    schedule: TrainingSchedule,
    key: int,
    trainable: NDArray[np.bool_],
    smoothness: float,
) -> None:
    """Apply all samples of second-order LINE, but move only the rows of trainable vertices.

    After each sample, its source moves back toward the row it had before the training, by `smoothness` times the rate.
    """
    step, before = np.empty(vectors.shape[1], np.float32), vectors.copy()
    for sample in range(schedule.samples):
        rate = schedule.rate * max(1 - sample / schedule.samples, 1e-4)
        edge = sample_alias(sampler.by_weight, draw_uniform(key, sample, 0))
        source, target = sampler.endpoints[edge]
        step[:] = 0
        for trial in range(schedule.negatives + 1):
            other = target if trial == 0 else sample_alias(sampler.noise, draw_uniform(key, sample, trial))
            if trial and other in (source, target):
                continue
            push = np.float32(rate * ((trial == 0) - 1 / (1 + np.exp(-np.dot(vectors[source], contexts[other])))))
            for j in range(len(step)):
                step[j] += push * contexts[other, j]
                if trainable[other]:
                    contexts[other, j] += push * vectors[source, j]
        if trainable[source]:
            pull = np.float32(smoothness * rate)
            for j in range(len(step)):
                vectors[source, j] += step[j] - pull * (vectors[source, j] - before[source, j])
