"""The public classes for models on several machines: an embedder on Ray, and its factory for sessions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ripplevec.cluster.attributed_engine import create_cluster_engine
from ripplevec.cluster.shard import Shard
from ripplevec.cluster.state_arrays import saved_shard_count
from ripplevec.cluster.transport import LocalTransport, Transport
from ripplevec.durability.session_model import SessionModel
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.engine.state_validation import MALFORMED_STATE_ERRORS
from ripplevec.errors import FormatError, InvalidValueError, MissingExtraError
from ripplevec.parameters import Parameters
from ripplevec.util.checked_directory import RESTORE_HINT, read_arrays
from ripplevec.util.locks import ReadWriteLock
from ripplevec.util.parallel import resolve_threads

if TYPE_CHECKING:
    from ripplevec.cluster.ray_transport import ShardActors

IN_PROCESS = "in-process"
"""Address of shards that are threads of this process, without Ray: for maintenance of a saved state, and for tests."""


class ShardedEmbedder(Embedder):
    """An `Embedder` whose vertices are distributed over the machines of a Ray cluster.

    It has the methods and parameters of `Embedder` and produces the same vectors for any number of shards: bit for bit
    without anchors, up to rounding with immediate anchors, and approximately with gradual ones. If a shard is lost,
    with its process or its machine, the model becomes unusable. A session (`Sharded`) recovers it automatically.

    Parameters
    ----------
    shards : int, default 8
        Number of shards, distributed over the machines in proportion to their processors.
    address : str, optional
        Address of a Ray cluster; "auto" for the cluster that this machine belongs to. By default, a cluster is started
        on this machine. "in-process": the shards are threads of this process, without Ray.
    **parameters
        Parameters of `Embedder`. With rule "paper", the driver applies a batch arrival by arrival, which is slow.

    Raises
    ------
    InvalidValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from ripplevec.cluster import ShardedEmbedder
    >>> model = ShardedEmbedder(shards=8, address="auto", dim=128)  # doctest: +SKIP
    >>> model.fit([("a", "b"), ("b", "c"), ("c", "a")])  # doctest: +SKIP
    >>> model.close()  # doctest: +SKIP
    """

    _recovery_hint = "Load the last saved model; a session recovers lost shards automatically"

    def __init__(self, *, shards: int = 8, address: str | None = None, **parameters: Any) -> None:
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise InvalidValueError.of("shards", "a whole number ≥ 1", shards)
        self.shards, self.address = shards, address
        self._actors = None if address == IN_PROCESS else _start_actors(shards, address)
        super().__init__(**parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the model.

        Parameters
        ----------
        deep : bool, default True
            Ignored; accepted for compatibility with scikit-learn.

        Returns
        -------
        dict
            `shards`, `address` and the parameters of `Embedder` by name.
        """
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
        """Load a model that `save` wrote, on the number of shards that it had.

        Parameters
        ----------
        directory : path
            Directory of the saved model.
        storage_dir : path, optional
            Directory for vectors on disk, as in `Embedder`; by default, vectors are in memory.
        address : str, optional
            Address of a Ray cluster, as in the constructor.

        Returns
        -------
        ShardedEmbedder
            The loaded model.

        Raises
        ------
        FormatError
            If the directory does not contain a model that was saved on shards by this version.
        """
        arrays, meta = read_arrays(directory, mapped=True)
        shards = saved_shard_count(arrays)
        try:
            parameters = Parameters.from_json(meta["parameters"]) | {"storage_dir": storage_dir}
            model = cls(shards=shards, address=address, **parameters)
            model._engine.restore(arrays)
        except MALFORMED_STATE_ERRORS as error:
            raise FormatError(f"{directory}: not a saved model of this version ({error}). {RESTORE_HINT}") from error
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and arrays, all of them on the driver, for copies and pickles."""
        return {**super().__getstate__(), "shards": self.shards, "address": self.address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the model from the result of `__getstate__`."""
        parameters = Parameters.from_json(state["parameters"])
        type(self).__init__(self, shards=state["shards"], address=state["address"], **parameters)
        self._engine.restore(state["arrays"])

    def close(self) -> None:
        """Terminate the shards; unsaved changes are lost."""
        if self._actors is not None:
            self._actors.close()

    def _validated_parameters(self, **changes: Any) -> Parameters:
        parameters = self.get_params() | changes
        for name in ("shards", "address"):  # of the processes, which the model keeps
            if parameters.pop(name) != getattr(self, name):
                expected = f"{getattr(self, name)!r}, which cannot be changed; create another model"
                raise InvalidValueError.of(name, expected, changes[name])
        return Parameters(**parameters)

    def _create_engine(self, parameters: Parameters) -> Engine:
        transport = self._create_transport(parameters)
        return cast(Engine, create_cluster_engine(transport, parameters, recovery_hint=self._recovery_hint))

    def _create_transport(self, parameters: Parameters) -> Transport:
        """Create empty shards."""
        if self._actors is not None:
            from ripplevec.cluster.ray_transport import RayTransport

            return RayTransport(self._actors, parameters)
        threads = parameters.threads or max(1, resolve_threads(None) // self.shards)
        shared = replace(parameters, threads=threads)
        return LocalTransport(self.shards, lambda index: Shard(index, self.shards, shared))


def _start_actors(shards: int, address: str | None) -> ShardActors:
    try:
        from ripplevec.cluster.ray_transport import ShardActors
    except ModuleNotFoundError as error:
        raise MissingExtraError("ripplevec.cluster", "cluster") from error
    return ShardActors(shards, address)


class SessionShardedEmbedder(SessionModel, ShardedEmbedder):
    """A model on shards that only a session may modify, and that the session recovers if a shard is lost."""

    _recovery_hint = "The session recovers it; retry"

    def _create_engine(self, parameters: Parameters) -> Engine:
        self._transport = self._create_transport(parameters)
        options = {"recovery_hint": self._recovery_hint, "on_loss": self._report_loss}
        return cast(Engine, create_cluster_engine(self._transport, parameters, **options))

    def _report_loss(self) -> None:
        if self.on_loss is not None:
            self.on_loss()

    def create_replacement(self) -> SessionModel:
        """Create an empty model on new shards in the same processes; the shards of this model are dropped."""
        self._transport.drop()
        replacement = object.__new__(type(self))
        vars(replacement).update(vars(self), _lock=ReadWriteLock())
        replacement._engine = replacement._create_engine(self._active_parameters)
        self._transport = replacement._transport
        return replacement


class Sharded(NamedTuple):
    """Factory for session models on shards.

    Parameters
    ----------
    shards : int, default 8
        Number of shards; a session directory can only be opened with the number that it was created with.
    address : str, optional
        Address of a Ray cluster, as in `ShardedEmbedder`.

    Examples
    --------
    >>> from ripplevec import Session
    >>> from ripplevec.cluster import Sharded
    >>> session = Session("directory", model=Sharded(8, "auto"))  # doctest: +SKIP
    """

    shards: int = 8
    address: str | None = None

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        """Settings that the session directory records."""
        return {"shards": self.shards}

    def __call__(self, *ignored: Any, **parameters: Any) -> SessionModel:
        """Create an empty model. Positional arguments are ignored."""
        return SessionShardedEmbedder(shards=self.shards, address=self.address, **parameters)
