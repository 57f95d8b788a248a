"""Where along a stream something is measured: `marks`, the shares of the vertices that are there by then."""

from __future__ import annotations

from itertools import pairwise

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.experiments.kinds.base import Configuration, check_share


def check_marks(configuration: Configuration) -> None:
    """Refuse a start that is no share, and marks that are not after it, one behind the other."""
    start, marks = configuration.get("start"), configuration.get("marks")
    check_share("start", start)
    whole = [start, *marks] if isinstance(marks, list) and marks else [1, 0]
    if whole[-1] > 1 or any(later <= earlier for earlier, later in pairwise(whole)):
        raise InvalidValueError.of("marks", "a list of rising shares above the start, 1 at the most", marks)


def places(configuration: Configuration, dataset: Dataset) -> dict[float, int]:
    """How many vertices are there at each of the marks; one of the stream at the least."""
    first = int(dataset.vertices * configuration["start"]) + 1
    return {mark: max(first, round(mark * dataset.vertices)) for mark in configuration["marks"]}
