from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines import Spectral
from ripplevec.lab.baselines.streaming import NeighborMean, StreamingBaselineAdapter
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import classify, cluster, score_at_end, score_on_arrival, stream
from ripplevec.lab.experiments.measurements import run_trial

SHARES = {"kind": "shares", "dataset": "planted", "seed": 3, "dim": 8, "shares": [0.3, 0.5]}
RETRAINED = SHARES | {"method": "spectral"}
STREAMED = SHARES | {"method": "ripplevec"}


def test_a_retrained_method_is_judged_by_its_one_embedding(graph: Dataset) -> None:
    figures = run_trial(RETRAINED).metrics
    vectors, order = Spectral(dim=8).embed(graph.adjacency()), np.random.default_rng(3).permutation(240)
    for share, begin in ((30, 72), (50, 120)):
        scores = classify(vectors, graph.labels, order[:begin], order[begin:])
        assert figures[f"current_micro@{share}"] == pytest.approx(100 * scores.micro)
        assert figures[f"current_macro@{share}"] == pytest.approx(100 * scores.macro)
    assert figures["nmi"] == pytest.approx(100 * cluster(vectors, graph.labels).nmi)
    assert figures["completeness"] == pytest.approx(100 * cluster(vectors, graph.labels).completeness)
    assert figures["retrain_seconds"] > 0


def test_a_stream_begins_anew_with_each_share(graph: Dataset) -> None:
    figures = run_trial(STREAMED).metrics
    for share in (0.3, 0.5):
        result, end = stream(Embedder(dim=8, seed=3), graph, share, 3), f"@{100 * share:.0f}"
        assert figures[f"current_micro{end}"] == pytest.approx(100 * score_at_end(result).micro)
        assert figures[f"current_macro{end}"] == pytest.approx(100 * score_at_end(result).macro)
        assert figures[f"arrival_micro{end}"] == pytest.approx(100 * score_on_arrival(result).micro)
        assert figures[f"nmi{end}"] == pytest.approx(100 * cluster(result.final_vectors, result.labels).nmi)
        given = cluster(np.vstack([result.start_vectors, result.arrival_vectors]), result.labels)
        assert figures[f"arrival_nmi{end}"] == pytest.approx(100 * given.nmi)
        assert figures[f"arrival_completeness{end}"] == pytest.approx(100 * given.completeness)


def test_what_has_no_share_is_the_mean_over_the_shares() -> None:
    figures = run_trial(STREAMED).metrics
    means = {name for name in figures if "@" not in name}
    assert means >= {"current_micro", "arrival_macro", "nmi", "completeness", "arrival_nmi", "stream_seconds"}
    for name in means:
        assert figures[name] == pytest.approx((figures[f"{name}@30"] + figures[f"{name}@50"]) / 2)


def test_a_streaming_baseline_is_judged_like_ours(graph: Dataset) -> None:
    measured = run_trial(SHARES | {"method": "neighbor_mean"})
    result = stream(StreamingBaselineAdapter(NeighborMean(dim=8, seed=3)), graph, 0.5, 3)
    assert measured.metrics["current_micro@50"] == pytest.approx(100 * score_at_end(result).micro)
    assert measured.parameters["dim"] == 8


def test_by_index_the_seed_is_the_methods_alone(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, 0.5, seed=None)
    figures = run_trial(STREAMED | {"arrival_order": "index"}).metrics
    assert figures["current_micro@50"] == pytest.approx(100 * score_at_end(result).micro)
    vectors, index = Spectral(dim=8).embed(graph.adjacency()), np.arange(240)
    scores = classify(vectors, graph.labels, index[:120], index[120:])
    figures = run_trial(RETRAINED | {"arrival_order": "index"}).metrics
    assert figures["current_micro@50"] == pytest.approx(100 * scores.micro)


def test_edges_may_be_spread_over_the_stream(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, 0.5, 3, edges="spread")
    figures = run_trial(STREAMED | {"edges": "spread"}).metrics
    assert figures["arrival_micro@50"] == pytest.approx(100 * score_on_arrival(result).micro)
    assert figures["arrival_micro@50"] != pytest.approx(run_trial(STREAMED).metrics["arrival_micro@50"])


@pytest.mark.parametrize("method", ["spectral", "ripplevec"])
def test_a_share_with_a_single_class_to_train_on_has_no_scores(method: str, by_class: Dataset) -> None:
    own = {"method": method, "dataset": "by_class", "arrival_order": "index", "shares": [0.2, 0.5, 0.7]}
    figures = run_trial(SHARES | own).metrics
    assert by_class.labels[:48].max() == 0
    assert not {"current_micro@20", "current_macro@20", "arrival_micro@20"} & figures.keys()
    assert {"current_micro@50", "current_micro@70"} <= figures.keys()
    if method == "ripplevec":
        assert figures["current_micro"] == pytest.approx(
            (figures["current_micro@50"] + figures["current_micro@70"]) / 2
        )
        assert "nmi@20" in figures


def test_one_embedding_is_enough_for_all_shares(embedded: list[int]) -> None:
    run_trial(RETRAINED)
    assert embedded == [1000, 240], "a small graph first, to compile with"


def test_every_cell_has_an_embedding_and_seconds_of_its_own(embedded: list[int]) -> None:
    first, again = run_trial(RETRAINED), run_trial(RETRAINED)
    assert embedded == [1000, 240] * 2
    assert first.metrics["retrain_seconds"] != again.figures["retrain_seconds"]


def test_the_order_follows_the_seed_where_nothing_is_drawn() -> None:
    first, other = run_trial(RETRAINED).metrics, run_trial(RETRAINED | {"seed": 4}).metrics
    assert first["nmi"] == other["nmi"]
    assert first["current_micro@30"] != other["current_micro@30"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"shares": 0.5}, "shares: expected a list of shares"),
        ({"shares": [0.5, 1.5]}, "shares: expected a share between 0 and 1, got 1.5"),
        ({"arrival_order": "age"}, "arrival_order: expected one of"),
        ({"edges": "never"}, "edges: expected one of"),
        ({"method": "shallowwalk"}, "method: expected one of"),
        ({"method": None}, "method: expected one of"),
        ({"deep": 1}, "parameters: expected those of the kind of cell.*'deep'"),
    ],
)
@pytest.mark.parametrize("method", ["spectral", "ripplevec", "neighbor_mean"])
def test_what_cannot_be_run_is_refused(method: str, change: dict[str, Any], expected: str) -> None:
    check(SHARES | {"method": method})
    with pytest.raises(InvalidValueError, match=expected):
        check(SHARES | {"method": method} | change)
