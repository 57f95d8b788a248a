"""Parameters: validation, "auto" values, creation of parts, and JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.parameters import DEFAULT_ANCHOR_GROWTH, Parameters
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.ripple import RippleRule
from ripplevec.views.spectral import SpectralView


def parameters(**changed: Any) -> Parameters:
    return Parameters(**(Embedder(dim=8).get_params() | changed))


INVALID: dict[str, list[Any]] = {
    "dim": [0, -1, 2.0, "8", None, True],
    "rule": ["papers", "", None, 3, ["ripple"]],
    "depth": [-1, 1.5, "deep", True, 2**70],
    "views": ["none", [], 3, [3], [SpectralView], {"tau": 1.0}],
    "anchor_pace": ["slow", None, 3],
    "anchor_growth": [-0.1, float("nan"), float("inf"), "often", None, True],
    "seed": [-1, 1.5, None, 2**64, "0"],
    "max_reads": [0, -5, 2.5, None, 2**62],
    "storage": ["float64", "half", None, 16],
    "storage_dir": ["no/such/directory"],
    "directed": [0, 1, None, "yes"],
    "duplicates": ["sum", None, []],
    "normalize": [0, 1, None, "yes"],
    "start_size": [0, 1, 2.5, "small", None],
    "change_threshold": [-1, float("nan"), "small", None],
    "on_empty": ["one", None],
    "late_placement": [1, None, "no"],
    "normalization": ["none", None],
    "components": ["largest", None],
    "reuse_influence": [1, None, True],  # not with rule "ripple"
    "threads": [0, -2, 1.5, "all"],
    "search": ["fast", None, 3],
    "half_life": [0, -1.0, 1e-200, float("inf"), 10**400, float("nan"), "day", True],
    "max_time_jump": [0, -1.0, float("inf"), float("nan"), "day", True],
    "expire_after": [0, -1.0, 1e-200, float("inf"), 10**400, float("nan"), "day", True],
    "attribute_dim": [-1, 8, 2.5, "half", None, True],
    "attribute_weight": [0, -1, float("nan"), float("inf"), "much", None, True],
    "keep_attributes": [0, 1, None, "no"],
}


def test_invalid_values_cover_every_parameter() -> None:
    assert set(INVALID) == set(Embedder().get_params())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in INVALID.items() for value in values])
def test_parameter_with_an_invalid_value_is_named_in_the_error(name: str, value: Any) -> None:
    with pytest.raises(InvalidValueError, match=rf"^{name}: expected .*, got "):
        parameters(**{name: value})


def test_reuse_influence_without_a_depth_is_rejected() -> None:
    with pytest.raises(InvalidValueError, match=r"^depth: expected"):
        Embedder(rule="paper", reuse_influence=True, depth=None)


@pytest.mark.parametrize(
    ("rule", "growth", "expected"),
    [("ripple", "auto", DEFAULT_ANCHOR_GROWTH), ("ripple", 0, 0.0), ("ripple", 2, 2.0), ("paper", "auto", 0.0)],
)
def test_anchor_growth_auto_depends_on_the_rule(rule: str, growth: Any, expected: float) -> None:
    assert parameters(rule=rule, anchor_growth=growth).resolved_anchor_growth == expected


def test_start_size_auto_is_twice_the_dimension() -> None:
    assert parameters(dim=8).resolved_start_size == 16
    assert parameters(dim=8, start_size=5).resolved_start_size == 5


def test_create_rule_and_create_graph_use_the_parameters() -> None:
    rule = parameters(depth=None, threads=3, normalize=False, max_reads=9, seed=5).create_rule()
    assert isinstance(rule, RippleRule)
    assert (rule.depth, rule.threads, rule.normalize, rule.max_reads, rule.seed) == (-1, 3, False, 9, 5)
    assert not rule.ready
    assert parameters().create_rule().normalize
    assert isinstance(parameters(rule="paper").create_rule(), PaperRule)
    graph = parameters(directed=True, duplicates="ignore").create_graph()
    assert (graph.adjacency.directed, graph.adjacency.duplicates, len(graph)) == (True, "ignore", 0)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"rule": "paper", "depth": None},
        {"views": [SpectralView(tau=0.5), SpectralView(tau_per_degree=np.float64(3), degree=np.int64(4))]},
        {"dim": np.int64(7), "seed": np.uint8(3), "anchor_growth": np.float32(0.5)},
    ],
)
def test_parameters_survive_json_round_trip(changed: dict[str, Any]) -> None:
    created = parameters(**changed)
    restored = Parameters(**Parameters.from_json(json.loads(json.dumps(created.to_json()))))
    assert restored == created
