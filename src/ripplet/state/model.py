"""The model of a session: everybody may read it, and only what is on disk already changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from ripplet.changes import Changes
from ripplet.embedder import Embedder
from ripplet.errors import InvalidValueError, StateError
from ripplet.events import Batch
from ripplet.parameters import Parameters

ANCHOR_LAG = 32
"""Batches between the one that makes an anchor due and the one after which it is taken over."""

FREE = ("threads", "search", "storage_dir")  # the result does not depend on them: every opening may choose


class KeptModel(Embedder):
    """An embedder that the session alone changes: whatever else did would be gone after a crash."""

    def take_in(self, batch: Batch) -> Changes:
        """Apply a batch that is on disk. Only one thread at a time may: what it changed is collected beside readers."""
        with self._lock.writing():
            outcome = self._engine.apply(batch)
        return self._changes(outcome)

    def unchanged(self, sequence: int) -> Changes:
        """The answer to a batch that had been applied before, under this number."""
        nobody = np.empty(0, np.int64)
        with self._lock.reading():
            inside, serve = self._engine.field.vectors[nobody], self._engine.rule.server()
        return Changes(nobody, inside, serve, np.empty(0, np.bool_), [], sequence, False)

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise StateError("the model of a session is for reading: change it with session.apply(…), which keeps it")

    fit = partial_fit = add_vertex = remove_edges = remove_vertex = anchor = set_params = _refuse


def kept_parameters(given: Mapping[str, Any], anchor_lag: int | None) -> dict[str, Any]:
    """What a new directory keeps of its parameters."""
    lag = ANCHOR_LAG if anchor_lag is None else anchor_lag
    if isinstance(lag, bool) or not isinstance(lag, int) or lag < 0:
        raise InvalidValueError.of("anchor_lag", "a whole number of batches ≥ 0", lag)
    chosen = {name: value for name, value in given.items() if name not in FREE}
    return {"parameters": _parameters(chosen).to_json(), "anchor_lag": lag}


def check_parameters(kept: Mapping[str, Any], given: Mapping[str, Any], anchor_lag: int | None) -> None:
    """Refuse parameters that are not those of the directory; those that are not given are."""
    asked = _parameters(Parameters.from_json(kept["parameters"]) | dict(given)).to_json()
    asked = {"anchor_lag": kept["anchor_lag"] if anchor_lag is None else anchor_lag, **asked}
    for name, value in {"anchor_lag": kept["anchor_lag"], **kept["parameters"]}.items():
        if asked[name] != value and name not in FREE:
            raise InvalidValueError(
                f"{name}: expected {value!r}, with which this directory was made, got {asked[name]!r}; leave it out, "
                "or begin another directory"
            )


def new_model(kept: Mapping[str, Any], **free: Any) -> KeptModel:
    """An empty model with the parameters of a directory, and those that are free."""
    model = KeptModel(**Parameters.from_json(kept["parameters"]) | free)
    model.engine.anchor_lag = kept["anchor_lag"]
    return model


def _parameters(given: Mapping[str, Any]) -> Parameters:
    known = Embedder().get_params()
    for name in given:
        if name not in known:
            raise InvalidValueError.of("parameter", "one of " + ", ".join(known), name)
    return Parameters(**known | dict(given))
