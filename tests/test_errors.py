"""Errors state what was expected, what was given and what to do, and can be pickled."""

from __future__ import annotations

import pickle

import pytest

from ripplevec.errors import (
    FormatError,
    InvalidValueError,
    MissingExtraError,
    RipplevecError,
    UnknownEdgeError,
    UnknownVertexError,
    check_choice,
    shorten,
)
from ripplevec.install_hint import install_command


def test_invalid_value_error_names_parameter_expectation_and_value() -> None:
    error = InvalidValueError.of("dim", "a whole number ≥ 1", -3)
    assert str(error) == "dim: expected a whole number ≥ 1, got -3"


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InvalidValueError.of("a", "b", "c"), ValueError),
        (UnknownVertexError(["a"]), KeyError),
        (UnknownEdgeError([("a", 1)]), KeyError),
        (FormatError("x"), ValueError),
        (MissingExtraError("The demo", "demo"), ImportError),
    ],
)
def test_error_has_its_base_and_builtin_class_and_can_be_pickled(
    error: RipplevecError, builtin: type[Exception]
) -> None:
    assert isinstance(error, RipplevecError)
    assert isinstance(error, builtin)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_unknown_vertex_error_names_the_first_and_counts_the_others() -> None:
    assert "unknown vertex 'bob';" in str(UnknownVertexError(["bob"]))
    error = UnknownVertexError([7, *range(1500)])
    assert "unknown vertex 7 and 1,500 more" in str(error)
    assert error.missing[:2] == [7, 0]


def test_unknown_edge_error_names_both_vertices() -> None:
    error = UnknownEdgeError([("a", 1), (2, 3)])
    assert "no edge between 'a' and 1 and 1 more" in str(error)
    assert error.missing == [("a", 1), (2, 3)]


def test_missing_extra_error_contains_the_install_command() -> None:
    assert str(MissingExtraError("The picture", "demo")).endswith(install_command("demo"))


@pytest.mark.parametrize(("value", "message"), [("sum", "'sum'"), (None, "None"), (["add"], r"\['add'\]")])
def test_check_choice_lists_the_choices(value: object, message: str) -> None:
    check_choice("duplicates", "add", {"add", "ignore"})
    with pytest.raises(InvalidValueError, match=f"duplicates: expected one of 'add', 'ignore', got {message}"):
        check_choice("duplicates", value, {"add": 0, "ignore": 1})


def test_shorten_truncates_long_values() -> None:
    assert shorten("ab") == "'ab'"
    assert len(shorten("x" * 1000)) == 80
    assert shorten("x" * 1000).endswith("…")
