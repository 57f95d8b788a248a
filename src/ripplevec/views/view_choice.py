"""Choice of the views of a graph: the recipe whose vectors best predict edges that were hidden from it.

A tenth of the edges of a sample of the graph is hidden, and every recipe embeds the rest. For each hidden edge, the
vertex with more neighbors ranks the other one among random vertices that are not its neighbors, by cosine. Most random
vertices have few neighbors themselves, so that recognizing hubs earns nothing. The score of a recipe is the mean
reciprocal rank. No labels are needed. The choice is a function of the sample, the recipes and the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Op
from ripplevec.errors import FormatError
from ripplevec.graph.adjacency import Adjacency
from ripplevec.util.parallel import limit_blas_to_one_thread
from ripplevec.views.base import View
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.graph_sample import SampledGraph, is_member
from ripplevec.views.operators import Operator, make_operator
from ripplevec.views.recipes import DENSE_MEAN_DEGREE, Recipes, recipe_by_density
from ripplevec.views.solvers import solve_leading_eigenpairs

HIDDEN_SHARE = 0.1
MAX_HIDDEN = 20_000  # edges hidden at a time: the standard error of a score is then about 0.002
ENOUGH_HIDDEN, MAX_FOLDS = 10_000, 3  # of a small graph, other edges are hidden in turn until so many were ranked
MIN_HIDDEN = 100  # with fewer hidden edges, scores say little: the mean degree decides
RANKED_AMONG = 20  # random vertices per hidden edge
REDRAWS = 10  # times that a random vertex is drawn again if it is a neighbor; after that it does not count
TOLERANCE = 0.01  # of the eigenvalue sums: more accurate vectors rank the hidden edges alike
TIE_ERRORS = 2.0  # standard errors of the difference up to which two scores count as equal
MIN_GAIN = 0.01  # of the score: by so much must other views be better to replace those of a model in use


class ViewChoice(NamedTuple):
    """Which recipe a model uses, and the scores of all recipes; no scores if the graph was too small for them."""

    recipe: str = ""  # its name; empty before the start
    scores: tuple[float, ...] = ()
    edges: int = 0  # of the graph when the choice was made or last confirmed
    density: tuple[float, bool] | None = None  # mean degree, and whether bipartite, in files of earlier versions

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the choice as arrays, for saving; one of an earlier version as that version saved it."""
        if self.density is not None:
            mean_degree, bipartite = self.density
            return {"mean_degree": np.array(mean_degree)} | ({"bipartite": np.array(True)} if bipartite else {})
        return {
            "recipe": np.frombuffer(bytearray(self.recipe, "utf-8"), np.uint8),
            "recipe_scores": np.array(self.scores, np.float64),
            "recipe_edges": np.array(self.edges),
        }

    @classmethod
    def from_state(cls, state: dict[str, NDArray[Any]], recipes: Recipes) -> ViewChoice:
        """Restore the choice from the arrays of `state`. Earlier versions chose by density."""
        if "recipe" in state:
            scores = tuple(float(score) for score in state["recipe_scores"])
            return cls(read_recipe(state["recipe"], recipes), scores, int(state["recipe_edges"]))
        density = float(state["mean_degree"]), bool(state.get("bipartite", False))
        return cls(_select(recipe_by_density(*density), recipes), density=density)


class HiddenEdges(NamedTuple):
    """A graph without its hidden edges, and for each of these a query vertex, its target and other vertices."""

    adjacency: Adjacency
    query: NDArray[np.int64]
    target: NDArray[np.int64]
    others: NDArray[np.int64]  # RANKED_AMONG vertices per hidden edge
    counts: NDArray[np.bool_]  # whether such a vertex counts: it is neither the query nor one of its neighbors


def read_recipe(name: NDArray[np.uint8], recipes: Recipes) -> str:
    """Return the name of a saved recipe; raise `FormatError` if there is no such recipe."""
    text = name.tobytes().decode(errors="replace")
    if text and text not in recipes:
        raise FormatError(f"recipe of the saved views: expected one of {', '.join(recipes)}, got {text!r}")
    return text


def _select(name: str, recipes: Recipes) -> str:
    """Return this name if there is such a recipe, else the first one."""
    return name if name in recipes else next(iter(recipes))


