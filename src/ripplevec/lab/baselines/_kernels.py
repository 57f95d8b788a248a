"""Kernels of the baselines that walk or sample edges. Draws are counter-based: no thread changes what another draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.influence._kernels import draw_uniform

TRIALS = 32  # of a step by rejection, before its probabilities are worked out


class Slots(NamedTuple):
    """A graph to walk on: the neighbors of v stand from slot `first[v]` to before `first[v + 1]`, in order.

    `cumulative[s]` is the sum of the weights of all slots before s.
    """

    first: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    cumulative: NDArray[np.float64]


class Alias(NamedTuple):
    """A distribution to draw from in constant time: entry i stands for itself with a chance, else for another."""

    chance: NDArray[np.float64]
    other: NDArray[np.int64]


class Arcs(NamedTuple):
    """What LINE samples from: the arcs of the graph by weight, and vertices as noise."""

    ends: NDArray[np.int64]  # per arc: from, to
    by_weight: Alias
    noise: Alias


class Plan(NamedTuple):
    """How LINE learns: how many samples in all, noise per sample, and the rate that sinks from sample to sample."""

    samples: int
    negatives: int
    rate: float


def slots_of(matrix: csr_array) -> Slots:
    """The slots of a matrix of weights whose rows are sorted."""
    cumulative = np.concatenate([[0.0], np.cumsum(matrix.data)])
    return Slots(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), cumulative)


@njit(cache=True, nogil=True)
def _pick(cumulative: NDArray[np.float64], begin: int, end: int, share: float) -> int:
    """The slot at which this share of the weight from slot begin to before slot end is reached."""
    aim = cumulative[begin] + share * (cumulative[end] - cumulative[begin])
    return begin + np.searchsorted(cumulative[begin + 1 : end], aim, side="right")


@njit(cache=True, nogil=True)
def walk(
    first: NDArray[np.int64],
    neighbor: NDArray[np.int64],
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """Fill each row of `walks` with a walk from its start, a neighbor at a time, in proportion to weight.

    The graph is that of `Slots`. Where a walk cannot go on, −1 follows.
    """
    for row in range(len(starts)):
        here = starts[row]
        for step in range(walks.shape[1]):
            walks[row, step] = here
            if here < 0 or first[here] == first[here + 1]:
                here = -1
                continue
            here = neighbor[_pick(cumulative, first[here], first[here + 1], draw_uniform(key, starts[row], step))]


@njit(cache=True, nogil=True)
def _bias(slots: Slots, biases: tuple[float, float, float], before: int, there: int) -> float:
    """What a step is multiplied by: the first where it returns, the second where it stays near, the third beyond."""
    if there == before:
        return biases[0]
    near = slots.neighbor[slots.first[before] : slots.first[before + 1]]
    at = np.searchsorted(near, there)
    return biases[1] if at < len(near) and near[at] == there else biases[2]


@njit(cache=True, nogil=True)
def _biased_slot(
    slots: Slots, biases: tuple[float, float, float], before: int, here: int, key: int, start: int, step: int
) -> int:
    """A slot of `here` in proportion to weight times bias: drawn by weight until accepted by bias.

    After a number of refusals, which say nothing about the next draw, the sums are made and one draw decides.
    """
    begin, end = slots.first[here], slots.first[here + 1]
    top = max(biases[0], biases[1], biases[2])
    for trial in range(TRIALS):
        slot = _pick(slots.cumulative, begin, end, draw_uniform(key, start, step + (2 * trial << 32)))
        accepted = top * draw_uniform(key, start, step + (2 * trial + 1 << 32))
        if before < 0 or accepted < _bias(slots, biases, before, slots.neighbor[slot]):
            return slot
    reached = np.zeros(end - begin + 1)
    for slot in range(begin, end):
        weight = slots.cumulative[slot + 1] - slots.cumulative[slot]
        reached[slot - begin + 1] = reached[slot - begin] + weight * _bias(slots, biases, before, slots.neighbor[slot])
    return begin + _pick(reached, 0, end - begin, draw_uniform(key, start, step + (2 * TRIALS << 32)))


@njit(cache=True, nogil=True)
def biased_walk(
    slots: Slots,
    biases: tuple[float, float, float],
    starts: NDArray[np.int64],
    key: int,
    walks: NDArray[np.int64],
) -> None:
    """As `walk`, but where to go depends on where the walk came from: back, near it, or away (see `_bias`)."""
    for row in range(len(starts)):
        before, here = -1, starts[row]
        for step in range(walks.shape[1]):
            walks[row, step] = here
            if here < 0 or slots.first[here] == slots.first[here + 1]:
                here = -1
                continue
            slot = _biased_slot(slots, biases, before, here, key, starts[row], step)
            before, here = here, slots.neighbor[slot]


@njit(cache=True, nogil=True)
def alias_table(weights: NDArray[np.float64]) -> Alias:
    """The table of a distribution in proportion to weights (Vose): what is over 1 fills up what is under it."""
    count = len(weights)
    chance, other = weights * (count / weights.sum()), np.arange(count)
    under, over = np.flatnonzero(chance < 1), np.flatnonzero(chance >= 1)
    unders, overs = len(under), len(over)
    waiting = np.empty(count, np.int64)
    waiting[:unders] = under
    while unders and overs:
        unders -= 1
        small, large = waiting[unders], over[overs - 1]
        other[small] = large
        chance[large] -= 1 - chance[small]
        if chance[large] < 1:
            overs -= 1
            waiting[unders] = large
            unders += 1
    for left in waiting[:unders]:  # by rounding alone
        chance[left] = 1
    return Alias(chance, other)


@njit(cache=True, nogil=True)
def alias_draw(table: Alias, share: float) -> int:
    """The entry that a number in [0, 1) stands for: its whole part chooses, the rest decides."""
    scaled = share * len(table.chance)
    entry = int(scaled)
    return entry if scaled - entry < table.chance[entry] else table.other[entry]


@njit(cache=True, nogil=True)
def learn_arcs(
    arcs: Arcs,
    vectors: NDArray[np.float32],
    contexts: NDArray[np.float32],
    plan: Plan,
    key: int,
    first: int,
    last: int,
) -> None:
    """The samples first … last−1 of LINE: the ends of an arc are drawn together, noise is pushed away.

    `contexts` is `vectors` itself for proximity of the first order, and other vectors for the second.
    """
    step = np.empty(vectors.shape[1], np.float32)
    for sample in range(first, last):
        rate = plan.rate * max(1 - sample / plan.samples, 1e-4)
        arc = alias_draw(arcs.by_weight, draw_uniform(key, sample, 0))
        source, target = arcs.ends[arc]
        step[:] = 0
        for turn in range(plan.negatives + 1):
            other = target if turn == 0 else alias_draw(arcs.noise, draw_uniform(key, sample, turn))
            if turn and other in (source, target):
                continue
            push = np.float32(rate * ((turn == 0) - 1 / (1 + np.exp(-np.dot(vectors[source], contexts[other])))))
            for j in range(len(step)):
                step[j] += push * contexts[other, j]
                contexts[other, j] += push * vectors[source, j]
        for j in range(len(step)):
            vectors[source, j] += step[j]
