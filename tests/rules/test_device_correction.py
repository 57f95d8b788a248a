"""Gradual corrections on a GPU: the same code with the operators of the CPU, and on a GPU where there is one."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from correction_streams import COPIES, KINDS, apply_all, make_model, make_stream, stage_of, timed

from ripplevec import Batch, Embedder, SpectralView
from ripplevec.errors import FormatError, RipplevecError
from ripplevec.graph.adjacency import Adjacency, WeightScale
from ripplevec.rules import device_correction, gradual_correction, ripple
from ripplevec.rules.anchor import CorrectionError
from ripplevec.rules.device_correction import DeviceCorrection, GraphSnapshot, kind_of_correction, uses_gpu
from ripplevec.rules.gradual_correction import GradualCorrection
from ripplevec.views import gpu
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.operators import DEVICE_VARIABLE

STAGES_WITH_SNAPSHOT = {"copy", "solve", "transform"}


@pytest.fixture
def corrected_on_device(monkeypatch: pytest.MonkeyPatch, slow_corrections: None) -> None:
    """Compute corrections like on a GPU, with the operators of the CPU."""
    monkeypatch.setattr(ripple, "uses_gpu", lambda _: True)


def correction_at(stage: str) -> tuple[Embedder, list[Batch]]:
    """Return a model whose correction is at a stage, and the batches that are left."""
    start, stream = make_stream()
    model = make_model("plain", start)
    while stage_of(model) != stage:
        model.partial_fit(stream.pop(0))
    assert isinstance(model.engine.correction, DeviceCorrection)
    return model, stream


@pytest.mark.usefixtures("corrected_on_device")
@pytest.mark.parametrize("kind", KINDS)
def test_stream_corrected_on_device_continues_from_a_copy_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    start, stream = make_stream()
    model, copies, stages = make_model(kind, start), [], set()
    for number, batch in enumerate(stream):
        model.partial_fit(timed(batch, model))
        for copied in copies:
            copied.partial_fit(timed(batch, copied))
        stage = stage_of(model)
        if stage is not None and stage not in stages:
            stages.add(stage)
            copies.append(COPIES["save" if number % 2 else "clone"](model, tmp_path / stage))
    assert stages >= STAGES_WITH_SNAPSHOT | {"catch_up"}
    assert "filter" not in stages
    assert model.engine.anchors >= 2
    assert {copied.digest() for copied in copies} == {model.digest()}
    model.check()


@pytest.mark.usefixtures("corrected_on_device")
def test_stream_corrected_on_device_has_the_same_bits_for_any_number_of_threads() -> None:
    start, stream = make_stream(batches=200)
    assert len({apply_all(make_model("two views", start, threads=threads), stream) for threads in (1, 3)}) == 1


@pytest.mark.usefixtures("slow_corrections")
def test_correction_on_device_finds_the_vectors_of_the_other_gradual_corrections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradual_correction, "REPEAT_RATIO", 0.75)  # as by default
    start, stream = make_stream(batches=190)
    one, other = make_model("plain", start), make_model("plain", start)
    apply_all(one, stream)
    monkeypatch.setattr(ripple, "uses_gpu", lambda _: True)
    apply_all(other, stream)
    assert one.engine.anchors == other.engine.anchors >= 2
    cosines = (one.to_numpy() * other.to_numpy()).sum(axis=1)
    assert np.median(cosines) > 0.9


@pytest.mark.usefixtures("corrected_on_device")
def test_stream_goes_on_while_the_device_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    finish, solve = Event(), device_correction.solve_bases

    def wait_and_solve(*arguments: Any, **options: Any) -> Any:
        assert finish.wait(timeout=60)
        return solve(*arguments, **options)

    monkeypatch.setattr(device_correction, "solve_bases", wait_and_solve)
    model, stream = correction_at("solve")
    paid = model.engine.correction.waited
    model.partial_fit(stream.pop(0))
    assert stage_of(model) == "solve"
    assert model.engine.correction.waited > paid
    finish.set()
    while stage_of(model) == "solve":
        model.partial_fit(stream.pop(0))
    assert stage_of(model) == "transform"


@pytest.mark.usefixtures("corrected_on_device")
def test_correction_on_device_without_usable_result_keeps_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise CorrectionError("no usable vectors")

    monkeypatch.setattr(device_correction, "solve_bases", refuse)
    model, stream = correction_at("solve")
    anchors = model.engine.anchors
    while stage_of(model) == "solve":
        model.partial_fit(stream.pop(0))
    assert (model.engine.anchors, model.engine.anchors_refused) == (anchors, 1)
    assert model.to_numpy().any(axis=1).sum() > 190


@pytest.mark.usefixtures("corrected_on_device")
@pytest.mark.parametrize(
    ("name", "damage", "fault"),
    [
        ("neighbor", lambda array: array + 10**6, "a neighbor is not in its snapshot"),
        ("weight", lambda array: -array, "a weight is not positive"),
        ("vectors", lambda array: array * np.float32(np.nan), "vectors"),
        ("strength", lambda array: array[:-1], "shape"),
        ("degree", lambda array: -array, "a degree is negative"),
        ("arrival", lambda array: array + 10**6, "an arrival number is out of range"),
        ("effective_edges", lambda array: -array, "edges are out of range"),
    ],
)
def test_damaged_snapshot_is_rejected(name: str, damage: Any, fault: str) -> None:
    model, _ = correction_at("solve")
    state = dict(model.engine.state())
    state[f"pending_snapshot_{name}"] = damage(state[f"pending_snapshot_{name}"])
    with pytest.raises(FormatError, match=fault):
        make_model("plain", make_stream()[0]).engine.restore(state)


def test_append_rows_copies_edges_in_the_unit_of_new_edges() -> None:
    source, copied = Adjacency(), Adjacency()
    source.ensure_rows(5)
    pairs = np.array([[0, 1], [0, 2], [3, 0], [2, 3], [0, 4]])
    source.apply(np.zeros(5, np.int8), pairs, np.arange(1, 6, dtype=np.float32))
    source.weight_scale = WeightScale(unit=2.0, effective_edges=3.0)
    for first, last in ((0, 2), (2, 2), (2, 5)):
        copied.append_rows(source, first, last)
    expected, found = source.to_csr().toarray()[:5, :5], copied.to_csr().toarray()[:5, :5]
    np.testing.assert_array_equal(found, expected / 2)
    np.testing.assert_array_equal(copied.links.strength[:5], expected.sum(axis=0) / 2)
    assert copied.edge_count == 5
    assert copied.weight_scale == WeightScale(1.0, 3.0)


def test_snapshot_is_restored_from_its_state() -> None:
    model = make_model("plain", make_stream()[0])
    snapshot = GraphSnapshot(model.dim)
    for last in (7, 100):
        snapshot.append(model.engine.store, last)
    restored = GraphSnapshot.from_state(snapshot.state())
    assert restored.rows == 100
    for name, array in restored.state().items():
        np.testing.assert_array_equal(array, snapshot.state()[name])


def test_gpu_is_used_if_a_view_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu, on_gpu, auto = (SpectralView(tau=0.5, device=device) for device in ("cpu", "cuda", "auto"))
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    assert [uses_gpu(Coordinates(views, 4, True)) for views in ([on_cpu], [on_cpu, on_gpu], [auto])] == [
        False,
        True,
        False,
    ]
    monkeypatch.setenv(DEVICE_VARIABLE, "cuda")
    assert uses_gpu(Coordinates([auto], 4, True))


def test_saved_correction_without_snapshot_is_continued_on_the_cpu() -> None:
    assert kind_of_correction({}) is GradualCorrection
    assert kind_of_correction({"snapshot_arrival": np.empty(0, np.int64)}) is DeviceCorrection


@pytest.mark.usefixtures("slow_corrections")
def test_stream_corrected_on_a_gpu_is_deterministic(tmp_path: Path) -> None:
    try:
        gpu.usable_cupy()
    except RipplevecError as reason:
        pytest.skip(str(reason))
    start, stream = make_stream()
    views = [SpectralView(tau=0.5, share=2, device="cuda"), SpectralView(tau_per_degree=4.0, device="cuda")]
    one, other = (make_model("plain", start, views=views) for _ in range(2))
    stages = set()
    for number, batch in enumerate(stream):
        one.partial_fit(timed(batch, one))
        other.partial_fit(timed(batch, other))
        stages.add(stage_of(one))
        if number % 40 == 7:
            other = COPIES["save"](other, tmp_path / str(number))
    assert one.digest() == other.digest()
    assert stages >= STAGES_WITH_SNAPSHOT
    assert one.engine.anchors >= 2
