"""Measurement `local_action`: the processor time of an arrival under rule `paper`, and what it should depend on.

The paper states O(|I|) for an arrival with the influenced set I, and O(β) for a graph of mean degree β and one round. A
generated graph of `vertices` vertices, with `edges_per_vertex` edges each, grows in its own order. The first `start`
vertices are embedded, the others arrive, and the last `arrivals` of them are measured. Processor time depends less on
other load on the machine than elapsed time. `depth` is that of the rule.
"""

from __future__ import annotations

from time import process_time

from ripplevec.batch import Batch
from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.evaluation.protocols import Arrivals
from ripplevec.lab.experiments.measurements.base import (
    Configuration,
    Measurement,
    TrialResult,
    check_known_parameters,
    load_data,
)
from ripplevec.lab.experiments.measurements.method_scores import build_ripplevec_method, full_parameters

SIZES = ("vertices", "edges_per_vertex", "start", "arrivals")


def _check(configuration: Configuration) -> None:
    check_choice("dataset", configuration["dataset"], ("preferential_attachment",))
    check_known_parameters(configuration, "dim", "depth", *SIZES)
    for name in SIZES:
        if not isinstance(configuration.get(name), int) or configuration[name] < 1:
            raise InvalidValueError.of(name, "an integer ≥ 1", configuration.get(name))
    if configuration["start"] + configuration["arrivals"] >= configuration["vertices"]:
        raise InvalidValueError.of("arrivals", "fewer than the vertices after the start", configuration["arrivals"])
    _build_model(configuration)


def _build_model(configuration: Configuration) -> Embedder:
    parameters = {name: value for name, value in configuration.items() if name in ("dim", "seed", "depth")}
    return build_ripplevec_method("paper", parameters | {"threads": 1})


def _measure(configuration: Configuration) -> TrialResult:
    vertices, start, count = (configuration[name] for name in ("vertices", "start", "arrivals"))
    data = load_data(configuration, vertices=vertices, edges_per_vertex=configuration["edges_per_vertex"])
    arrivals, model = Arrivals.from_dataset(data, None), _build_model(configuration)
    model.fit(arrivals.batch(0, start))
    warm_up = vertices - count - 1  # one arrival that compiles the kernels of small batches
    model.partial_fit(arrivals.batch(start, warm_up))
    first, *batches = [
        Batch.arrival(int(arrivals.order[position]), arrivals.neighbors(position))
        for position in range(warm_up, vertices)
    ]
    model.partial_fit(first)
    began, moved = process_time(), 0
    for batch in batches:
        moved += len(model.partial_fit(batch))
    metrics = {
        "arrival_us": 1e6 * (process_time() - began) / count,
        "influenced": moved / count - 1,  # an arrival is among the moved vertices
        "degree": 2 * len(data.edges) / data.vertices,
    }
    return TrialResult(metrics, full_parameters(model))


LOCAL_ACTION = Measurement(_check, _measure)