def choose_views(graph: SampledGraph, recipes: Recipes, dim: int, seed: int, threads: int) -> ViewChoice:
    """Choose views for a sample of a graph: of the best recipes that are equally good, the first one."""
    ranks = rank_hidden_edges(graph, recipes, dim, seed, threads)
    if ranks is None:
        return ViewChoice(_choose_by_density(graph, recipes), (), len(graph.pairs))
    return ViewChoice(list(recipes)[find_first_best(ranks)], mean_ranks(ranks), len(graph.pairs))


def reconsider_views(
    graph: SampledGraph, recipes: Recipes, current: str, dim: int, seed: int, threads: int
) -> ViewChoice:
    """Choose views for a model in use. A change would move its vectors, so other views have to be clearly better."""
    ranks = rank_hidden_edges(graph, recipes, dim, seed, threads)
    if ranks is None:
        return ViewChoice(current, (), len(graph.pairs))
    names, best = list(recipes), find_first_best(ranks)
    change = is_better(ranks[best], ranks[names.index(current)], MIN_GAIN)
    return ViewChoice(names[best] if change else current, mean_ranks(ranks), len(graph.pairs))


def rank_hidden_edges(
    graph: SampledGraph, recipes: Recipes, dim: int, seed: int, threads: int
) -> NDArray[np.float64] | None:
    """Return the reciprocal rank of every hidden edge by the vectors of every recipe; None if too few can be hidden."""
    return rank_folds(graph, seed, lambda hidden: _rank_fold(hidden, recipes, dim, threads))


