from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines import DeepWalk, Spectral
from ripplevec.lab.baselines.streaming import NeighborMean, StreamingBaselineAdapter
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import (
    classify,
    cluster,
    score_at_checkpoints,
    score_at_end,
    score_link_prediction,
    score_on_arrival,
    stream,
)
from ripplevec.lab.experiments.measurements import base, check_trial, run_trial
from ripplevec.lab.experiments.measurements.method_scores import (
    build_embedder,
    build_static_method,
    check_method,
    full_parameters,
    is_static,
    streaming_model_factory,
    time_embedding,
)
from ripplevec.views.spectral import SpectralView

SHARES = {"kind": "shares", "dataset": "planted", "seed": 3, "dim": 8, "shares": [0.3, 0.5]}
STATIC_SHARES = SHARES | {"method": "spectral"}
STREAMED_SHARES = SHARES | {"method": "ripplevec"}


def test_shares_of_static_method_equal_classification_of_one_embedding(graph: Dataset) -> None:
    metrics = run_trial(STATIC_SHARES).metrics
    vectors, order = Spectral(dim=8).embed(graph.adjacency()), np.random.default_rng(3).permutation(240)
    for share, begin in ((30, 72), (50, 120)):
        scores = classify(vectors, graph.labels, order[:begin], order[begin:])
        assert metrics[f"current_micro@{share}"] == pytest.approx(100 * scores.micro)
        assert metrics[f"current_macro@{share}"] == pytest.approx(100 * scores.macro)
    assert metrics["nmi"] == pytest.approx(100 * cluster(vectors, graph.labels).nmi)
    assert metrics["completeness"] == pytest.approx(100 * cluster(vectors, graph.labels).completeness)
    assert metrics["retrain_seconds"] > 0


def test_shares_of_streaming_method_start_anew_per_share(graph: Dataset) -> None:
    metrics = run_trial(STREAMED_SHARES).metrics
    for share in (0.3, 0.5):
        result, end = stream(Embedder(dim=8, seed=3), graph, share, 3), f"@{100 * share:.0f}"
        assert metrics[f"current_micro{end}"] == pytest.approx(100 * score_at_end(result).micro)
        assert metrics[f"current_macro{end}"] == pytest.approx(100 * score_at_end(result).macro)
        assert metrics[f"arrival_micro{end}"] == pytest.approx(100 * score_on_arrival(result).micro)
        assert metrics[f"nmi{end}"] == pytest.approx(100 * cluster(result.final_vectors, result.labels).nmi)
        given = cluster(np.vstack([result.start_vectors, result.arrival_vectors]), result.labels)
        assert metrics[f"arrival_nmi{end}"] == pytest.approx(100 * given.nmi)
        assert metrics[f"arrival_completeness{end}"] == pytest.approx(100 * given.completeness)


def test_shares_metrics_without_suffix_are_means() -> None:
    metrics = run_trial(STREAMED_SHARES).metrics
    means = {name for name in metrics if "@" not in name}
    assert means >= {"current_micro", "arrival_macro", "nmi", "completeness", "arrival_nmi", "stream_seconds"}
    for name in means:
        assert metrics[name] == pytest.approx((metrics[f"{name}@30"] + metrics[f"{name}@50"]) / 2)


def test_shares_of_streaming_baseline_equal_protocol_scores(graph: Dataset) -> None:
    trial = run_trial(SHARES | {"method": "neighbor_mean"})
    result = stream(StreamingBaselineAdapter(NeighborMean(dim=8, seed=3)), graph, 0.5, 3)
    assert trial.metrics["current_micro@50"] == pytest.approx(100 * score_at_end(result).micro)
    assert trial.parameters["dim"] == 8


def test_shares_in_index_order_use_seed_for_method_only(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, 0.5, seed=None)
    metrics = run_trial(STREAMED_SHARES | {"arrival_order": "index"}).metrics
    assert metrics["current_micro@50"] == pytest.approx(100 * score_at_end(result).micro)
    vectors, index = Spectral(dim=8).embed(graph.adjacency()), np.arange(240)
    scores = classify(vectors, graph.labels, index[:120], index[120:])
    metrics = run_trial(STATIC_SHARES | {"arrival_order": "index"}).metrics
    assert metrics["current_micro@50"] == pytest.approx(100 * scores.micro)


