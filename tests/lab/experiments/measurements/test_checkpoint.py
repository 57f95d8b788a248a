from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from ripplevec import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines import Spectral
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import score_at_checkpoints
from ripplevec.lab.experiments.measurements import run_trial

CHECKPOINT = {"kind": "checkpoint", "dataset": "planted", "seed": 3, "start": 0.5, "every": 0.25, "dim": 8}


def test_a_retrained_method_is_judged_at_every_checkpoint(graph: Dataset, embedded: list[int]) -> None:
    measured = run_trial(CHECKPOINT | {"method": "spectral"})
    assert embedded == [1000, 150, 180, 210, 240], "a small graph first, to compile with"
    expected = score_at_checkpoints(Spectral(dim=8).embed, graph, 0.5, 3, 0.25)
    assert measured.metrics["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)
    assert measured.metrics["checkpoint_macro"] == pytest.approx(100 * expected.scores.macro)
    assert measured.metrics["retrainings"] == 4
    assert measured.parameters["dim"] == 8


@pytest.mark.parametrize(("method", "rule"), [("ripplevec", "ripple"), ("paper", "paper")])
def test_ours_is_embedded_from_nothing_each_time(method: str, rule: str, graph: Dataset) -> None:
    def embed(so_far: csr_array) -> Any:
        return Embedder(dim=8, seed=3, rule=rule).fit(so_far).vectors(np.arange(so_far.shape[0]))

    measured = run_trial(CHECKPOINT | {"method": method})
    expected = score_at_checkpoints(embed, graph, 0.5, 3, 0.25)
    assert measured.metrics["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)
    assert measured.parameters["rule"] == rule


def test_vertices_may_come_by_index_and_every_twentieth_of_the_stream_is_the_default(graph: Dataset) -> None:
    own = {name: value for name, value in CHECKPOINT.items() if name != "every"}
    figures = run_trial(own | {"method": "spectral", "arrival_order": "index"}).metrics
    expected = score_at_checkpoints(Spectral(dim=8).embed, graph, 0.5, None, 0.05)
    assert figures["retrainings"] == 20
    assert figures["checkpoint_micro"] == pytest.approx(100 * expected.scores.micro)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"method": "neighbor_mean"}, "method: expected one of .*got 'neighbor_mean'"),
        ({"start": None}, "start: expected a share"),
        ({"every": 5}, "every: expected a share"),
        ({"arrival_order": "age"}, "arrival_order: expected one of"),
        ({"edges": "spread"}, "parameters: expected those of the kind of cell.*'edges'"),
    ],
)
def test_what_cannot_be_run_is_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidValueError, match=expected):
        check(CHECKPOINT | {"method": "spectral"} | change)