def rank_folds(
    graph: SampledGraph, seed: int, rank: Callable[[HiddenEdges], NDArray[np.float64]]
) -> NDArray[np.float64] | None:
    """Hide edges once or, on a small graph, several times; return the transposed ranks of all, None if too few."""
    count = int(HIDDEN_SHARE * len(graph.pairs))
    if count < MIN_HIDDEN:
        return None
    folds = min(MAX_FOLDS, -(-ENOUGH_HIDDEN // count))
    ranks = np.concatenate([rank(hide_edges(graph, seed, fold)) for fold in range(folds)])
    return ranks.T if len(ranks) >= MIN_HIDDEN else None


def hide_edges(graph: SampledGraph, seed: int, fold: int = 0) -> HiddenEdges:
    """Hide some edges, others in each fold, and draw the vertices among which each of them is ranked."""
    order = np.random.default_rng(seed).permutation(len(graph.pairs))
    rng = np.random.default_rng([seed, fold])
    count = min(int(HIDDEN_SHARE * order.size), MAX_HIDDEN)
    order = np.roll(order, -fold * count)
    adjacency = _make_adjacency(graph, np.sort(order[count:]))
    degree, pairs = adjacency.links.degree[: graph.vertices], graph.pairs[order[:count]]
    pairs = pairs[(degree[pairs] > 0).all(axis=1)]  # a vertex without other edges has no vector
    fewer_first = degree[pairs[:, 0]] < degree[pairs[:, 1]]
    query, target = np.where(fewer_first[:, None], pairs[:, ::-1], pairs).T
    return HiddenEdges(adjacency, query, target, *_draw_others(graph, query, np.flatnonzero(degree), rng))


def _rank_fold(hidden: HiddenEdges, recipes: Recipes, dim: int, threads: int) -> NDArray[np.float64]:
    """Return the reciprocal ranks of hidden edges by the vectors of every recipe (edges × recipes)."""
    embedding = SharedEmbedding(hidden.adjacency, threads)
    with limit_blas_to_one_thread():
        vectors = (embedding.embed(Coordinates(views, dim)) for views in recipes.values())
        return np.stack([reciprocal_ranks(rows, hidden) for rows in vectors], axis=1)


def _make_adjacency(graph: SampledGraph, kept: NDArray[np.int64]) -> Adjacency:
    adjacency = Adjacency()
    adjacency.ensure_rows(graph.vertices)
    adjacency.apply(np.full(kept.size, Op.ADD, np.int8), graph.pairs[kept], graph.weights[kept])
    return adjacency


def _draw_others(
    graph: SampledGraph, query: NDArray[np.int64], active: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw vertices with edges for each query; return also whether each counts: it is no neighbor of the query."""
    ends, size = np.concatenate([graph.pairs, graph.pairs[:, ::-1]]), graph.vertices
    known = np.sort(np.concatenate([ends[:, 0] * size + ends[:, 1], np.arange(size) * (size + 1)]))
    others = active[rng.integers(0, max(active.size, 1), (query.size, RANKED_AMONG))]
    for _ in range(REDRAWS):
        linked = is_member(known, query[:, None] * size + others)
        others[linked] = active[rng.integers(0, max(active.size, 1), int(linked.sum()))]
    return others, ~is_member(known, query[:, None] * size + others)


class SharedEmbedding:
    """Embeds a graph with several recipes; views with the same τ share their eigenvectors."""

    def __init__(self, adjacency: Adjacency, threads: int) -> None:
        self._adjacency, self._rows, self._threads = adjacency, adjacency.capacity, threads
        self._solved: dict[float, tuple[Operator, NDArray[np.float64], NDArray[Any]]] = {}

    def embed(self, coordinates: Coordinates) -> NDArray[np.float32]:
        """Return the vectors of all vertices as they would be served, but not rotated."""
        rows = np.zeros((self._rows, coordinates.dim))
        for view, part in zip(coordinates.views, coordinates.parts, strict=True):
            rows[:, part] = self._embed_view(view, part.stop - part.start)
        return coordinates.scale_rows(rows)

    def _embed_view(self, view: View, columns: int) -> NDArray[np.float64]:
        """Return rows of one view, scaled like those of `SpectralView.start`."""
        tau = view.regularization(self._adjacency.totals(self._rows))
        if tau not in self._solved or self._solved[tau][1].size < columns:
            operator = make_operator("cpu", self._adjacency, self._rows, tau, self._threads)
            self._solved[tau] = operator, *solve_leading_eigenpairs(operator, columns, tolerance=TOLERANCE)
        operator, mu, vectors = self._solved[tau]
        block = vectors[:, :columns].astype(np.float64)
        lengths = view.column_lengths(mu[:columns], operator.mean_degree)
        block *= lengths / np.maximum(operator.column_norms(block), 1e-150)
        return np.asarray(block * np.sqrt(operator.active_count / max(float(np.square(block).sum()), 1e-300)))


def reciprocal_ranks(vectors: NDArray[np.float32], hidden: HiddenEdges) -> NDArray[np.float64]:
    """Return 1 / rank of each target among the other vertices; equal cosines share their mean rank."""
    query = vectors[hidden.query]
    cosine = np.einsum("ij,ij->i", query, vectors[hidden.target])
    rank = np.ones(cosine.size)
    for others, counts in zip(hidden.others.T, hidden.counts.T, strict=True):
        other = np.einsum("ij,ij->i", query, vectors[others])
        rank += counts * ((other > cosine) + 0.5 * (other == cosine))
    return np.asarray(1 / rank)


def mean_ranks(ranks: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the score of every recipe: the mean of its reciprocal ranks."""
    return tuple(float(score) for score in ranks.mean(axis=1))


def find_first_best(ranks: NDArray[np.float64]) -> int:
    """Return the first recipe that the recipe with the highest score does not beat significantly."""
    best = ranks[int(ranks.mean(axis=1).argmax())]
    return next(index for index, other in enumerate(ranks) if not is_better(best, other, 0.0))


def is_better(ranks: NDArray[np.float64], others: NDArray[np.float64], margin: float) -> bool:
    """Return whether a score exceeds another by more than a margin and more than chance; both rank the same edges."""
    difference = ranks - others
    error = float(difference.std()) / np.sqrt(difference.size)
    return bool(difference.mean() > max(margin, TIE_ERRORS * error))


def _choose_by_density(graph: SampledGraph, recipes: Recipes) -> str:
    """Return the recipe for the mean degree of a graph; the first one if there are other recipes to choose from."""
    adjacency = _make_adjacency(graph, np.arange(len(graph.pairs)))
    mean_degree = adjacency.totals(graph.vertices).mean_degree
    dense = mean_degree >= DENSE_MEAN_DEGREE
    return _select(recipe_by_density(mean_degree, dense and adjacency.is_bipartite(graph.vertices)), recipes)
