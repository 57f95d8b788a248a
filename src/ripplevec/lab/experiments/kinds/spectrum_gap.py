"""Kind `ritz`: how much of the spectrum of its operator every view of rule `ripple` holds, along a stream.

It is the sum of the Ritz values on the span of the view's rows over the sum of as many leading eigenvalues: 1 for the
exact embedding, and never more. Measured when a share of the vertices is there (`marks`), per view, and the `lowest` of
them. How rows are scaled when they are served does not change their span. `start` is the share of the vertices that is
there from the beginning; all other parameters are the Embedder's.
"""

from __future__ import annotations

from ripplevec.embedder import Embedder
from ripplevec.errors import check_choice
from ripplevec.lab.evaluation import stream
from ripplevec.lab.evaluation.protocols import start_size
from ripplevec.lab.experiments.kinds.base import Configuration, Figures, Kind, Measured, at, data, without
from ripplevec.lab.experiments.kinds.checkpoints import check_marks, places
from ripplevec.lab.experiments.kinds.methods import embedder, spelt_out
from ripplevec.lab.objective.gap import measure_spectrum_shares


def _check(configuration: Configuration) -> None:
    check_marks(configuration)
    check_choice("rule", configuration.get("rule", "ripple"), ("ripple",))
    _model(configuration)


def _model(configuration: Configuration) -> Embedder:
    return embedder(without(configuration, "start", "marks"))


def _run(configuration: Configuration) -> Measured:
    model, dataset, start = _model(configuration), data(configuration), configuration["start"]
    begin, figures = start_size(dataset, start), Figures()
    marks = {place: mark for mark, place in places(configuration, dataset).items()}

    def look(arrived: int) -> None:
        if (mark := marks.get(begin + arrived)) is not None:
            figures.update({name + at(mark): value for name, value in _shares(model).items()})

    stream(model, dataset, start, configuration["seed"], progress=look)
    return Measured(figures | {"anchors": model.diagnostics()["anchors"]}, spelt_out(model))


KIND = Kind(_check, _run)


def _shares(model: Embedder) -> Figures:
    shares = [gap.share for gap in measure_spectrum_shares(model._engine)]
    return {f"view_{number}": share for number, share in enumerate(shares, 1)} | {"lowest": min(shares)}
