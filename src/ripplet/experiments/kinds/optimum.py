"""Kind `optimum`: how far a rule is from the optimum it approximates, along a stream, and what Lemma 2 makes of it.

Vertices arrive one at a time, in an order that the seed decides, at as many models as there are `draws`: they differ in
whom an arrival influences. When a share of the vertices is there (`marks`), the optimum F* is found for the last
arrival that influenced anybody, given the state before it, for each of the models. `tolerance` is that of the search.

Lemma 2 compares, for every vertex u, the *deviation* |E[f_u − f*_u]|² with α = 1 − √(1 − 1/|I|) of the arrival, the
expectation being over whom it influences: here the mean over the draws. The α are those of all arrivals since the last
mark, of all draws. Controls stand in for the rule: the state before the arrival, with nothing for the newcomer
(`still`), a `random` F with FᵀF = I, and no vectors at all (`zero`). A figure at a mark has its per cent behind an @.
So have the quantiles at the last mark: the `spread` of the deviations, of the controls' and of α.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ripplet.embedder import Embedder
from ripplet.errors import InvalidValueError
from ripplet.evaluation.protocols import Arrivals, start_size
from ripplet.experiments.kinds.base import Configuration, Figures, Kind, Measured, at, check_only, data
from ripplet.experiments.kinds.followed import Action, Followed, Matrix, State, last_action
from ripplet.experiments.kinds.marks import check_marks, places
from ripplet.experiments.kinds.methods import embedder, spelt_out
from ripplet.objective import Loss, Objective, Optimum, minimise, random_start
from ripplet.objective.bound import least_homophily

EMBEDDER = ("dim", "rule", "anchor_growth", "threads")
OWN = ("start", "marks", "draws", "tolerance")
QUANTILES = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
UNIT = 0.99  # a squared length from which a row counts as one of length one

Values = NDArray[np.float64]


def _check(configuration: Configuration) -> None:
    check_only(configuration, *EMBEDDER, *OWN)
    check_marks(configuration)
    draws = configuration.get("draws")
    if not isinstance(draws, int) or draws < 1:
        raise InvalidValueError.of("draws", "a whole number ≥ 1", draws)
    _model(configuration, 0)


def _model(configuration: Configuration, draw: int) -> Embedder:
    own = {name: configuration[name] for name in EMBEDDER if name in configuration}
    return embedder(own | {"seed": configuration["seed"] * configuration.get("draws", 1) + draw})


def _run(configuration: Configuration) -> Measured:
    dataset, draws = data(configuration), configuration["draws"]
    arrivals, start = Arrivals.of(dataset, configuration["seed"]), start_size(dataset, configuration["start"])
    followed = [Followed(_model(configuration, draw), arrivals, start) for draw in range(draws)]
    figures: Figures = {}
    for mark, place in places(configuration, dataset).items():
        for one in followed:
            one.actions.clear()
        last = last_action(arrivals, start, place)
        states = [one.until(last) for one in followed]
        optima = [_optimum(state, configuration.get("tolerance", 1e-6)) for state in states]
        actions = [action for one in followed for action in one.actions]
        found = _at_a_mark(states, optima, actions, configuration["seed"])
        if configuration.get("rule") == "paper":
            found |= _premises(states, optima, actions)
        figures |= {name + at(mark): value for name, value in found.items()}
    figures |= _spreads(states, optima, actions, configuration["seed"])
    return Measured(figures, spelt_out(followed[0].model))


KIND = Kind(_check, _run)


def _objective(state: State) -> Objective:
    return Objective(state.adjacency, state.before, state.rows)


def _optimum(state: State, tolerance: float) -> Optimum:
    return minimise(_objective(state), tolerance=tolerance)


def _at_a_mark(states: list[State], optima: list[Optimum], actions: list[Action], seed: int) -> Figures:
    alphas = np.array([action.alpha for action in actions])
    figures = {
        "vertices": len(states[0].vectors),
        "converged": float(np.mean([optimum.converged for optimum in optima])),
        "alpha_median": float(np.median(alphas)),
        "alpha_low": float(np.quantile(alphas, 0.1)),
        "alpha_least": float(alphas.min()),
        "single_relative": float(
            np.mean([_of_one(state, optimum) for state, optimum in zip(states, optima, strict=True)])
        ),
    }
    for who, deviation in _deviations(states, optima, seed).items():
        figures |= {
            who + name: value for name, value in _against(deviation, alphas, states[0].vectors.shape[1]).items()
        }
    return figures | _losses(states, optima)


def _of_one(state: State, optimum: Optimum) -> float:
    """The deviations of one draw, relative to the lengths; no expectation taken."""
    return float(np.square(state.vectors - optimum.vectors).sum() / state.vectors.shape[1])


def _deviations(states: list[State], optima: list[Optimum], seed: int) -> dict[str, Values]:
    """|E[f_u − f*_u]|² of every vertex, by what stands in for f: the rule, or one of the controls."""
    best: Matrix = np.mean([optimum.vectors for optimum in optima], axis=0)
    ours: Matrix = np.mean([state.vectors for state in states], axis=0)
    still = np.zeros_like(best)
    still[states[0].rows] = np.mean([state.before for state in states], axis=0)
    noise = random_start(len(best), best.shape[1], seed)
    compared = {"": ours, "still_": still, "random_": noise, "zero_": np.zeros_like(best)}
    return {who: np.square(vectors - best).sum(axis=1) for who, vectors in compared.items()}


def _against(deviation: Values, alphas: Values, columns: int) -> Figures:
    """Deviations beside α: their mean and largest, relative to the mean squared length, and how many are below α."""
    reached = np.searchsorted(np.sort(alphas), deviation, side="right") / len(alphas)
    return {
        "deviation_mean": float(deviation.mean()),
        "deviation_max": float(deviation.max()),
        "relative": float(deviation.sum() / columns),
        "below": 100 * float(1 - reached.mean()),
        "all_below": 100 * float(1 - reached.max()),
    }


def _losses(states: list[State], optima: list[Optimum]) -> Figures:
    """The losses of the rule and of the optimum, mean over the draws; and the least homophily there is."""
    ours = [_objective(state).loss(state.vectors) for state in states]
    figures = _parts("", ours) | _parts("optimum_", [optimum.loss for optimum in optima])
    least = least_homophily(states[0].adjacency, states[0].vectors.shape[1])
    figures |= {"least_homophily": least, "gap": figures["loss"] - figures["optimum_loss"]}
    for who, of in {"": [state.vectors for state in states], "optimum_": [one.vectors for one in optima]}.items():
        figures[f"{who}degree"] = float(np.mean([_degree_of_length(states[0], vectors) for vectors in of]))
    return figures


def _degree_of_length(state: State, vectors: Matrix) -> float:
    """The mean degree by squared length over the mean degree: homophily is cheap where vertices have few neighbours."""
    degrees = state.adjacency.sum(axis=1)
    return float(degrees @ np.square(vectors).sum(axis=1) / vectors.shape[1] / degrees.mean())


def _parts(who: str, losses: list[Loss]) -> Figures:
    return {
        f"{who}smoothness": float(np.mean([loss.smoothness for loss in losses])),
        f"{who}homophily": float(np.mean([loss.homophily for loss in losses])),
        f"{who}loss": float(np.mean([loss.total for loss in losses])),
    }


def _premises(states: list[State], optima: list[Optimum], actions: list[Action]) -> Figures:
    """What the proof of Lemma 2 takes for granted of rule `paper`: lengths, the smoothness it prints, Pythagoras."""
    lengths = np.concatenate([np.square(state.vectors).sum(axis=1) for state in states])
    several = [action for action in actions if len(action.influenced) > 1 and action.smoothness > 0]
    ratios = np.concatenate([_pythagoras(state, optimum) for state, optimum in zip(states, optima, strict=True)])
    return {
        "orthogonality_error": max(
            float(np.abs(_gram(state) - np.eye(state.vectors.shape[1])).max()) for state in states
        ),
        "length_mean": float(lengths.mean()),
        "length_median": float(np.median(lengths)),
        "length_max": float(lengths.max()),
        "unit_rows": 100 * float(np.mean(lengths > UNIT)),
        "sets_of_one": 100 * float(np.mean([len(action.influenced) == 1 for action in actions])),
        "printed_over_true": float(np.median([action.printed_smoothness / action.smoothness for action in several])),
        "pythagoras_median": float(np.median(ratios)),
        "pythagoras_above_one": 100 * float(np.mean(ratios > 1)),
    }


def _gram(state: State) -> Matrix:
    gram: Matrix = state.vectors.T @ state.vectors
    return gram


def _pythagoras(state: State, optimum: Optimum) -> Values:
    """|f_i − f_j|² over |f_i − f*_i|² + |f*_i − f*_j|² + |f*_j − f_j|², along the edges of those influenced."""
    of, other = state.adjacency[state.influenced].nonzero()
    of = state.influenced[of]
    f, best = state.vectors, optimum.vectors
    parts = [f[of] - best[of], best[of] - best[other], best[other] - f[other]]
    right: Values = sum(np.square(part).sum(axis=1) for part in parts)
    left: Values = np.square(f[of] - f[other]).sum(axis=1)
    return left[right > 0] / right[right > 0]


def _spreads(states: list[State], optima: list[Optimum], actions: list[Action], seed: int) -> Figures:
    """The quantiles behind the last mark."""
    values = {f"{who}spread": deviation for who, deviation in _deviations(states, optima, seed).items()}
    values["alpha_spread"] = np.array([action.alpha for action in actions])
    return {
        f"{name}@{share}": float(np.quantile(of, share / 100)) for name, of in values.items() for share in QUANTILES
    }