def test_shares_with_spread_edges_equal_protocol_scores(graph: Dataset) -> None:
    result = stream(Embedder(dim=8, seed=3), graph, 0.5, 3, edges="spread")
    metrics = run_trial(STREAMED_SHARES | {"edges": "spread"}).metrics
    assert metrics["arrival_micro@50"] == pytest.approx(100 * score_on_arrival(result).micro)
    assert metrics["arrival_micro@50"] != pytest.approx(run_trial(STREAMED_SHARES).metrics["arrival_micro@50"])


@pytest.mark.parametrize("method", ["spectral", "ripplevec"])
def test_shares_with_single_training_class_have_no_scores(method: str, by_class: Dataset) -> None:
    own = {"method": method, "dataset": "by_class", "arrival_order": "index", "shares": [0.2, 0.5, 0.7]}
    metrics = run_trial(SHARES | own).metrics
    assert by_class.labels[:48].max() == 0
    assert not {"current_micro@20", "current_macro@20", "arrival_micro@20"} & metrics.keys()
    assert {"current_micro@50", "current_micro@70"} <= metrics.keys()
    if method == "ripplevec":
        assert metrics["current_micro"] == pytest.approx(
            (metrics["current_micro@50"] + metrics["current_micro@70"]) / 2
        )
        assert "nmi@20" in metrics


def test_shares_of_static_method_embed_once(embedded: list[int]) -> None:
    run_trial(STATIC_SHARES)
    assert embedded == [1000, 240], "a warm-up graph first"


def test_shares_trials_do_not_reuse_embeddings(embedded: list[int]) -> None:
    first, again = run_trial(STATIC_SHARES), run_trial(STATIC_SHARES)
    assert embedded == [1000, 240] * 2
    assert first.metrics["retrain_seconds"] != again.metrics["retrain_seconds"]


def test_shares_of_deterministic_method_vary_order_by_seed() -> None:
    first, other = run_trial(STATIC_SHARES).metrics, run_trial(STATIC_SHARES | {"seed": 4}).metrics
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
        ({"deep": 1}, "parameters: expected those of the kind of measurement.*'deep'"),
    ],
)
@pytest.mark.parametrize("method", ["spectral", "ripplevec", "neighbor_mean"])
def test_check_trial_with_invalid_shares_raises(method: str, change: dict[str, Any], expected: str) -> None:
    check_trial(SHARES | {"method": method})
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(SHARES | {"method": method} | change)


CHECKPOINT = {"kind": "checkpoint", "dataset": "planted", "seed": 3, "start": 0.5, "every": 0.25, "dim": 8}


