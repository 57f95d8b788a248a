"""The model of a session: everybody may read it, and only what is on disk already changes it."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Protocol

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, StateError
from ripplevec.parameters import Parameters

ANCHOR_LAG = 0.02
"""Events until an anchor that is due is taken over, as a share of the vertices and edges there are when it is begun."""

FREE = ("threads", "search", "storage_dir")  # the result does not depend on them: every opening may choose


class ModelFactory(Protocol):
    """What makes the model of a session."""

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        """What a directory keeps of it beside the parameters, and what it has to be again."""

    def __call__(self, *nothing: Any, **parameters: Any) -> SessionModel:
        """An empty model."""


class SessionModel(Embedder):
    """An embedder that the session alone changes: whatever else did would be gone after a crash."""

    saved_settings: ClassVar[Mapping[str, Any]] = {}
    _recovery_hint = "Open the directory again: everything that was acknowledged is in it"

    def apply_batch(self, batch: Batch) -> Changes:
        """Apply a batch that is on disk; what it changed is collected beside readers."""
        with self._lock.still():
            outcome = self._apply_to_engine(batch)  # which may put another engine in place
            return self._engine.build_changes(outcome)

    def warn_self_loops(self) -> None:
        """Warn of self-loops, once."""
        self._engine.warn_self_loops()

    def empty_changes(self, sequence: int) -> Changes:
        """The answer to a batch that had been applied before, under this number."""
        with self._lock.reading():
            return self._engine.empty_changes(sequence)

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise StateError("the model of a session is for reading: change it with session.apply(…), which keeps it")

    fit = partial_fit = add_vertex = remove_edges = remove_vertex = anchor = set_params = _refuse


def build_metadata(
    given: Mapping[str, Any], anchor_lag: float | None, beside: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """What a new directory keeps of its parameters, and beside them."""
    lag = ANCHOR_LAG if anchor_lag is None else anchor_lag
    if isinstance(lag, bool) or not isinstance(lag, int | float) or not 0 <= lag < inf:
        raise InvalidValueError.of("anchor_lag", "a share of the graph, a number ≥ 0", lag)
    chosen = {name: value for name, value in given.items() if name not in FREE}
    return {"parameters": _parameters(chosen).to_json(), "anchor_lag": float(lag)} | dict(beside)


def check_parameters(
    saved_settings: Mapping[str, Any],
    given: Mapping[str, Any],
    anchor_lag: float | None,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Refuse parameters that are not those of the directory; those that are not given are."""
    there = Parameters.from_json(kept["parameters"])
    known, asked = (_parameters(there | dict(more)).to_json() for more in ({}, given))  # it may be older than some
    asked["anchor_lag"] = kept["anchor_lag"] if anchor_lag is None else anchor_lag
    _check_shards(kept, beside)
    for name, value in {**kept, **known}.items():
        if name in asked and asked[name] != value and name not in FREE:
            raise InvalidValueError(
                f"{name}: expected {value!r}, with which this directory was made, got {asked[name]!r}; leave it out, "
                "or begin another directory"
            )


def create_model(kept: Mapping[str, Any], model: ModelFactory = SessionModel, **free: Any) -> SessionModel:
    """An empty model, made by `model`, with the parameters of a directory and those that are free."""
    _check_shards(kept, model.saved_settings)
    made = model(**Parameters.from_json(kept["parameters"]) | free)
    made.engine.anchor_lag = kept["anchor_lag"]
    return made


def _check_shards(kept: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    there, asked = kept.get("shards"), beside.get("shards")
    if there != asked:
        raise InvalidValueError(
            f"shards: expected {_shards(there)}, with which this directory was made, got {_shards(asked)}; open it as "
            "it was made, or begin another directory"
        )


def _shards(count: int | None) -> str:
    return "none (a model on one machine)" if count is None else f"{count:,}"


def _parameters(given: Mapping[str, Any]) -> Parameters:
    known = Embedder().get_params()
    for name in given:
        if name not in known:
            raise InvalidValueError.of("parameter", "one of " + ", ".join(known), name)
    return Parameters(**known | dict(given))
