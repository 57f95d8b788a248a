"""Model of a session, an embedder that only the session may change, and the saved settings it is created from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Protocol, cast

from ripplevec.batch import Batch
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder, UnusableState
from ripplevec.engine.engine import Engine
from ripplevec.errors import InvalidValueError, StateError
from ripplevec.graph.batch_validation import check_batch
from ripplevec.parameters import Parameters

RUNTIME_PARAMETERS = ("threads", "search", "storage_dir", "max_time_jump")
"""Parameters that do not affect the result: they are not saved, and each opening may choose them."""


class ModelFactory(Protocol):
    """Callable that creates the model of a session, for example the class `SessionModel`."""

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        """Settings saved in the state directory besides the parameters; a later opening must use the same."""

    def __call__(self, *nothing: Any, **parameters: Any) -> SessionModel:
        """Create an empty model."""


class SessionModel(Embedder):
    """Embedder that only its session changes: any other change would be lost in a crash.

    The read methods of `Embedder` work as usual. Its write methods raise `StateError`.
    """

    saved_settings: ClassVar[Mapping[str, Any]] = {}
    on_loss: Callable[[], None] | None = None  # called if a part of the model is lost; set by the session
    _recovery_hint = "Open the directory again: everything that was acknowledged is in it"

    def apply_batch(self, batch: Batch) -> Changes:
        """Apply a batch that `check_batch` accepted; readers are not blocked while its changes are collected."""
        with self._lock.exclude_writers():
            outcome = self._apply_to_engine(batch)  # may replace the engine
            return self._engine.build_changes(outcome)

    def replay_batch(self, batch: Batch) -> Changes:
        """Check a batch read from the journal against the state, then apply it."""
        self._engine.check_attributes(batch.attributes)
        check_batch(self._engine.graph_lookup, batch)
        return self.apply_batch(batch)

    def check_complete(self) -> None:
        """Raise `LostStateError` if a part of the model is lost."""
        if self._engine.lost is not None:
            raise self._engine.lost

    def create_replacement(self) -> SessionModel:
        """Create an empty model that can take the place of this one, of which a part is lost."""
        raise NotImplementedError  # a model in this process is lost as a whole

    def replace_lost(self, rebuild: Callable[[], SessionModel]) -> None:
        """Replace the state by that of a rebuilt model; readers wait. If this fails, the model is unusable."""

        def replace() -> None:
            error = StateError("a part of the model is lost")
            self._engine = cast(Engine, UnusableState(error, SessionModel._recovery_hint))
            self._engine = rebuild().engine

        with self._lock.exclude_writers():
            self._lock.run_exclusively(replace)

    def warn_self_loops(self) -> None:
        """Warn once that self-loops are ignored."""
        self._engine.warn_self_loops()

    def empty_changes(self, sequence: int) -> Changes:
        """Return empty changes, the result for a batch that was already applied under a sequence number."""
        with self._lock.reading():
            return self._engine.empty_changes(sequence)

    def _raise_read_only(self, *arguments: Any, **options: Any) -> NoReturn:
        raise StateError("the model of a session is read-only: expected a read. To change it, use session.apply(…).")

    fit = partial_fit = set_attributes = add_vertex = remove_edges = remove_vertex = anchor = set_params = (
        _raise_read_only
    )


def build_metadata(parameters: Mapping[str, Any], settings: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return the metadata of a new state directory: validated parameters and the factory's settings."""
    saved = {name: value for name, value in parameters.items() if name not in RUNTIME_PARAMETERS}
    return {"parameters": _make_parameters(saved).to_json()} | dict(settings)


def check_parameters(
    metadata: Mapping[str, Any],
    parameters: Mapping[str, Any],
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Raise `InvalidValueError` if a given parameter differs from the one saved in the state directory."""
    saved = Parameters.from_json(metadata["parameters"])
    # A directory may be older than some parameters: the saved ones are completed with their defaults.
    expected, given = (_make_parameters(saved | dict(override)).to_json() for override in ({}, parameters))
    _check_shards(metadata, settings)
    for name, value in {**metadata, **expected}.items():
        if name in given and given[name] != value and name not in RUNTIME_PARAMETERS:
            raise InvalidValueError(
                f"{name}: expected {value!r}, as saved in this directory, got {given[name]!r}. Omit it, or use another "
                "directory."
            )


def create_model(
    metadata: Mapping[str, Any], factory: ModelFactory = SessionModel, **runtime_parameters: Any
) -> SessionModel:
    """Create an empty model from the metadata of a state directory and the runtime parameters of this opening."""
    _check_shards(metadata, factory.saved_settings)
    return factory(**Parameters.from_json(metadata["parameters"]) | runtime_parameters)


def _check_shards(metadata: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    expected, given = metadata.get("shards"), settings.get("shards")
    if expected != given:
        raise InvalidValueError(
            f"shards: expected {_describe_shards(expected)}, as saved in this directory, got "
            f"{_describe_shards(given)}. Open it with the same number of shards, or use another directory."
        )


def _describe_shards(count: int | None) -> str:
    return "none (a model on one machine)" if count is None else f"{count:,}"


def _make_parameters(given: Mapping[str, Any]) -> Parameters:
    defaults = Embedder().get_params()
    for name in given:
        if name not in defaults:
            raise InvalidValueError.of("parameter", "one of " + ", ".join(defaults), name)
    return Parameters(**defaults | dict(given))
