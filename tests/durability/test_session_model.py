from __future__ import annotations

import json
import threading
from concurrent.futures import Future

import pytest

from ripplevec import Batch, InvalidValueError, SpectralView
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.durability.session_model import ANCHOR_LAG, SessionModel, build_metadata, check_parameters, create_model
from ripplevec.errors import StateError
from ripplevec.lab.datasets.synthetic import planted_partition


def test_build_metadata_parameters_round_trip_through_json() -> None:
    views = [SpectralView(tau=0.5), SpectralView(tau_per_degree=4.0, weight=1.4)]
    metadata = json.loads(json.dumps(build_metadata({"dim": 4, "views": views, "threads": 7}, None)))
    assert metadata["anchor_lag"] == ANCHOR_LAG
    model = create_model(metadata, threads=2)
    assert (model.dim, model.views, model.threads, model.engine.anchor_lag) == (4, views, 2, ANCHOR_LAG)
    for accepted in ({}, {"dim": 4}, {"views": views}, {"threads": 3}):
        check_parameters(metadata, accepted, None)
    check_parameters(metadata, {}, ANCHOR_LAG)
    for rejected in ({"dim": 5}, {"views": "auto"}, {"rule": "ripple", "seed": 1}):
        with pytest.raises(InvalidValueError, match="as saved in this directory"):
            check_parameters(metadata, rejected, None)
    with pytest.raises(InvalidValueError, match="anchor_lag"):
        check_parameters(metadata, {}, 0)


def test_check_parameters_validates_together_with_saved_ones() -> None:
    metadata = build_metadata({"rule": "paper", "reuse_influence": True}, 0)
    check_parameters(metadata, {"reuse_influence": True}, None)


def test_create_model_uses_given_factory() -> None:
    class CustomModel(SessionModel):
        pass

    model = create_model(build_metadata({"dim": 3}, 5), CustomModel, threads=1)
    assert type(model) is CustomModel
    assert (model.dim, model.threads, model.engine.anchor_lag) == (3, 1, 5)


def test_session_model_apply_batch_is_the_only_write() -> None:
    model = create_model(build_metadata({"dim": 3}, 0), threads=1)
    changes = model.apply_batch(Batch.of(["a"], ["b"]))
    assert (changes.ids, changes.sequence) == (["a", "b"], 1)
    repeated = model.empty_changes(17)
    assert (repeated.ids, repeated.sequence, repeated.vectors.shape) == ([], 17, (0, 3))
    with pytest.raises(StateError, match="read-only"):
        model.partial_fit([("b", "c")])
    assert model.ids == ["a", "b"]


def test_session_model_readers_run_while_changes_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    model, could_read = create_model(build_metadata({"dim": 3}, 0), threads=1), []
    collect = model.engine.build_changes

    def recording_collect(outcome: BatchOutcome) -> Changes:
        could_read.append(model.lock.try_reading())
        model.lock.end_reading()
        return collect(outcome)

    monkeypatch.setattr(model.engine, "build_changes", recording_collect)
    assert model.apply_batch(Batch.of(["a"], ["b"])).ids == ["a", "b"]
    assert could_read == [True]


def test_session_model_readers_run_while_batch_waits_for_anchor() -> None:
    """A batch that adopts an unfinished anchor waits for it, and readers continue meanwhile."""
    model = create_model(build_metadata({"dim": 3, "anchor_growth": 0.01, "start_size": 20}, 1e-9), threads=1)
    edges = planted_partition(communities=2, size=30, seed=0).edges
    model.apply_batch(Batch.of(edges[:, 0], edges[:, 1]))  # the start
    model.apply_batch(Batch.of(["a", "a"], [0, 1]))
    model.apply_batch(Batch.of(["b", "b"], ["a", 1]))
    pending = model.engine.pending_anchor
    assert pending is not None
    ready, pending.correction = pending.correction.result(), Future()
    writer = threading.Thread(target=model.apply_batch, args=(Batch.of(["c"], ["a"]),), daemon=True)
    writer.start()
    writer.join(0.05)
    assert writer.is_alive()
    assert model.vectors(["a"]).shape == (1, 3)  # would block if readers had to wait
    assert model.sequence == 3
    pending.correction.set_result(ready)
    writer.join(60)
    assert "c" in model
    assert model.engine.pending_anchor is not pending
