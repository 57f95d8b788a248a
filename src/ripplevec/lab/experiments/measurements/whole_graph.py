"""Measurement `whole_graph`: embed a whole graph with one method, and predict the labels of half of its vertices.

Vertices may have several labels; for each test vertex as many labels are predicted as it has. The views of `ripplevec`
may be given by the name of a recipe. With `views="auto"`, `recipe` is the number of the chosen one, and `hidden_edges`
its score: how well it predicts hidden edges.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import check_choice
from ripplevec.lab.baselines import BASELINES
from ripplevec.lab.datasets.multilabel import MultiLabelGraph, load_multilabel
from ripplevec.lab.evaluation.label_metrics import Scores, classify_multilabel
from ripplevec.lab.evaluation.protocols import time_call
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    Metrics,
    TrialResult,
    remaining_parameters,
    score_metrics,
    warm_up_graph,
)
from ripplevec.lab.experiments.measurements.method_scores import (
    RIPPLEVEC_METHODS,
    check_method,
    embed_function,
    full_parameters,
)

TRAINING_SHARE = 0.5

_load = cache(load_multilabel)


def _check(configuration: Configuration) -> None:
    check_choice("method", configuration.get("method"), [*RIPPLEVEC_METHODS, *BASELINES])
    check_method(configuration)


def _measure(configuration: Configuration) -> TrialResult:
    graph = _load(configuration["dataset"])
    method, embed = embed_function(configuration["method"], remaining_parameters(configuration, "method"))
    embed(warm_up_graph().adjacency())
    adjacency = graph.adjacency()
    seconds, vectors = time_call(lambda: embed(adjacency))
    metrics = score_metrics("whole", _score(graph, vectors, configuration["seed"])) | {"retrain_seconds": seconds}
    if isinstance(method, Embedder):
        metrics |= _describe_choice(method)
    return TrialResult(metrics, full_parameters(method))


def _score(graph: MultiLabelGraph, vectors: NDArray[Any], seed: int) -> Scores:
    labeled = np.flatnonzero(graph.labels.any(axis=1))
    order = np.random.default_rng(seed).permutation(labeled)
    cut = round(TRAINING_SHARE * order.size)
    return classify_multilabel(vectors, graph.labels, order[:cut], order[cut:])


def _describe_choice(model: Embedder) -> Metrics:
    report = model.diagnostics()
    scores = report.get("view_scores") or {}
    if not scores:
        return {}
    return {"recipe": float(list(scores).index(report["views"])), "hidden_edges": 100 * scores[report["views"]]}


WHOLE_GRAPH = Measurement(_check, _measure)
