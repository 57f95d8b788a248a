"""Kind `stream`: everything about one stream of ours: scores, stability, and how far from an exact embedding it ends.

Vertices arrive at an Embedder, one at a time or `batch` together; `start` is the share of the vertices that is the
start and the training set. All other parameters are the Embedder's; `each_view` changes fields of the views it would
choose by itself, `community_view` those of the first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ripplevec.batch import Op
from ripplevec.embedder import Embedder
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
from ripplevec.lab.experiments.kinds.base import (
    Configuration,
    Figures,
    Kind,
    Measured,
    check_share,
    data,
    percent,
    small,
    times,
    without,
)
from ripplevec.lab.experiments.kinds.methods import embedder, spelt_out
from ripplevec.rules.ripple import RippleRule
from ripplevec.views.graph_stats import GraphStats
from ripplevec.views.spectral import SpectralView, auto_views

WAYS = (("tau", "tau_per_degree"), ("diffusion", "tail", "tail_per_degree"))
"""The fields of a view that say the same thing, each in its way: only one of them can be given."""


def _check(configuration: Configuration) -> None:
    check_share("start", configuration.get("start"))
    _embedder(configuration)


def _embedder(configuration: Configuration, start_degree: float = 0.0) -> Embedder:
    own = without(configuration, "start", "batch", "each_view", "community_view")
    all_views, first = configuration.get("each_view", {}), configuration.get("community_view", {})
    if all_views or first:
        views = [_changed(view, all_views) for view in auto_views(GraphStats(start_degree))]
        own["views"] = [_changed(views[0], first), *views[1:]]
    return embedder(own)


def _changed(view: SpectralView, fields: Configuration) -> SpectralView:
    """A view with other values; what is given in one way does away with the other ways."""
    others = {name: None for ways in WAYS if fields.keys() & set(ways) for name in ways}
    return replace(view, **{**others, **fields})


def _run(configuration: Configuration) -> Measured:
    dataset, start, seed = data(configuration), configuration["start"], configuration["seed"]
    arrivals = Arrivals.from_dataset(dataset, seed)
    model = _embedder(configuration, _mean_degree(arrivals, start_size(dataset, start)))
    watch = AnchorObserver()
    stream(_embedder(configuration), small())
    result = stream(model, dataset, start, seed, configuration.get("batch", 1), observer=watch)
    exact = _same_views(model)
    exact_seconds, _ = time_call(lambda: exact.fit(arrivals.batch(0, dataset.vertices)))
    figures = _scores(result) | _stability(result, watch)
    figures["exact_micro"] = 100 * score_at_end(replace(result, final_vectors=exact.vectors(result.order))).micro
    figures["short_of_exact"] = figures["exact_micro"] - figures["current_micro"]
    figures["exact_seconds"] = exact_seconds
    return Measured(figures, spelt_out(exact))


KIND = Kind(_check, _run)


def _same_views(model: Embedder) -> Embedder:
    """An embedder yet to be fitted, with the views that this one has come to."""
    parameters, rule = model.get_params(), model._engine.rule
    if isinstance(rule, RippleRule):
        parameters["views"] = rule.coordinates.views
    return Embedder(**parameters)


def _scores(result: StreamResult) -> Figures:
    return {
        **percent("current", score_at_end(result)),
        **percent("arrival", score_on_arrival(result)),
        "nmi": 100 * cluster(result.final_vectors, result.labels).nmi,
        **times(result),
    }


def _stability(result: StreamResult, watch: AnchorObserver) -> Figures:
    age, cosines = measure_aging(result), watch.cosines
    figures = {
        "movement": float(np.mean(watch.movements)) if watch.movements else 0.0,
        "anchors": len(cosines),
        "ageing_begin": 100 * age.beginning.micro,
        "ageing_end": 100 * age.end.micro,
        "ageing_gain": 100 * (age.end.micro - age.beginning.micro),
    }
    if cosines:
        figures |= {"anchor_cosine_min": min(cosines), "anchor_cosine_mean": float(np.mean(cosines))}
    return figures


def _mean_degree(arrivals: Arrivals, begin: int) -> float:
    """The mean degree at the start, of those that have edges: what views are chosen by."""
    batch = arrivals.batch(0, begin)
    ends = np.column_stack([batch.src, batch.dst])[batch.op == Op.ADD]
    return float(ends.size / max(1, len(np.unique(ends))))
