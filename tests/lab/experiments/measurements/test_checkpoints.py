from __future__ import annotations

from typing import Any

import pytest
from ripplevec.lab.experiments.measurements.checkpoints import check_marks, places

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets import Dataset


def test_a_mark_is_as_many_vertices_and_one_of_the_stream_at_least(graph: Dataset) -> None:
    assert graph.vertices == 240
    found = places({"start": 0.5, "marks": [0.501, 0.75, 1.0]}, graph)
    assert found == {0.501: 121, 0.75: 180, 1.0: 240}


@pytest.mark.parametrize("marks", [None, [], 0.7, [0.5], [0.8, 0.7], [0.7, 0.7], [0.9, 1.1]])
def test_marks_rise_from_the_start_to_the_end(marks: Any) -> None:
    with pytest.raises(InvalidValueError, match="marks: expected a list of rising shares"):
        check_marks({"start": 0.5, "marks": marks})


def test_a_start_is_needed() -> None:
    check_marks({"start": 0.5, "marks": [1.0]})
    with pytest.raises(InvalidValueError, match="start: expected a share"):
        check_marks({"marks": [1.0]})
