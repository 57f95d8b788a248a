"""Choice of the weight of attribute parts: by how well whole vectors predict edges that were hidden from them.

Edges of a sample of the graph are hidden and ranked as in the choice of views (`views/view_choice.py`). Edge parts, the
projection of attributes and attribute parts are computed from the other edges. Hidden edges tell what attributes add to
edges or spoil, not what they are worth beyond edges. So the weight stays `DEFAULT_WEIGHT` unless another one predicts
hidden edges clearly better. No labels are needed. The choice is a function of the graph, the attributes and the seed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.attributes._kernels import join_rows
from ripplevec.attributes.store import DEFAULT_WEIGHT, AttributeStore, StoredRows, WeightChoice
from ripplevec.batch import AttributeRows
from ripplevec.graph.adjacency import Adjacency
from ripplevec.graph.graph import Graph
from ripplevec.views.graph_sample import LocalReader, sample_with_numbers
from ripplevec.views.view_choice import MIN_GAIN, HiddenEdges, is_better, mean_ranks, rank_folds, reciprocal_ranks

WEIGHTS = (0.25, DEFAULT_WEIGHT, 1.0, 2.0)
"""Weights to choose from. None is 0: a vertex without edges has its attribute part only."""

EdgeEmbedding = Callable[[Adjacency], NDArray[np.float32]]
"""Computes the edge parts of all rows of a graph."""

_log = logging.getLogger(__name__)


def choose_weight(embed_edges: EdgeEmbedding, store: AttributeStore, given: StoredRows) -> WeightChoice:
    """Choose the weight for a graph and the attributes of its vertices; the default one if the graph is small."""
    graph = store.graph
    reader = LocalReader(graph.adjacency, graph.arrival[: graph.row_count])
    sample, numbers = sample_with_numbers(reader, store.settings.seed)
    rows, arrival = graph.rows_by_arrival(), graph.arrival
    attributes = select_attributes(given, rows[np.searchsorted(arrival[rows], numbers)])

    def rank(hidden: HiddenEdges) -> NDArray[np.float64]:
        edge = embed_edges(hidden.adjacency)[: sample.vertices]
        return rank_weights(edge, embed_attributes(store, hidden.adjacency, attributes, sample.vertices), hidden)

    ranks = rank_folds(sample, store.settings.seed, rank)
    if ranks is None:
        return WeightChoice()
    choice = select_weight(ranks)
    scores = {weight: round(score, 4) for weight, score in zip(WEIGHTS, choice.scores, strict=True)}
    _log.info("attribute weight chosen: weight=%g scores=%s", choice.weight, scores)
    return choice


def select_attributes(given: StoredRows, members: NDArray[np.int64]) -> AttributeRows:
    """Return the attributes of some rows; their ids are positions in `members`."""
    order = np.argsort(given.rows, kind="stable")
    found = order[np.minimum(np.searchsorted(given.rows, members, sorter=order), order.size - 1)]
    positions = np.flatnonzero(given.rows[found] == members)
    found = found[positions]
    if given.values.ndim == 2:
        values = given.values[found]
        return AttributeRows(positions, values, np.arange(found.size + 1) * values.shape[1], np.empty(0, np.int32))
    size = int(given.columns.max(initial=0)) + 1
    selected = csr_array((given.values, given.columns, given.begin), shape=(given.rows.size, size))[found]
    names, columns = np.unique(selected.indices, return_inverse=True)
    begin = selected.indptr.astype(np.int64)
    return AttributeRows(positions, selected.data, begin, columns.astype(np.int32), names.astype(np.int64))


def embed_attributes(
    store: AttributeStore, adjacency: Adjacency, attributes: AttributeRows, vertices: int
) -> NDArray[np.float32]:
    """Return the attribute parts of the vertices of a graph, learned from this graph."""
    graph, numbers = Graph(), np.arange(vertices)
    graph.ids.intern(numbers, numbers)
    graph.adjacency = adjacency
    graph.arrival[:vertices] = numbers
    other = AttributeStore(graph, store.settings)
    other.set_start(np.asarray(attributes.ids), attributes)
    return other.parts[:vertices]


def rank_weights(edge: NDArray[np.float32], parts: NDArray[np.float32], hidden: HiddenEdges) -> NDArray[np.float64]:
    """Return the reciprocal ranks of hidden edges by vectors with every weight (edges × weights)."""
    joined = np.empty((len(edge), edge.shape[1] + parts.shape[1]), np.float32)
    ranks = []
    for weight in WEIGHTS:
        join_rows(edge, parts, weight, joined)
        ranks.append(reciprocal_ranks(joined, hidden))
    return np.stack(ranks, axis=1)


def select_weight(ranks: NDArray[np.float64]) -> WeightChoice:
    """Return the weight nearest to the default one among those that the best one is not clearly better than."""
    best = ranks[int(ranks.mean(axis=1).argmax())]
    good = [weight for weight, other in zip(WEIGHTS, ranks, strict=True) if not is_better(best, other, MIN_GAIN)]
    return WeightChoice(min(good, key=lambda weight: abs(np.log(weight / DEFAULT_WEIGHT))), mean_ranks(ranks))
