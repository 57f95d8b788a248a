"""Every method by its name, whether it is ours, is retrained on the whole graph, or takes in arrivals by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import check_choice
from ripplevec.lab import datasets
from ripplevec.lab.baselines import BASELINES, Baseline, get_baseline
from ripplevec.lab.baselines.streaming import STREAMING_BASELINES, StreamingBaselineAdapter, get_streaming_baseline
from ripplevec.lab.evaluation.protocols import StreamingModel, time_call
from ripplevec.lab.experiments.kinds.base import Configuration, without
from ripplevec.parameters import Parameters
from ripplevec.views.spectral import SpectralView

OURS: dict[str, Configuration] = {"ripplevec": {}, "paper": {"rule": "paper"}}


def embedder(parameters: Configuration) -> Embedder:
    """An Embedder; `views` may be a list of mappings."""
    own = dict(parameters)
    if isinstance(own.get("views"), list):
        own["views"] = [SpectralView(**view) if isinstance(view, dict) else view for view in own["views"]]
    return Embedder(**own)


def ours(name: str, parameters: Configuration) -> Embedder:
    """An Embedder by the name of what is compared."""
    return embedder({**OURS[name], **parameters})


def is_retrained(name: str) -> bool:
    """Whether a method sees the final graph only."""
    check_choice("method", name, [*OURS, *BASELINES, *STREAMING_BASELINES])
    return name in BASELINES


def retrained(name: str, parameters: Configuration) -> Baseline:
    """A method that is retrained on the whole graph."""
    return get_baseline(name)(**parameters)


def streamed(name: str, parameters: Configuration) -> Callable[[], StreamingModel]:
    """How to make a fresh model that vertices can arrive at; parameters are checked now."""
    if name in OURS:
        make: Callable[[], Any] = lambda: ours(name, parameters)  # noqa: E731
    else:
        make = lambda: StreamingBaselineAdapter(get_streaming_baseline(name)(**parameters))  # noqa: E731
    make()
    return make


def spelt_out(method: Any) -> Configuration:
    """The settings of a method with all defaults."""
    if isinstance(method, Embedder):
        return Parameters(**method.get_params()).to_json()
    own: Any = method.method if isinstance(method, StreamingBaselineAdapter) else method
    return asdict(own)


def check_method(configuration: Configuration, *own: str) -> None:
    """Refuse a method that nobody knows, and parameters it does not take; `own` are those of the kind of cell."""
    name, parameters = configuration.get("method", ""), without(configuration, "method", *own)
    if is_retrained(name):
        retrained(name, parameters)
    else:
        streamed(name, parameters)


def embedding(method: Baseline, dataset: datasets.Dataset) -> tuple[float, NDArray[np.float32]]:
    """The seconds of a retraining on the whole graph, once it is a matrix, and its vectors."""
    graph = dataset.adjacency()
    return time_call(lambda: method.embed(graph))
