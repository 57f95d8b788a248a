"""Methods by name: Ripplevec's rules, static baselines that are retrained, and streaming baselines."""

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
from ripplevec.lab.baselines.streaming import (
    STREAMING_BASELINES,
    StreamingBaselineAdapter,
    get_streaming_baseline,
)
from ripplevec.lab.evaluation.protocols import StreamingModel, time_call
from ripplevec.lab.experiments.measurements.base import Configuration, remaining_parameters
from ripplevec.parameters import Parameters
from ripplevec.views.spectral import SpectralView

RIPPLEVEC_METHODS: dict[str, Configuration] = {"ripplevec": {}, "paper": {"rule": "paper"}}


def build_embedder(parameters: Configuration) -> Embedder:
    """Build an Embedder; `views` may be a list of mappings."""
    arguments = dict(parameters)
    if isinstance(arguments.get("views"), list):
        arguments["views"] = [SpectralView(**view) if isinstance(view, dict) else view for view in arguments["views"]]
    return Embedder(**arguments)


def build_ripplevec_method(name: str, parameters: Configuration) -> Embedder:
    """Build the Embedder of a Ripplevec method by its name."""
    return build_embedder({**RIPPLEVEC_METHODS[name], **parameters})


def is_static(name: str) -> bool:
    """Tell whether a method embeds the final graph only; raise if the name is unknown."""
    check_choice("method", name, [*RIPPLEVEC_METHODS, *BASELINES, *STREAMING_BASELINES])
    return name in BASELINES


def build_static_method(name: str, parameters: Configuration) -> Baseline:
    """Build a method that embeds a whole graph."""
    return get_baseline(name)(**parameters)


def streaming_model_factory(name: str, parameters: Configuration) -> Callable[[], StreamingModel]:
    """Return a function that builds a new streaming model; the parameters are checked immediately."""

    def build() -> Any:
        if name in RIPPLEVEC_METHODS:
            return build_ripplevec_method(name, parameters)
        return StreamingBaselineAdapter(get_streaming_baseline(name)(**parameters))

    build()
    return build


def full_parameters(method: Any) -> Configuration:
    """Return the parameters of a method with all defaults."""
    if isinstance(method, Embedder):
        return Parameters(**method.get_params()).to_json()
    baseline: Any = method.method if isinstance(method, StreamingBaselineAdapter) else method
    return asdict(baseline)


def check_method(configuration: Configuration, *measurement_parameters: str) -> None:
    """Raise if the method is unknown or does not take the remaining parameters."""
    name = configuration.get("method", "")
    parameters = remaining_parameters(configuration, "method", *measurement_parameters)
    if is_static(name):
        build_static_method(name, parameters)
    else:
        streaming_model_factory(name, parameters)


def time_embedding(method: Baseline, dataset: datasets.Dataset) -> tuple[float, NDArray[np.float32]]:
    """Embed a data set; return the seconds, without the conversion to a matrix, and the vectors."""
    graph = dataset.adjacency()
    return time_call(lambda: method.embed(graph))
