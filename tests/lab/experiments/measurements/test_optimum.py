from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.experiments.measurements import check_trial, run_trial
from ripplevec.lab.experiments.measurements.trace import TracedModel
from ripplevec.lab.objective import Objective, minimize, random_start
from ripplevec.rules import ripple
from ripplevec.views.recipes import Recipes
from ripplevec.views.view_choice import ViewChoice

OPTIMUM: dict[str, Any] = {
    "kind": "optimum", "dataset": "planted", "seed": 3, "dim": 4, "start": 0.5, "marks": [0.7, 1.0], "draws": 3,
}  # fmt: skip
RULES = [{"rule": "paper"}, {}, {"anchor_growth": 0}]


@pytest.fixture(scope="module")
def cache() -> dict[str, dict[str, float]]:
    return {}


def metrics(cache: dict[str, dict[str, float]], parameters: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a trial, which is run once."""
    if str(parameters) not in cache:
        cache[str(parameters)] = run_trial(OPTIMUM | parameters).metrics
    return cache[str(parameters)]


def traced_models(graph: Dataset, parameters: dict[str, Any]) -> list[TracedModel]:
    arrivals = Arrivals.from_dataset(graph, 3)
    return [TracedModel(Embedder(dim=4, seed=9 + draw, **parameters), arrivals, 120) for draw in range(3)]


def test_optimum_draws_of_rule_ripple_have_the_same_views(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose_by_seed(graph: Any, recipes: Recipes, dim: int, seed: int, threads: int | None) -> ViewChoice:
        return ViewChoice(list(recipes)[seed % 3])

    monkeypatch.setattr(ripple, "choose_views", choose_by_seed)
    assert run_trial(OPTIMUM | {"seed": 4, "draws": 2}).parameters["views"] == "communities+hubs"


@pytest.mark.parametrize("parameters", RULES)
def test_optimum_deviations_and_losses_equal_definitions(
    graph: Dataset, cache: Any, parameters: dict[str, Any]
) -> None:
    found, streams = metrics(cache, parameters), traced_models(graph, parameters)
    for model in streams:
        model.advance_to(167)
        model.actions.clear()
    states = [model.advance_to(239) for model in streams]
    objectives = [Objective(state.adjacency, state.before, state.rows) for state in states]
    optima = [minimize(objective) for objective in objectives]
    apart = [state.vectors - optimum.vectors for state, optimum in zip(states, optima, strict=True)]
    everywhere = [np.linalg.norm(sum(difference[u] for difference in apart) / 3) ** 2 for u in range(240)]
    touched = {239, *(int(u) for state in states for u in state.influenced)}
    deviation = [value for u, value in enumerate(everywhere) if u not in touched]
    alphas = [1 - (1 - 1 / len(action.influenced)) ** 0.5 for model in streams for action in model.actions]
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


@pytest.mark.parametrize("parameters", RULES)
def test_optimum_control_deviations_equal_definitions(graph: Dataset, cache: Any, parameters: dict[str, Any]) -> None:
    found, states = metrics(cache, parameters), [model.advance_to(239) for model in traced_models(graph, parameters)]
    best = np.mean([minimize(Objective(s.adjacency, s.before, s.rows)).vectors for s in states], axis=0)
    unchanged = np.zeros((240, 4))
    unchanged[:239] = np.mean([state.before for state in states], axis=0)
    for prefix, vectors in {
        "random_": random_start(240, 4, 3),
        "zero_": np.zeros((240, 4)),
        "still_": unchanged,
    }.items():
        expected = np.square(vectors - best).sum()
        assert found[f"{prefix}relative@100"] == pytest.approx(expected / 4)
    assert 0.5 < found["zero_relative@100"] <= 1 < found["random_relative@100"] < 3
    assert found["single_relative@100"] >= found["relative@100"]  # by Jensen


def test_optimum_premise_metrics_equal_definitions(graph: Dataset, cache: Any) -> None:
    found, streams = metrics(cache, RULES[0]), traced_models(graph, RULES[0])
    states = [model.advance_to(239) for model in streams]
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


def test_optimum_of_rule_ripple_has_no_premise_metrics(cache: Any) -> None:
    assert "pythagoras_median@100" not in metrics(cache, {})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"draws": 0}, "draws: expected an integer"),
        ({"draws": None}, "draws: expected an integer"),
        ({"marks": [0.4]}, "marks: expected"),
        ({"depth": 2}, "parameters: expected only seed, dim"),
        ({"dim": 0}, "dim: expected"),
    ],
)
def test_check_trial_with_invalid_optimum_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(OPTIMUM | change)
