from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.experiments.measurements import run_trial
from ripplevec.lab.experiments.measurements.trace import Followed
from ripplevec.lab.objective import Objective, minimize, random_start

OPTIMUM: dict[str, Any] = {
    "kind": "optimum", "dataset": "planted", "seed": 3, "dim": 4, "start": 0.5, "marks": [0.7, 1.0], "draws": 3,
}  # fmt: skip
RULES = [{"rule": "paper"}, {}, {"anchor_growth": 0}]


@pytest.fixture(scope="module")
def cells() -> dict[str, dict[str, float]]:
    return {}


def figures(cells: dict[str, dict[str, float]], own: dict[str, Any]) -> dict[str, float]:
    """The figures of a cell, measured once."""
    if str(own) not in cells:
        cells[str(own)] = run_trial(OPTIMUM | own).metrics
    return cells[str(own)]


def followed(graph: Dataset, own: dict[str, Any]) -> list[Followed]:
    arrivals = Arrivals.from_dataset(graph, 3)
    return [Followed(Embedder(dim=4, seed=9 + draw, **own), arrivals, 120) for draw in range(3)]


@pytest.mark.parametrize("own", RULES)
def test_deviations_and_losses_are_those_of_their_definitions(graph: Dataset, cells: Any, own: dict[str, Any]) -> None:
    found, streams = figures(cells, own), followed(graph, own)
    for one in streams:
        one.until(167)
        one.actions.clear()
    states = [one.until(239) for one in streams]
    objectives = [Objective(state.adjacency, state.before, state.rows) for state in states]
    optima = [minimize(objective) for objective in objectives]
    apart = [state.vectors - optimum.vectors for state, optimum in zip(states, optima, strict=True)]
    everywhere = [np.linalg.norm(sum(one[u] for one in apart) / 3) ** 2 for u in range(240)]
    touched = {239, *(int(u) for state in states for u in state.influenced)}
    deviation = [value for u, value in enumerate(everywhere) if u not in touched]
    alphas = [1 - (1 - 1 / len(action.influenced)) ** 0.5 for one in streams for action in one.actions]
    assert found["deviation_max@100"] == pytest.approx(max(deviation))
    assert found["newcomer_deviation@100"] == pytest.approx(everywhere[-1])
    assert found["relative@100"] == pytest.approx(sum(everywhere) / 4)
    below = [[value < alpha for value in deviation] for alpha in alphas]
    assert found["below@100"] == pytest.approx(100 * np.mean(below))
    assert found["all_below@100"] == pytest.approx(100 * np.mean([all(row) for row in below]))
    assert found["alpha_median@100"] == pytest.approx(np.median(alphas))
    assert found["alpha_least@100"] == pytest.approx(min(alphas))
    losses = [objective.loss(state.vectors) for objective, state in zip(objectives, states, strict=True)]
    assert found["homophily@100"] == pytest.approx(np.mean([loss.homophily for loss in losses]))
    assert found["smoothness@100"] == pytest.approx(np.mean([loss.smoothness for loss in losses]))
    assert found["optimum_homophily@100"] == pytest.approx(np.mean([optimum.loss.homophily for optimum in optima]))
    assert found["optimum_loss@100"] < found["loss@100"]
    degrees = graph.adjacency().sum(axis=0)[Arrivals.from_dataset(graph, 3).order]
    lengths = np.mean([[vector @ vector for vector in state.vectors] for state in states], axis=0)
    assert found["degree@100"] == pytest.approx(sum(degrees * lengths) / 4 / degrees.mean())
    assert found["converged@100"] == 1
    assert found["spread@50"] == pytest.approx(np.median(deviation))
    assert found["alpha_spread@100"] == pytest.approx(max(alphas))


@pytest.mark.parametrize("own", RULES)
def test_controls_know_nothing_and_are_judged_the_same_way(graph: Dataset, cells: Any, own: dict[str, Any]) -> None:
    found, states = figures(cells, own), [one.until(239) for one in followed(graph, own)]
    best = np.mean([minimize(Objective(s.adjacency, s.before, s.rows)).vectors for s in states], axis=0)
    still = np.zeros((240, 4))
    still[:239] = np.mean([state.before for state in states], axis=0)
    for who, vectors in {"random_": random_start(240, 4, 3), "zero_": np.zeros((240, 4)), "still_": still}.items():
        expected = np.square(vectors - best).sum()
        assert found[f"{who}relative@100"] == pytest.approx(expected / 4)
    assert 0.5 < found["zero_relative@100"] <= 1 < found["random_relative@100"] < 3
    assert found["single_relative@100"] >= found["relative@100"]  # by Jensen


def test_what_the_proof_takes_for_granted_is_measured(graph: Dataset, cells: Any) -> None:
    found, streams = figures(cells, RULES[0]), followed(graph, RULES[0])
    states = [one.until(239) for one in streams]
    lengths = [vector @ vector for state in states for vector in state.vectors]
    assert found["length_median@100"] == pytest.approx(np.median(lengths))
    assert found["length_max@100"] == pytest.approx(max(lengths))
    laplacian = np.diag(graph.adjacency().toarray().sum(axis=0)) - graph.adjacency().toarray()
    assert found["least_homophily@100"] == pytest.approx(np.linalg.eigvalsh(laplacian)[:4].sum(), rel=1e-6)
    assert found["orthogonality_error@100"] < 1e-12
    assert found["printed_over_true@100"] > 2
    ratios = []
    for state in states:
        f, best = state.vectors, minimize(Objective(state.adjacency, state.before, state.rows)).vectors
        for i, j in zip(*state.adjacency.nonzero(), strict=True):
            parts = [f[i] - best[i], best[i] - best[j], best[j] - f[j]]
            ratios.append(np.linalg.norm(f[i] - f[j]) ** 2 / sum(np.linalg.norm(part) ** 2 for part in parts))
    assert found["pythagoras_median@100"] == pytest.approx(np.median(ratios))
    assert found["pythagoras_above_one@100"] == pytest.approx(100 * np.mean(np.array(ratios) > 1))


def test_there_is_nothing_of_the_kind_to_measure_of_rule_ripple(cells: Any) -> None:
    assert "pythagoras_median@100" not in figures(cells, {})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"draws": 0}, "draws: expected a whole number"),
        ({"draws": None}, "draws: expected a whole number"),
        ({"marks": [0.4]}, "marks: expected"),
        ({"depth": 2}, "parameters: expected only seed, dim"),
        ({"dim": 0}, "dim: expected"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(OPTIMUM | change)
