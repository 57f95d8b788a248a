"""What can go wrong, said to the person who reads it: what was expected, what came, what to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class RipplevecError(Exception):
    """The base of every error Ripplevec raises on purpose."""


class InvalidValueError(RipplevecError, ValueError):
    """A parameter or an input has a value that cannot be used."""

    @classmethod
    def of(cls, name: str, expected: str, got: object) -> InvalidValueError:
        """The one sentence for a bad value: its name, what was expected, what came."""
        return cls(f"{name}: expected {expected}, got {shorten(got)}")


class UnknownVertexError(RipplevecError, KeyError):
    """A vertex was named that the model does not hold."""

    def __init__(self, missing: Sequence[object]) -> None:
        self.missing = list(missing)
        super().__init__(self.missing)  # as it was called, so that it can be pickled

    def __str__(self) -> str:
        name = shorten(self.missing[0])
        return f"unknown vertex {name}{_and_more(self.missing)}; add it first, or test with `id in model`"


class UnknownEdgeError(RipplevecError, KeyError):
    """An edge was to be removed that the graph does not hold."""

    def __init__(self, missing: Sequence[tuple[object, object]]) -> None:
        self.missing = list(missing)
        super().__init__(self.missing)

    def __str__(self) -> str:
        source, target = map(shorten, self.missing[0])
        return f"no edge between {source} and {target}{_and_more(self.missing)}; nothing was removed"


class FormatError(RipplevecError, ValueError):
    """A file or a directory does not hold what its format promises."""


class StateError(RipplevecError):
    """A session cannot go on: another has its directory, nothing can be written, or memory and disk have come apart."""


class MissingExtraError(RipplevecError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)

    def __str__(self) -> str:
        what, extra = self.args
        return f"{what} needs an optional dependency: pip install 'ripplevec[{extra}]'"


class SelfLoopWarning(UserWarning):
    """Self-loops came in and were left out; a vertex is not its own neighbor here."""


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidValueError.of(name, "one of " + ", ".join(map(repr, choices)), value)


def _and_more(missing: Sequence[object]) -> str:
    return f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""


def shorten(value: object, limit: int = 80) -> str:
    """A value as it may stand in a message: its repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
