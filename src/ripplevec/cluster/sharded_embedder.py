"""The embedder whose model lies on several machines."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

from ripplevec.cluster.checkpoint import saved_shard_count
from ripplevec.cluster.fault_tolerance import FaultTolerantEngine
from ripplevec.durability.session_model import SessionModel
from ripplevec.embedder import Embedder
from ripplevec.engine.saved_state import MALFORMED_STATE_ERRORS
from ripplevec.errors import FormatError, InvalidValueError, MissingExtraError
from ripplevec.parameters import Parameters
from ripplevec.util.checked_directory import RESTORE_HINT, read_arrays

try:
    from ripplevec.cluster.ray_transport import RayTransport, ShardActors
except ModuleNotFoundError as error:
    raise MissingExtraError("ripplevec.cluster", "cluster") from error


class ShardedEmbedder(Embedder):
    """An `Embedder` on Ray: vertices are shared out among shards, and everything else is as on one machine.

    `shards` is how many there are; `address` is that of a Ray cluster ("auto" for the one this machine is part of);
    without it one is started here. All other parameters are those of `Embedder`. The vectors are the same, to the bit
    where no anchor is taken, whatever the number of shards.
    """

    def __init__(self, *, shards: int = 8, address: str | None = None, **parameters: Any) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise InvalidValueError.of("shards", "a whole number ≥ 1", shards)
        if parameters.get("rule", "ripple") != "ripple":
            raise InvalidValueError.of("rule", '"ripple" on shards: others run on one machine', parameters["rule"])
        for name in ("half_life", "expire_after"):
            if parameters.get(name) is not None:
                raise InvalidValueError.of(
                    name, "None on shards: a model that forgets runs on one machine", parameters[name]
                )
        self.shards, self.address = shards, address
        self._actors = ShardActors(shards, address)
        super().__init__(**parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters the model was made with."""
        names = [name for name in inspect.signature(Embedder.__init__).parameters if name != "self"]
        return {name: getattr(self, name) for name in ("shards", "address", *names)}

    @classmethod
    def load(
        cls,
        directory: str | PathLike[str],
        *,
        storage_dir: str | PathLike[str] | None = None,
        address: str | None = None,
    ) -> ShardedEmbedder:
        """The model that `save` wrote, on as many shards as it was on."""
        arrays, meta = read_arrays(directory, mapped=True)
        shards = saved_shard_count(arrays)
        try:
            parameters = Parameters.from_json(meta["parameters"]) | {"storage_dir": storage_dir}
            model = cls(shards=shards, address=address, **parameters)
            model._engine.restore(arrays)
        except MALFORMED_STATE_ERRORS as error:
            raise FormatError(f"{directory}: not a saved model of this version ({error}); {RESTORE_HINT}") from error
        return model

    def __getstate__(self) -> dict[str, Any]:
        """For copies and for other processes: parameters and arrays."""
        return {**super().__getstate__(), "shards": self.shards, "address": self.address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The model that `__getstate__` described."""
        parameters = Parameters.from_json(state["parameters"])
        type(self).__init__(self, shards=state["shards"], address=state["address"], **parameters)
        self._engine.restore(state["arrays"])

    def close(self) -> None:
        """End the shards. What is not saved is gone."""
        self._actors.close()

    def _validated_parameters(self) -> Parameters:
        own = {"shards", "address"}
        return Parameters(**{name: value for name, value in self.get_params().items() if name not in own})

    def _create_engine(self, parameters: Parameters) -> Any:
        return FaultTolerantEngine(RayTransport(self._actors, parameters), parameters)


class SessionShardedEmbedder(SessionModel, ShardedEmbedder):
    """A model on shards that a session alone changes."""


class Sharded(NamedTuple):
    """Makes the models of sessions: `Session(directory, model=Sharded(8))` keeps one that lies on eight shards."""

    shards: int = 8
    address: str | None = None

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        """A directory is of so many shards; anchors are not worked out beside batches there."""
        return {"shards": self.shards, "anchor_lag": 0}

    def __call__(self, *nothing: Any, **parameters: Any) -> SessionModel:
        """An empty model."""
        return SessionShardedEmbedder(shards=self.shards, address=self.address, **parameters)
