"""Before the first request: a small graph goes through all that may happen, so that nobody waits for kernels."""

from __future__ import annotations

from ripplevec.batch import Batch, Op
from ripplevec.durability.session_model import SessionModel
from ripplevec.embedder import Embedder

_RING, _NEWCOMERS = 40, 4


def warm_up(model: Embedder) -> None:
    """Have a model of the same parameters start, take in batches, take over an anchor, answer and be copied.

    Kernels are compiled once and kept on disk; also then it takes half a second to load them all, and those who read
    would wait meanwhile.
    """
    trial = SessionModel(**model.get_params() | {"start_size": _RING // 2})
    trial.engine.anchor_lag = 1e-9  # one event
    ends = [(f"v{vertex}", f"v{(vertex + step) % _RING}") for vertex in range(_RING) for step in (1, 2, 5)]
    trial.apply_batch(Batch.of([src for src, _ in ends], [dst for _, dst in ends]))
    for number in range(_NEWCOMERS):  # more than makes an anchor due
        trial.apply_batch(Batch.of([f"new{number}", f"new{number}"], ["v0", f"v{number + 1}"]))
    trial.apply_batch(Batch.of(["new0"], ["v0"], op=[Op.REMOVE]))
    trial.nearest("v0")
    trial.preview(["v0", "v1"])
    trial.vectors(["v0", "v1"])
    trial.engine.copy().digest()