def test_checkpoint_of_static_method_equals_protocol_scores(graph: Dataset, embedded: list[int]) -> None:
    trial = run_trial(CHECKPOINT | {"method": "spectral"})
    assert embedded == [1000, 150, 180, 210, 240], "a warm-up graph first"
    expected = score_at_checkpoints(Spectral(dim=8).embed, graph, 0.5, 3, 0.25)
    assert trial.metrics["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)
    assert trial.metrics["checkpoint_macro"] == pytest.approx(100 * expected.scores.macro)
    assert trial.metrics["retrainings"] == 4
    assert trial.parameters["dim"] == 8


@pytest.mark.parametrize(("method", "rule"), [("ripplevec", "ripple"), ("paper", "paper")])
def test_checkpoint_of_ripplevec_recomputes_embedding(method: str, rule: str, graph: Dataset) -> None:
    def embed(so_far: csr_array) -> Any:
        return Embedder(dim=8, seed=3, rule=rule).fit(so_far).vectors(np.arange(so_far.shape[0]))

    trial = run_trial(CHECKPOINT | {"method": method})
    expected = score_at_checkpoints(embed, graph, 0.5, 3, 0.25)
    assert trial.metrics["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)
    assert trial.parameters["rule"] == rule


def test_checkpoint_by_default_retrains_every_twentieth_of_stream(graph: Dataset) -> None:
    own = {name: value for name, value in CHECKPOINT.items() if name != "every"}
    metrics = run_trial(own | {"method": "spectral", "arrival_order": "index"}).metrics
    expected = score_at_checkpoints(Spectral(dim=8).embed, graph, 0.5, None, 0.05)
    assert metrics["retrainings"] == 20
    assert metrics["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "neighbor_mean"}, "method: expected one of .*got 'neighbor_mean'"),
        ({"start": None}, "start: expected a share"),
        ({"every": 5}, "every: expected a share"),
        ({"arrival_order": "age"}, "arrival_order: expected one of"),
        ({"edges": "spread"}, "parameters: expected those of the kind of measurement.*'edges'"),
    ],
)
def test_check_trial_with_invalid_checkpoint_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(CHECKPOINT | {"method": "spectral"} | change)


VALIDATION = {"kind": "validation", "dataset": "planted", "seed": 3, "start": 0.5, "method": "spectral", "dim": 8}
VALIDATION_ORDER = np.random.default_rng(3).permutation(240)


STREAM_VALIDATION = VALIDATION | {"method": "neighbor_mean"}


def validation_scores(configuration: dict[str, Any] = VALIDATION) -> dict[str, float]:
    """Return all metrics except the times."""
    return {name: value for name, value in run_trial(configuration).metrics.items() if not name.endswith("seconds")}


def test_validation_scores_last_fifth_of_training_set(graph: Dataset) -> None:
    expected = classify(
        Spectral(dim=8).embed(graph.adjacency()), graph.labels, VALIDATION_ORDER[:96], VALIDATION_ORDER[96:120]
    )
    assert validation_scores() == pytest.approx(
        {"validation_micro": 100 * expected.micro, "validation_macro": 100 * expected.macro}
    )


@pytest.mark.parametrize(("part", "seen"), [(slice(120, None), False), (slice(96, 120), True), (slice(96), True)])
def test_validation_ignores_test_labels(
    graph: Dataset, monkeypatch: pytest.MonkeyPatch, part: slice, seen: bool
) -> None:
    before, labels = [validation_scores(), validation_scores(STREAM_VALIDATION)], graph.labels.copy()
    labels[VALIDATION_ORDER[part]] = np.random.default_rng(0).permutation(labels[VALIDATION_ORDER[part]])
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: replace(graph, labels=labels))
    after = [validation_scores(), validation_scores(STREAM_VALIDATION)]
    assert [one != other for one, other in zip(after, before, strict=True)] == [seen, seen]


def test_validation_of_streaming_method_lets_second_half_of_training_set_arrive(graph: Dataset) -> None:
    place = np.argsort(VALIDATION_ORDER)[graph.edges]
    part = Dataset.from_pairs("part", place[(place < 120).all(axis=1)], graph.labels[VALIDATION_ORDER[:120]])
    result = stream(StreamingBaselineAdapter(NeighborMean(dim=8, seed=3)), part, 0.5, None)
    arrival, current = score_on_arrival(result), score_at_end(result)
    metrics = validation_scores(STREAM_VALIDATION)
    assert metrics["validation_arrival_micro"] == pytest.approx(100 * arrival.micro)
    assert metrics["validation_current_micro"] == pytest.approx(100 * current.micro)
    assert metrics["validation_micro"] == pytest.approx(50 * (arrival.micro + current.micro))
    assert metrics["validation_macro"] == pytest.approx(50 * (arrival.macro + current.macro))


def test_validation_of_streaming_method_ignores_edges_of_test_vertices(
    graph: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = validation_scores(STREAM_VALIDATION)
    inside = (np.argsort(VALIDATION_ORDER)[graph.edges] < 120).all(axis=1)
    monkeypatch.setitem(base.GENERATORS, "planted", lambda seed: replace(graph, edges=graph.edges[inside]))
    assert validation_scores(STREAM_VALIDATION) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "shallowwalk"}, "method: expected one of"),
        ({"start": 2.0}, "start: expected a share"),
        ({"shares": [0.5]}, "parameters: expected those of the kind of measurement.*'shares'"),
    ],
)
def test_check_trial_with_invalid_validation_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(VALIDATION | change)


LINKS = {"kind": "links", "dataset": "planted", "seed": 3, "start": 0.5, "dim": 8, "method": "ripplevec"}


@pytest.mark.parametrize("edges", ["together", "spread"])
def test_links_of_ripplevec_equal_link_prediction(edges: str, graph: Dataset) -> None:
    trial = run_trial(LINKS | {"edges": edges})
    expected = score_link_prediction(Embedder(dim=8, seed=3), graph, 0.5, 3, edges=edges)
    assert trial.metrics["auc"] == pytest.approx(100 * expected.auc)
    assert trial.metrics["mrr"] == pytest.approx(100 * expected.mrr)
    assert trial.metrics["scored_edges"] == expected.edges
    assert (trial.parameters["dim"], trial.parameters["rule"]) == (8, "ripple")


