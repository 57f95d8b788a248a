from __future__ import annotations

import json
import threading
from concurrent.futures import Future

import pytest

from ripplevec import Batch, InvalidValueError, SpectralView
from ripplevec.changes import Changes, BatchOutcome
from ripplevec.durability.session_model import ANCHOR_LAG, SessionModel, check_parameters, build_metadata, create_model
from ripplevec.errors import StateError
from ripplevec.lab.datasets.synthetic import planted_partition


def test_parameters_go_round_through_the_directory() -> None:
    views = [SpectralView(tau=0.5), SpectralView(tau_per_degree=4.0, weight=1.4)]
    kept = json.loads(json.dumps(build_metadata({"dim": 4, "views": views, "threads": 7}, None)))
    assert kept["anchor_lag"] == ANCHOR_LAG
    model = create_model(kept, threads=2)
    assert (model.dim, model.views, model.threads, model.engine.anchor_lag) == (4, views, 2, ANCHOR_LAG)
    for same in ({}, {"dim": 4}, {"views": views}, {"threads": 3}):
        check_parameters(kept, same, None)
    check_parameters(kept, {}, ANCHOR_LAG)
    for other in ({"dim": 5}, {"views": "auto"}, {"rule": "ripple", "seed": 1}):
        with pytest.raises(InvalidValueError, match="with which this directory was made"):
            check_parameters(kept, other, None)
    with pytest.raises(InvalidValueError, match="anchor_lag"):
        check_parameters(kept, {}, 0)


def test_a_parameter_may_only_make_sense_beside_those_that_are_kept() -> None:
    kept = build_metadata({"rule": "paper", "reuse_influence": True}, 0)
    check_parameters(kept, {"reuse_influence": True}, None)


def test_another_class_may_make_the_model() -> None:
    class Other(SessionModel):
        pass

    model = create_model(build_metadata({"dim": 3}, 5), Other, threads=1)
    assert type(model) is Other
    assert (model.dim, model.threads, model.engine.anchor_lag) == (3, 1, 5)


def test_a_batch_is_taken_in_and_nothing_else_is() -> None:
    model = create_model(build_metadata({"dim": 3}, 0), threads=1)
    changes = model.apply_batch(Batch.of(["a"], ["b"]))
    assert (changes.ids, changes.sequence) == (["a", "b"], 1)
    again = model.empty_changes(17)
    assert (again.ids, again.sequence, again.vectors.shape) == ([], 17, (0, 3))
    with pytest.raises(StateError, match="for reading"):
        model.partial_fit([("b", "c")])
    assert model.ids == ["a", "b"]


def test_what_a_batch_changed_is_collected_beside_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, free = create_model(build_metadata({"dim": 3}, 0), threads=1), []
    collect = model.engine.build_changes

    def noting(outcome: BatchOutcome) -> Changes:
        free.append(model.lock.try_reading())
        model.lock.end_reading()
        return collect(outcome)

    monkeypatch.setattr(model.engine, "changed", noting)
    assert model.apply_batch(Batch.of(["a"], ["b"])).ids == ["a", "b"]
    assert free == [True]


def test_readers_do_not_wait_for_an_anchor_that_is_not_ready() -> None:
    """The batch that takes it over does, and lets them in meanwhile."""
    model = create_model(build_metadata({"dim": 3, "anchor_growth": 0.01, "start_size": 20}, 1e-9), threads=1)
    edges = planted_partition(communities=2, size=30, seed=0).edges
    model.apply_batch(Batch.of(edges[:, 0], edges[:, 1]))  # the start
    model.apply_batch(Batch.of(["a", "a"], [0, 1]))
    model.apply_batch(Batch.of(["b", "b"], ["a", 1]))
    pending = model.engine.pending
    assert pending is not None
    ready, pending.correction = pending.correction.result(), Future()
    taking = threading.Thread(target=model.apply_batch, args=(Batch.of(["c"], ["a"]),), daemon=True)
    taking.start()
    taking.join(0.05)
    assert taking.is_alive()
    assert model.vectors(["a"]).shape == (1, 3)  # would hang here
    assert model.sequence == 3
    pending.correction.set_result(ready)
    taking.join(60)
    assert "c" in model
    assert model.engine.pending is not pending
