"""Exceptions and warnings of the package, and helpers for their messages.

A message states what is wrong, what was expected, what was given, and what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ripplevec.install_hint import install_command


class RipplevecError(Exception):
    """Base class of all exceptions that Ripplevec raises.

    Examples
    --------
    >>> import ripplevec
    >>> try:
    ...     ripplevec.Embedder(dim=0)
    ... except ripplevec.RipplevecError as error:
    ...     print(error)
    dim: expected a whole number ≥ 1 and ≤ 65,536, got 0
    """


class InvalidValueError(RipplevecError, ValueError):
    """A parameter or an input has a value that cannot be used. Also a `ValueError`.

    Examples
    --------
    >>> from ripplevec import Batch, InvalidValueError
    >>> try:
    ...     Batch.of(["a"], ["b"], weight=[-1.0])
    ... except InvalidValueError as error:
    ...     print(error)
    weight: expected positive finite numbers, got '-1.0 in row 0'
    """

    @classmethod
    def of(cls, name: str, expected: str, got: object) -> InvalidValueError:
        """Create the error with the standard message.

        Parameters
        ----------
        name : str
            Name of the parameter or input.
        expected : str
            Description of the accepted values.
        got : object
            The value given; its representation is shortened if it is long.

        Returns
        -------
        InvalidValueError
            The error, to be raised by the caller.

        Examples
        --------
        >>> from ripplevec import InvalidValueError
        >>> print(InvalidValueError.of("dim", "a whole number ≥ 1", -3))
        dim: expected a whole number ≥ 1, got -3
        """
        return cls(f"{name}: expected {expected}, got {shorten(got)}")


class UnknownVertexError(RipplevecError, KeyError):
    """A vertex to be read or removed is not in the model. Also a `KeyError`.

    Parameters
    ----------
    missing : sequence of int or str
        Ids of the unknown vertices.
    similar : int or str, optional
        A known vertex whose id has the same text as the first unknown one, but another type.

    Attributes
    ----------
    missing : list of int or str
        Ids of the unknown vertices.
    similar : int, str or None
        See the parameter.

    Examples
    --------
    >>> from ripplevec import Embedder, UnknownVertexError
    >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
    >>> try:
    ...     model.vectors(["a", "x", "y"])
    ... except UnknownVertexError as error:
    ...     error.missing
    ['x', 'y']
    """

    def __init__(self, missing: Sequence[object], similar: object = None) -> None:
        self.missing, self.similar = list(missing), similar
        super().__init__(self.missing, similar)  # the constructor's arguments, so that the error can be pickled

    def __str__(self) -> str:
        vertex = shorten(self.missing[0])
        if self.similar is not None:
            kinds = "the int 7 and the str '7' are different ids"
            return f"unknown vertex {vertex}{_count_others(self.missing)}; did you mean {self.similar!r}? ({kinds})"
        return f"unknown vertex {vertex}{_count_others(self.missing)}; add it first, or test with `id in model`"


class UnknownEdgeError(RipplevecError, KeyError):
    """An edge to be removed is not in the graph. Also a `KeyError`.

    Parameters
    ----------
    missing : sequence of (source, target) pairs
        The unknown edges.

    Attributes
    ----------
    missing : list of (source, target) pairs
        The unknown edges.

    Examples
    --------
    >>> from ripplevec import Embedder, UnknownEdgeError
    >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
    >>> try:
    ...     model.remove_edges([("a", "c")])
    ... except UnknownEdgeError as error:
    ...     error.missing
    [('a', 'c')]
    """

    def __init__(self, missing: Sequence[tuple[object, object]]) -> None:
        self.missing = list(missing)
        super().__init__(self.missing)

    def __str__(self) -> str:
        source, target = map(shorten, self.missing[0])
        return f"no edge between {source} and {target}{_count_others(self.missing)}; nothing was removed"


class FormatError(RipplevecError, ValueError):
    """A file or a directory does not have the content that its format requires. Also a `ValueError`."""


class StateError(RipplevecError):
    """A model or a session cannot continue.

    Either an update was interrupted, another process has the session directory open, the directory cannot be written,
    or memory and disk differ.
    """


class LostStateError(StateError):
    """A part of a model is gone with the process or the machine that stored it."""


class MissingExtraError(RipplevecError, ImportError):
    """A feature needs an optional dependency that is not installed. Also an `ImportError`.

    Parameters
    ----------
    feature : str
        The feature, as the subject of the message.
    extra : str
        The optional dependency group that provides it.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(feature, extra)

    def __str__(self) -> str:
        feature, extra = self.args
        return f"{feature} needs an optional dependency: {install_command(extra)}"


class SelfLoopWarning(UserWarning):
    """A batch contained self-loops. They are ignored: a vertex is not its own neighbor."""


class ZeroVectorsWarning(UserWarning):
    """`Embedder.fit` was given a graph without structure to embed. Its vectors are zero until the graph has grown."""


class HeaderWarning(UserWarning):
    """The first line of a text file was read as a header although its names are not known, or it may be one."""


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise `InvalidValueError` if a value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidValueError.of(name, "one of " + ", ".join(map(repr, choices)), value)


def shorten(value: object, limit: int = 80) -> str:
    """Return the representation of a value for a message, truncated to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _count_others(missing: Sequence[object]) -> str:
    return f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