def test_links_of_streaming_baseline_equal_link_prediction(graph: Dataset) -> None:
    trial = run_trial(LINKS | {"method": "neighbor_mean"})
    expected = score_link_prediction(StreamingBaselineAdapter(NeighborMean(dim=8, seed=3)), graph, 0.5, 3)
    assert trial.metrics["auc"] == pytest.approx(100 * expected.auc)
    assert trial.parameters["dim"] == 8


def test_links_metrics_contain_no_times() -> None:
    assert run_trial(LINKS).metrics.keys() == {"auc", "mrr", "scored_edges"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "deepwalk"}, "method: expected a streaming method, got 'deepwalk'"),
        ({"method": "shallowwalk"}, "method: expected one of"),
        ({"start": 1.0}, "start: expected a share"),
        ({"edges": "never"}, "edges: expected one of"),
        ({"arrival_order": "index"}, "parameters: expected those of the kind of measurement.*'arrival_order'"),
    ],
)
def test_check_trial_with_invalid_links_raises(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check_trial(LINKS | change)


def test_build_embedder_accepts_views_as_mappings() -> None:
    views = build_embedder({"dim": 4, "views": [{"tau": 2.0}, SpectralView(tau=3.0)]}).get_params()["views"]
    assert views == [SpectralView(tau=2.0), SpectralView(tau=3.0)]


def test_is_static_distinguishes_static_from_streaming_methods() -> None:
    assert [is_static(name) for name in ("deepwalk", "ripplevec", "paper", "nystrom")] == [True, False, False, False]
    with pytest.raises(InvalidValueError, match=r"method: expected one of 'ripplevec', 'paper', 'deepwalk'.*'nystrom'"):
        is_static("shallowwalk")


def test_build_static_method_passes_parameters() -> None:
    assert build_static_method("deepwalk", {"dim": 8, "seed": 5}) == DeepWalk(dim=8, seed=5)
    assert build_static_method("spectral", {"dim": 8, "seed": 5}) == Spectral(dim=8, seed=5)


def test_streaming_model_factory_builds_new_models() -> None:
    ours, theirs = (
        streaming_model_factory("ripplevec", {"dim": 4}),
        streaming_model_factory("neighbor_mean", {"dim": 4}),
    )
    first, second = ours(), ours()
    assert isinstance(first, Embedder)
    assert first is not second
    own, other = theirs(), theirs()
    assert isinstance(own, StreamingBaselineAdapter)
    assert isinstance(own.method, NeighborMean)
    assert own.method is not other.method


def test_streaming_model_factory_of_paper_uses_rule_paper() -> None:
    model = streaming_model_factory("paper", {"dim": 4})()
    assert isinstance(model, Embedder)
    assert model.get_params()["rule"] == "paper"


@pytest.mark.parametrize("name", ["ripplevec", "paper", "neighbor_mean", "deepwalk"])
def test_check_method_with_invalid_parameters_raises(name: str) -> None:
    own = {"kind": "shares", "dataset": "planted", "method": name, "seed": 0, "dim": 4, "shares": [0.5]}
    check_method(own, "shares")
    with pytest.raises(TypeError, match="wlaks"):
        check_method(own | {"wlaks": 3}, "shares")
    with pytest.raises(InvalidValueError, match="dim: expected"):
        check_method(own | {"dim": 0}, "shares")


def test_full_parameters_include_defaults() -> None:
    baseline, model = DeepWalk(dim=4), StreamingBaselineAdapter(NeighborMean(dim=4))
    assert full_parameters(baseline) == asdict(baseline)
    assert full_parameters(model) == asdict(model.method)
    ours = full_parameters(Embedder(dim=4, views=[SpectralView(tau=2.0)]))
    assert (ours["dim"], ours["depth"], ours["views"][0]["tau"]) == (4, 1, 2.0)
    json.dumps([full_parameters(baseline), full_parameters(model), ours])


def test_time_embedding_recomputes_each_time(graph: Dataset, embedded: list[int]) -> None:
    seconds, vectors = time_embedding(Spectral(dim=4), graph)
    again = time_embedding(Spectral(dim=4), graph)
    assert embedded == [240, 240]
    assert seconds != again[0]
    np.testing.assert_array_equal(vectors, Spectral(dim=4).embed(graph.adjacency()))
