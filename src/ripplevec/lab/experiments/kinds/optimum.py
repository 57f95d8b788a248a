"""Kind `optimum`: how far a rule is from the optimum it approximates, along a stream, and what Lemma 2 makes of it.

Vertices arrive one at a time, in an order that the seed decides, at as many models as there are `draws`: they differ in
whom an arrival influences. When a share of the vertices is there (`marks`), the optimum F* is found for the last
arrival that influenced anybody, given the state before it, for each of the models. `tolerance` is that of the search.

Lemma 2 compares, for every vertex u, the *deviation* |E[f_u − f*_u]|² with α = 1 − √(1 − 1/|I|) of the arrival, the
expectation being over whom it influences: here the mean over the draws. The α are those of all arrivals since the last
mark, of all draws; the deviations are those of the vertices that the arrival at the mark did not touch in any draw, for
the newcomer's and theirs who gave to it belong to that arrival alone. Controls stand in for the rule: the state before
the arrival, with nothing for the newcomer (`still`), a `random` F with FᵀF = I, and no vectors at all (`zero`).

A figure at a mark has its per cent behind an @. So have the quantiles at the last mark: the `spread` of the deviations,
of the controls' and of α.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.evaluation.protocols import Arrivals, start_size
from ripplevec.lab.experiments.kinds.base import Configuration, Figures, Kind, Measured, at, check_only, data
from ripplevec.lab.experiments.kinds.checkpoints import check_marks, places
from ripplevec.lab.experiments.kinds.methods import embedder, spelt_out
from ripplevec.lab.experiments.kinds.trace import Action, Followed, Matrix, State, last_action
from ripplevec.lab.objective import Loss, Objective, Optimum, minimize, random_start
from ripplevec.lab.objective.gap import min_homophily_loss

EMBEDDER = ("dim", "rule", "anchor_growth", "threads")
OWN = ("start", "marks", "draws", "tolerance")
QUANTILES = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
MOST_EDGES = 20_000  # that are looked at, in either direction

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
    arrivals, start = Arrivals.from_dataset(dataset, configuration["seed"]), start_size(dataset, configuration["start"])
    followed = [Followed(_model(configuration, draw), arrivals, start) for draw in range(draws)]
    figures: Figures = {}
    for mark, place in places(configuration, dataset).items():
        for one in followed:
            one.actions.clear()
        last = last_action(arrivals, start, place)
        states = [one.until(last) for one in followed]
        optima = [minimize(_objective(state), tolerance=configuration.get("tolerance", 1e-6)) for state in states]
        seen = Seen(states, optima, [action for one in followed for action in one.actions], configuration["seed"])
        found = _near_the_optimum(seen) | _losses(seen)
        if configuration.get("rule") == "paper":
            found |= _premises(seen) | {"least_homophily": min_homophily_loss(states[0].adjacency, seen.columns)}
        figures |= {name + at(mark): value for name, value in found.items()}
    return Measured(figures | _spreads(seen), spelt_out(followed[0].model))


KIND = Kind(_check, _run)


class Seen(NamedTuple):
    """What is seen at a mark: for every draw the state and its optimum, and all actions since the last mark."""

    states: list[State]
    optima: list[Optimum]
    actions: list[Action]
    seed: int

    @property
    def columns(self) -> int:
        """k."""
        return int(self.states[0].vectors.shape[1])

    @property
    def alphas(self) -> Values:
        """Of all actions."""
        return np.array([action.alpha for action in self.actions])

    @property
    def untouched(self) -> NDArray[np.bool_]:
        """Who had a vector before, and was influenced in no draw."""
        found = np.zeros(len(self.states[0].vectors), bool)
        found[self.states[0].rows] = True
        for state in self.states:
            found[state.influenced] = False
        return found

    def deviations(self) -> dict[str, Values]:
        """|E[f_u − f*_u]|² of every vertex, by what stands in for f: the rule, or one of the controls."""
        best: Matrix = np.mean([optimum.vectors for optimum in self.optima], axis=0)
        ours: Matrix = np.mean([state.vectors for state in self.states], axis=0)
        still = np.zeros_like(best)
        still[self.states[0].rows] = np.mean([state.before for state in self.states], axis=0)
        noise = random_start(len(best), self.columns, self.seed)
        compared = {"": ours, "still_": still, "random_": noise, "zero_": np.zeros_like(best)}
        return {who: np.square(vectors - best).sum(axis=1) for who, vectors in compared.items()}


def _objective(state: State) -> Objective:
    return Objective(state.adjacency, state.before, state.rows)


def _near_the_optimum(seen: Seen) -> Figures:
    """Deviations, relative to the mean squared length of the optimum, and beside α."""
    alphas, deviations, untouched = seen.alphas, seen.deviations(), seen.untouched
    alone = [np.square(s.vectors - best.vectors).sum() for s, best in zip(seen.states, seen.optima, strict=True)]
    figures = {
        "vertices": len(untouched),
        "converged": float(np.mean([optimum.converged for optimum in seen.optima])),
        "alpha_median": float(np.median(alphas)),
        "alpha_least": float(alphas.min()),
        "single_relative": float(np.mean(alone) / seen.columns),
        "newcomer_deviation": float(deviations[""][-1]),
    }
    for who, deviation in deviations.items():
        figures[f"{who}relative"] = float(deviation.sum() / seen.columns)
        figures |= {who + name: value for name, value in _beside(deviation[untouched], alphas).items()}
    return figures


def _beside(deviation: Values, alphas: Values) -> Figures:
    """The largest, how many are below α, and for how many α all of them are."""
    reached = np.searchsorted(np.sort(alphas), deviation, side="right") / len(alphas)
    return {
        "deviation_max": float(deviation.max()),
        "below": 100 * float(1 - reached.mean()),
        "all_below": 100 * float(1 - reached.max()),
    }


def _losses(seen: Seen) -> Figures:
    """The losses of the rule and of the optimum, and where their lengths lie, mean over the draws."""
    ours = [_objective(state).loss(state.vectors) for state in seen.states]
    figures = _parts("", ours) | _parts("optimum_", [optimum.loss for optimum in seen.optima])
    vectors = {"": [state.vectors for state in seen.states], "optimum_": [best.vectors for best in seen.optima]}
    for who, of in vectors.items():
        figures[f"{who}degree"] = float(np.mean([_degree_of_length(seen.states[0], one) for one in of]))
    return figures


def _degree_of_length(state: State, vectors: Matrix) -> float:
    """The mean degree by squared length over the mean degree: homophily is cheap where vertices have few neighbors."""
    degrees = state.adjacency.sum(axis=1)
    return float(degrees @ np.square(vectors).sum(axis=1) / vectors.shape[1] / degrees.mean())


def _parts(who: str, losses: list[Loss]) -> Figures:
    return {
        f"{who}smoothness": float(np.mean([loss.smoothness for loss in losses])),
        f"{who}homophily": float(np.mean([loss.homophily for loss in losses])),
        f"{who}loss": float(np.mean([loss.total for loss in losses])),
    }


def _premises(seen: Seen) -> Figures:
    """What the proof of Lemma 2 takes for granted of rule `paper`: lengths, the smoothness it prints, Pythagoras."""
    lengths = np.concatenate([np.square(state.vectors).sum(axis=1) for state in seen.states])
    several = [action for action in seen.actions if len(action.influenced) > 1 and action.smoothness > 0]
    ratios = np.concatenate([_pythagoras(s, best) for s, best in zip(seen.states, seen.optima, strict=True)])
    return {
        "orthogonality_error": max(map(_orthogonality_error, seen.states)),
        "length_median": float(np.median(lengths)),
        "length_max": float(lengths.max()),
        "sets_of_one": 100 * float(np.mean([len(action.influenced) == 1 for action in seen.actions])),
        "printed_over_true": float(np.median([action.printed_smoothness / action.smoothness for action in several])),
        "pythagoras_median": float(np.median(ratios)),
        "pythagoras_above_one": 100 * float(np.mean(ratios > 1)),
    }


def _orthogonality_error(state: State) -> float:
    """Of Lemma 1."""
    return float(np.abs(state.vectors.T @ state.vectors - np.eye(state.vectors.shape[1])).max())


def _pythagoras(state: State, optimum: Optimum) -> Values:
    """|f_i − f_j|² over |f_i − f*_i|² + |f*_i − f*_j|² + |f*_j − f_j|², along edges (if many, some)."""
    i, j = (ends[:: len(ends) // MOST_EDGES + 1] for ends in state.adjacency.nonzero())
    f, best = state.vectors, optimum.vectors
    parts = [f[i] - best[i], best[i] - best[j], best[j] - f[j]]
    right: Values = sum(np.square(part).sum(axis=1) for part in parts)
    left: Values = np.square(f[i] - f[j]).sum(axis=1)
    return left[right > 0] / right[right > 0]


def _spreads(seen: Seen) -> Figures:
    """The quantiles."""
    values = {f"{who}spread": deviation[seen.untouched] for who, deviation in seen.deviations().items()}
    values["alpha_spread"] = seen.alphas
    return {
        f"{name}@{share}": float(np.quantile(of, share / 100)) for name, of in values.items() for share in QUANTILES
    }
