from __future__ import annotations

import json

import pytest

from ripplevec import Batch, InvalidValueError, SpectralView
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.durability.session_model import SessionModel, build_metadata, check_parameters, create_model
from ripplevec.errors import StateError


def test_build_metadata_parameters_round_trip_through_json() -> None:
    views = [SpectralView(tau=0.5), SpectralView(tau_per_degree=4.0, weight=1.4)]
    metadata = json.loads(json.dumps(build_metadata({"dim": 4, "views": views, "threads": 7})))
    model = create_model(metadata, threads=2)
    assert (model.dim, model.views, model.threads, model.anchor_pace) == (4, views, 2, "gradual")
    for accepted in ({}, {"dim": 4}, {"views": views}, {"threads": 3}):
        check_parameters(metadata, accepted)
    for rejected in ({"dim": 5}, {"views": "auto"}, {"rule": "ripple", "seed": 1}, {"anchor_pace": "immediate"}):
        with pytest.raises(InvalidValueError, match="as saved in this directory"):
            check_parameters(metadata, rejected)


def test_create_model_of_an_earlier_version_has_immediate_anchors() -> None:
    """Directories that do not name a pace were written when all anchors were immediate; their journals are replayed."""
    metadata = build_metadata({"dim": 4})
    del metadata["parameters"]["anchor_pace"]
    metadata["anchor_lag"] = 0.02  # of an earlier version too
    assert create_model(metadata, threads=1).anchor_pace == "immediate"
    check_parameters(metadata, {"anchor_pace": "immediate"})
    with pytest.raises(InvalidValueError, match="anchor_pace"):
        check_parameters(metadata, {"anchor_pace": "gradual"})


def test_check_parameters_validates_together_with_saved_ones() -> None:
    metadata = build_metadata({"rule": "paper", "reuse_influence": True})
    check_parameters(metadata, {"reuse_influence": True})


def test_create_model_uses_given_factory() -> None:
    class CustomModel(SessionModel):
        pass

    model = create_model(build_metadata({"dim": 3}), CustomModel, threads=1)
    assert type(model) is CustomModel
    assert (model.dim, model.threads) == (3, 1)


def test_session_model_apply_batch_is_the_only_write() -> None:
    model = create_model(build_metadata({"dim": 3}), threads=1)
    changes = model.apply_batch(Batch.of(["a"], ["b"]))
    assert (changes.ids, changes.sequence) == (["a", "b"], 1)
    repeated = model.empty_changes(17)
    assert (repeated.ids, repeated.sequence, repeated.vectors.shape) == ([], 17, (0, 3))
    with pytest.raises(StateError, match="read-only"):
        model.partial_fit([("b", "c")])
    assert model.ids == ["a", "b"]


def test_session_model_readers_run_while_changes_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    model, could_read = create_model(build_metadata({"dim": 3}), threads=1), []
    collect = model.engine.build_changes

    def recording_collect(outcome: BatchOutcome) -> Changes:
        could_read.append(model.lock.try_reading())
        model.lock.end_reading()
        return collect(outcome)

    monkeypatch.setattr(model.engine, "build_changes", recording_collect)
    assert model.apply_batch(Batch.of(["a"], ["b"])).ids == ["a", "b"]
    assert could_read == [True]
