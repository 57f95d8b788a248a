"""Measurements of one Ripplevec stream: `stream` with scores and stability, and `ritz` with the captured spectrum.

- `stream`: scores, stability of the coordinates, and the distance to an exact embedding at the end. Vertices arrive at
  an Embedder one at a time or `batch` together. `each_view` changes fields of the views for the mean degree of the
  start, `community_view` those of the first one.
- `ritz`: the share of its operator's spectrum that every view of rule `ripple` captures along a stream. It is the sum
  of the Ritz values on the span of the view's rows over the sum of as many leading eigenvalues: 1 for the exact
  embedding, and never more. It is measured at the `marks` (shares of the vertices that are present), per view, together
  with the `lowest` of the views. The scaling of served rows does not change their span.

`start` is the share of the vertices of the start, which is also the training set. All other parameters are those of the
Embedder.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ripplevec.batch import Op
from ripplevec.embedder import Embedder
from ripplevec.errors import check_choice
from ripplevec.lab.evaluation import (
    AnchorObserver,
    StreamResult,
    cluster,
    measure_aging,
    score_at_end,
    score_on_arrival,
    stream,
)
from ripplevec.lab.evaluation.protocols import Arrivals, start_size, time_call
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    Metrics,
    TrialResult,
    check_marks,
    check_share,
    load_data,
    mark_sizes,
    remaining_parameters,
    score_metrics,
    share_suffix,
    time_metrics,
    warm_up_graph,
)
from ripplevec.lab.experiments.measurements.method_scores import build_embedder, full_parameters
from ripplevec.lab.objective.gap import measure_spectrum_shares
from ripplevec.rules.ripple import RippleRule
from ripplevec.views.recipes import RECIPES, recipe_by_density
from ripplevec.views.spectral import SpectralView

ALTERNATIVE_FIELDS = (("tau", "tau_per_degree"), ("diffusion", "tail", "tail_per_degree"))
"""Groups of view fields that express the same quantity; only one field of a group can be given."""


def _check_stream(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    _build_stream_model(configuration)


def _build_stream_model(configuration: Configuration, start_degree: float = 0.0) -> Embedder:
    parameters = remaining_parameters(configuration, "start", "batch", "each_view", "community_view")
    each_view, community_view = configuration.get("each_view", {}), configuration.get("community_view", {})
    if each_view or community_view:
        views = [_replace_fields(view, each_view) for view in RECIPES[recipe_by_density(start_degree)]]
        parameters["views"] = [_replace_fields(views[0], community_view), *views[1:]]
    return build_embedder(parameters)


def _replace_fields(view: SpectralView, changes: Configuration) -> SpectralView:
    """Return a view with changed fields; the alternatives of a given field are unset."""
    unset = {name: None for group in ALTERNATIVE_FIELDS if changes.keys() & set(group) for name in group}
    return replace(view, **{**unset, **changes})


def _measure_stream(configuration: Configuration) -> TrialResult:
    dataset, start, seed = load_data(configuration), configuration["start"], configuration["seed"]
    arrivals = Arrivals.from_dataset(dataset, seed)
    model = _build_stream_model(configuration, _mean_degree(arrivals, start_size(dataset, start)))
    observer = AnchorObserver()
    stream(_build_stream_model(configuration), warm_up_graph())
    result = stream(model, dataset, start, seed, configuration.get("batch", 1), observer=observer)
    exact = _build_with_same_views(model)
    exact_seconds, _ = time_call(lambda: exact.fit(arrivals.batch(0, dataset.vertices)))
    metrics = _stream_scores(result) | _stability_metrics(result, observer)
    metrics["exact_micro"] = 100 * score_at_end(replace(result, final_vectors=exact.vectors(result.order))).micro
    metrics["short_of_exact"] = metrics["exact_micro"] - metrics["current_micro"]
    metrics["exact_seconds"] = exact_seconds
    return TrialResult(metrics, full_parameters(exact))


def _build_with_same_views(model: Embedder) -> Embedder:
    """Build an unfitted Embedder with the current views of a model."""
    parameters, rule = model.get_params(), model._engine.rule
    if isinstance(rule, RippleRule):
        parameters["views"] = rule.coordinates.views
    return Embedder(**parameters)


def _stream_scores(result: StreamResult) -> Metrics:
    return {
        **score_metrics("current", score_at_end(result)),
        **score_metrics("arrival", score_on_arrival(result)),
        "nmi": 100 * cluster(result.final_vectors, result.labels).nmi,
        **time_metrics(result),
    }


def _stability_metrics(result: StreamResult, observer: AnchorObserver) -> Metrics:
    aging, cosines = measure_aging(result), observer.cosines
    metrics = {
        "movement": float(np.mean(observer.movements)) if observer.movements else 0.0,
        "anchors": len(cosines),
        "ageing_begin": 100 * aging.beginning.micro,
        "ageing_end": 100 * aging.end.micro,
        "ageing_gain": 100 * (aging.end.micro - aging.beginning.micro),
    }
    if cosines:
        metrics |= {"anchor_cosine_min": min(cosines), "anchor_cosine_mean": float(np.mean(cosines))}
    return metrics


def _mean_degree(arrivals: Arrivals, begin: int) -> float:
    """Return the mean degree of the start's vertices with edges, by which views are selected."""
    batch = arrivals.batch(0, begin)
    endpoints = np.column_stack([batch.src, batch.dst])[batch.op == Op.ADD]
    return float(endpoints.size / max(1, len(np.unique(endpoints))))


def _check_ritz(configuration: Configuration) -> None:
    check_marks(configuration)
    check_choice("rule", configuration.get("rule", "ripple"), ("ripple",))
    _build_ritz_model(configuration)


def _build_ritz_model(configuration: Configuration) -> Embedder:
    return build_embedder(remaining_parameters(configuration, "start", "marks"))


def _measure_ritz(configuration: Configuration) -> TrialResult:
    model, dataset, start = _build_ritz_model(configuration), load_data(configuration), configuration["start"]
    begin, metrics = start_size(dataset, start), Metrics()
    mark_at = {size: mark for mark, size in mark_sizes(configuration, dataset).items()}

    def measure_at_marks(arrived: int) -> None:
        if (mark := mark_at.get(begin + arrived)) is not None:
            metrics.update({name + share_suffix(mark): value for name, value in _spectrum_metrics(model).items()})

    stream(model, dataset, start, configuration["seed"], progress=measure_at_marks)
    return TrialResult(metrics | {"anchors": model.diagnostics()["anchors"]}, full_parameters(model))


def _spectrum_metrics(model: Embedder) -> Metrics:
    shares = [spectrum.share for spectrum in measure_spectrum_shares(model._engine)]
    return {f"view_{number}": share for number, share in enumerate(shares, 1)} | {"lowest": min(shares)}


STREAM = Measurement(_check_stream, _measure_stream)
RITZ = Measurement(_check_ritz, _measure_ritz)
