"""Measurement `optimum`: the distance of a rule from the optimum it approximates, along a stream, and Lemma 2.

Vertices arrive one at a time, in an order given by the seed, at `draws` models, which differ in the vertices that an
arrival influences. At each of the `marks` (shares of the vertices that are present) the optimum F* is computed for each
model, for the last arrival that influenced a vertex, given the state before it. `tolerance` is that of the search.
All draws of rule `ripple` have the views that the first one chooses at the start, so their coordinates are comparable.

Lemma 2 compares, for every vertex u, the *deviation* |E[f_u − f*_u]|² with α = 1 − √(1 − 1/|I|) of the arrival, where
the expectation is over the influenced set I: here the mean over the draws. The α are those of all arrivals since the
last mark, in all draws. The deviations are those of the vertices that the arrival at the mark did not touch in any
draw, because the new vertex and the influenced ones belong to that arrival alone. Controls replace the rule: the state
before the arrival with zero for the new vertex (`still`), a `random` F with FᵀF = I, and zero vectors (`zero`).

A metric at a mark ends in @ and the percentage. So do the quantiles at the last mark: the `spread` of the deviations,
of those of the controls, and of α.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.evaluation.protocols import Arrivals, start_size
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    Metrics,
    TrialResult,
    check_known_parameters,
    check_marks,
    load_data,
    mark_sizes,
    share_suffix,
)
from ripplevec.lab.experiments.measurements.method_scores import build_embedder, full_parameters
from ripplevec.lab.experiments.measurements.trace import (
    ArrivalState,
    LocalAction,
    Matrix,
    TracedModel,
    find_last_action,
)
from ripplevec.lab.objective import Loss, Objective, Optimum, minimize, random_start
from ripplevec.lab.objective.gap import min_homophily_loss
from ripplevec.rules.ripple import RippleRule

EMBEDDER_PARAMETERS = ("dim", "rule", "anchor_growth", "threads")
OPTIMUM_PARAMETERS = ("start", "marks", "draws", "tolerance")
QUANTILES = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
MAX_SAMPLED_EDGES = 20_000  # directed edges that the Pythagorean premise is checked on

Values = NDArray[np.float64]


def _check_optimum(configuration: Configuration) -> None:
    check_known_parameters(configuration, *EMBEDDER_PARAMETERS, *OPTIMUM_PARAMETERS)
    check_marks(configuration)
    draws = configuration.get("draws")
    if not isinstance(draws, int) or draws < 1:
        raise InvalidValueError.of("draws", "an integer ≥ 1", draws)
    _build_model(configuration, 0)


def _build_model(configuration: Configuration, draw: int, **views: str) -> Embedder:
    parameters = {name: configuration[name] for name in EMBEDDER_PARAMETERS if name in configuration}
    return build_embedder(parameters | views | {"seed": configuration["seed"] * configuration.get("draws", 1) + draw})


def _choose_views(configuration: Configuration, arrivals: Arrivals, start: int) -> dict[str, str]:
    """Return the views that the first draw chooses at the start, as a parameter; nothing for rule `paper`."""
    rule = _build_model(configuration, 0).fit(arrivals.batch(0, start))._engine.rule
    return {"views": rule.choice.recipe} if isinstance(rule, RippleRule) else {}


def _measure_optimum(configuration: Configuration) -> TrialResult:
    dataset, draws = load_data(configuration), configuration["draws"]
    arrivals = Arrivals.from_dataset(dataset, configuration["seed"])
    start = start_size(dataset, configuration["start"])
    views = _choose_views(configuration, arrivals, start)
    models = [TracedModel(_build_model(configuration, draw, **views), arrivals, start) for draw in range(draws)]
    metrics: Metrics = {}
    for mark, size in mark_sizes(configuration, dataset).items():
        for model in models:
            model.actions.clear()
        last = find_last_action(arrivals, start, size)
        states = [model.advance_to(last) for model in models]
        optima = [minimize(_objective(state), tolerance=configuration.get("tolerance", 1e-6)) for state in states]
        actions = [action for model in models for action in model.actions]
        observation = MarkObservation(states, optima, actions, configuration["seed"])
        at_mark = _deviation_metrics(observation) | _loss_metrics(observation)
        if configuration.get("rule") == "paper":
            lower_bound = min_homophily_loss(states[0].adjacency, observation.columns)
            at_mark |= _premise_metrics(observation) | {"least_homophily": lower_bound}
        metrics |= {name + share_suffix(mark): value for name, value in at_mark.items()}
    return TrialResult(metrics | _quantile_metrics(observation), full_parameters(models[0].model))


OPTIMUM = Measurement(_check_optimum, _measure_optimum)


class MarkObservation(NamedTuple):
    """The observations at a mark: state and optimum of every draw, and all actions since the last mark."""

    states: list[ArrivalState]
    optima: list[Optimum]
    actions: list[LocalAction]
    seed: int

    @property
    def columns(self) -> int:
        """The dimension k."""
        return int(self.states[0].vectors.shape[1])

    @property
    def alphas(self) -> Values:
        """The α of all actions."""
        return np.array([action.alpha for action in self.actions])

    @property
    def untouched(self) -> NDArray[np.bool_]:
        """Whether each vertex had a vector before the arrival and was influenced in no draw."""
        untouched = np.zeros(len(self.states[0].vectors), bool)
        untouched[self.states[0].rows] = True
        for state in self.states:
            untouched[state.influenced] = False
        return untouched

    def deviations(self) -> dict[str, Values]:
        """Return |E[f_u − f*_u]|² of every vertex, for the rule and for each control, by metric prefix."""
        optimum: Matrix = np.mean([optimum.vectors for optimum in self.optima], axis=0)
        rule: Matrix = np.mean([state.vectors for state in self.states], axis=0)
        unchanged = np.zeros_like(optimum)
        unchanged[self.states[0].rows] = np.mean([state.before for state in self.states], axis=0)
        noise = random_start(len(optimum), self.columns, self.seed)
        compared = {"": rule, "still_": unchanged, "random_": noise, "zero_": np.zeros_like(optimum)}
        return {prefix: np.square(vectors - optimum).sum(axis=1) for prefix, vectors in compared.items()}


def _objective(state: ArrivalState) -> Objective:
    return Objective(state.adjacency, state.before, state.rows)


def _deviation_metrics(observation: MarkObservation) -> Metrics:
    """Return deviations relative to the mean squared length of the optimum, and compared with α."""
    alphas, deviations, untouched = observation.alphas, observation.deviations(), observation.untouched
    pairs = zip(observation.states, observation.optima, strict=True)
    single_draws = [np.square(state.vectors - optimum.vectors).sum() for state, optimum in pairs]
    metrics = {
        "vertices": len(untouched),
        "converged": float(np.mean([optimum.converged for optimum in observation.optima])),
        "alpha_median": float(np.median(alphas)),
        "alpha_least": float(alphas.min()),
        "single_relative": float(np.mean(single_draws) / observation.columns),
        "newcomer_deviation": float(deviations[""][-1]),
    }
    for prefix, deviation in deviations.items():
        metrics[f"{prefix}relative"] = float(deviation.sum() / observation.columns)
        comparison = _compare_with_alphas(deviation[untouched], alphas)
        metrics |= {prefix + name: value for name, value in comparison.items()}
    return metrics


def _compare_with_alphas(deviation: Values, alphas: Values) -> Metrics:
    """Return the largest deviation, the share of pairs below α, and the share of α that bound all deviations."""
    reached = np.searchsorted(np.sort(alphas), deviation, side="right") / len(alphas)
    return {
        "deviation_max": float(deviation.max()),
        "below": 100 * float(1 - reached.mean()),
        "all_below": 100 * float(1 - reached.max()),
    }


def _loss_metrics(observation: MarkObservation) -> Metrics:
    """Return the losses of the rule and of the optimum, and the degrees their lengths favor, as means over draws."""
    rule_losses = [_objective(state).loss(state.vectors) for state in observation.states]
    metrics = _mean_losses("", rule_losses)
    metrics |= _mean_losses("optimum_", [optimum.loss for optimum in observation.optima])
    vectors_of = {
        "": [state.vectors for state in observation.states],
        "optimum_": [optimum.vectors for optimum in observation.optima],
    }
    for prefix, draws in vectors_of.items():
        degrees = [_length_weighted_degree(observation.states[0], vectors) for vectors in draws]
        metrics[f"{prefix}degree"] = float(np.mean(degrees))
    return metrics


def _length_weighted_degree(state: ArrivalState, vectors: Matrix) -> float:
    """Return the mean degree weighted by squared length over the plain mean degree.

    Homophily is cheap where vertices have few neighbors, so optimal vectors are long there.
    """
    degrees = state.adjacency.sum(axis=1)
    return float(degrees @ np.square(vectors).sum(axis=1) / vectors.shape[1] / degrees.mean())


def _mean_losses(prefix: str, losses: list[Loss]) -> Metrics:
    return {
        f"{prefix}smoothness": float(np.mean([loss.smoothness for loss in losses])),
        f"{prefix}homophily": float(np.mean([loss.homophily for loss in losses])),
        f"{prefix}loss": float(np.mean([loss.total for loss in losses])),
    }


def _premise_metrics(observation: MarkObservation) -> Metrics:
    """Return how far the premises of the proof of Lemma 2 hold for rule `paper`: lengths, smoothness, Pythagoras."""
    lengths = np.concatenate([np.square(state.vectors).sum(axis=1) for state in observation.states])
    several = [action for action in observation.actions if len(action.influenced) > 1 and action.smoothness > 0]
    pairs = zip(observation.states, observation.optima, strict=True)
    ratios = np.concatenate([_pythagorean_ratios(state, optimum) for state, optimum in pairs])
    return {
        "orthogonality_error": max(map(_orthogonality_error, observation.states)),
        "length_median": float(np.median(lengths)),
        "length_max": float(lengths.max()),
        "sets_of_one": 100 * float(np.mean([len(action.influenced) == 1 for action in observation.actions])),
        "printed_over_true": float(np.median([action.printed_smoothness / action.smoothness for action in several])),
        "pythagoras_median": float(np.median(ratios)),
        "pythagoras_above_one": 100 * float(np.mean(ratios > 1)),
    }


def _orthogonality_error(state: ArrivalState) -> float:
    """Return the largest entry of |FᵀF − I|, which Lemma 1 states to be zero."""
    return float(np.abs(state.vectors.T @ state.vectors - np.eye(state.vectors.shape[1])).max())


def _pythagorean_ratios(state: ArrivalState, optimum: Optimum) -> Values:
    """Return |f_i − f_j|² over |f_i − f*_i|² + |f*_i − f*_j|² + |f*_j − f_j|² along edges, or a sample of them."""
    i, j = (ends[:: len(ends) // MAX_SAMPLED_EDGES + 1] for ends in state.adjacency.nonzero())
    f, best = state.vectors, optimum.vectors
    parts = [f[i] - best[i], best[i] - best[j], best[j] - f[j]]
    right: Values = sum(np.square(part).sum(axis=1) for part in parts)
    left: Values = np.square(f[i] - f[j]).sum(axis=1)
    return left[right > 0] / right[right > 0]


def _quantile_metrics(observation: MarkObservation) -> Metrics:
    """Return the quantiles of the deviations of untouched vertices, and of α."""
    untouched = observation.untouched
    values = {f"{prefix}spread": deviation[untouched] for prefix, deviation in observation.deviations().items()}
    values["alpha_spread"] = observation.alphas
    return {
        f"{name}@{share}": float(np.quantile(sample, share / 100))
        for name, sample in values.items()
        for share in QUANTILES
    }
