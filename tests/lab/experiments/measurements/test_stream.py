from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.lab.evaluation import (
    cluster,
    measure_aging,
    measure_anchor_cosines,
    score_at_end,
    score_on_arrival,
    stream,
)
from ripplevec.lab.experiments.measurements import base, run_trial

STREAM = {"kind": "stream", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8}


def test_one_stream_tells_what_the_measures_tell_one_by_one(graph: Dataset) -> None:
    figures = run_trial(STREAM).metrics
    result = stream(Embedder(dim=8, seed=3), graph, seed=3)
    cosines = measure_anchor_cosines(Embedder(dim=8, seed=3), graph, seed=3)
    assert figures["current_micro"] == pytest.approx(100 * score_at_end(result).micro)
    assert figures["current_macro"] == pytest.approx(100 * score_at_end(result).macro)
    assert figures["arrival_micro"] == pytest.approx(100 * score_on_arrival(result).micro)
    assert figures["nmi"] == pytest.approx(100 * cluster(result.final_vectors, result.labels).nmi)
    assert figures["anchors"] == len(cosines) > 3
    assert figures["anchor_cosine_min"] == pytest.approx(min(cosines))
    assert figures["anchor_cosine_mean"] == pytest.approx(np.mean(cosines))
    age = measure_aging(result)
    assert figures["ageing_end"] == pytest.approx(100 * age.end.micro)
    assert figures["ageing_gain"] == pytest.approx(100 * (age.end.micro - age.beginning.micro))


def test_vertices_may_come_several_at_a_time(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, seed=3, batch=30)
    assert run_trial(STREAM | {"batch": 30}).metrics["arrival_micro"] == pytest.approx(100 * score_on_arrival(result).micro)


def test_exact_is_the_final_graph_embedded_with_the_views_of_the_stream() -> None:
    views = [{"tau": 2.0, "diffusion": 1.0}]
    measured = run_trial(STREAM | {"views": views, "depth": 2})
    figures, parameters = measured.metrics, measured.parameters
    assert figures["exact_micro"] > 70
    assert figures["short_of_exact"] == pytest.approx(figures["exact_micro"] - figures["current_micro"])
    assert (parameters["views"][0]["tau"], parameters["depth"]) == (2.0, 2)


def test_default_views_are_spelt_out_and_each_can_be_changed() -> None:
    own = run_trial(STREAM).parameters["views"]
    changed = run_trial(STREAM | {"each_view": {"ridge": 7.0}}).parameters["views"]
    assert [view | {"ridge": 7.0} for view in own] == changed
    assert own != changed


@pytest.mark.parametrize(
    ("given", "gone"),
    [("tau", "tau_per_degree"), ("tau_per_degree", "tau"), ("diffusion", "tail"), ("tail", "diffusion")],
)
def test_the_first_view_can_be_changed_alone_and_says_a_thing_in_one_way_only(
    given: str, gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = planted_partition(communities=4, size=30, inside=20, elsewhere=10)
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: dense)
    own = run_trial(STREAM).parameters["views"]
    assert len(own) > 1
    first, *rest = run_trial(STREAM | {"community_view": {given: 0.7}}).parameters["views"]
    assert (first[given], first[gone]) == (0.7, None)
    assert rest == own[1:]


def test_without_anchors_there_are_no_cosines() -> None:
    figures = run_trial(STREAM | {"anchor_growth": 0}).metrics
    assert figures["anchors"] == 0
    assert "anchor_cosine_min" not in figures


def test_rule_paper_can_be_streamed() -> None:
    assert run_trial(STREAM | {"rule": "paper"}).parameters["views"] == "auto"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dim": 0}, "dim: expected"),
        ({"deep": 2}, "parameters: expected those of the kind.*'deep'"),
        ({"each_view": {"rigde": 1}}, "parameters: expected.*'rigde'"),
        ({"views": [{"tau": -1}]}, "SpectralView.tau"),
        ({"start": None}, "start: expected a share"),
    ],
)
def test_a_stream_that_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(STREAM | change)
