"""Descriptions of the `Embedder` parameters, read from its source without importing it.

The command line shows them in `--help`, and the documentation in a table. Importing `Embedder` would load NumPy, Numba
and PyArrow, which takes seconds; parsing one file takes milliseconds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

MODULE, CLASS = "ripplevec.embedder", "Embedder"
_ENTRY = re.compile(r"(?P<name>\w+) : (?P<type>.+), default (?P<default>.+)")
_CHOICES = re.compile(r'\{("[^{}]+")\}')


class ParameterDoc(NamedTuple):
    """Documentation of one parameter."""

    name: str
    type: str
    """The accepted values, as in the docstring: `int`, `{"ripple", "paper"}`, `"auto" or float`."""
    default: Any
    """The default value in the signature."""
    summary: str
    """The first sentence of the description."""
    description: str
    """The whole description, as one paragraph."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted strings, if the parameter accepts nothing else; otherwise empty."""
        match = _CHOICES.fullmatch(self.type)
        return tuple(ast.literal_eval(f"({match[1]},)")) if match else ()


@cache
def describe_parameters() -> dict[str, ParameterDoc]:
    """Return the documentation of every parameter of `Embedder` by name, in the order of its signature."""
    definition = _class_definition()
    entries = dict(_parse_docstring(ast.get_docstring(definition) or ""))
    return {
        name: ParameterDoc(name, entries[name][0], default, _first_sentence(entries[name][1]), entries[name][1])
        for name, default in _declared_defaults(definition)
    }


def _class_definition() -> ast.ClassDef:
    spec = find_spec(MODULE)
    source = spec.loader.get_source(MODULE) if spec and spec.loader else None  # type: ignore[attr-defined]
    if source is None:
        raise RuntimeError(
            f"no source of {MODULE} to read parameter descriptions from: install the package with source"
        )
    return next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == CLASS)


def _declared_defaults(definition: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    """Yield the parameters, the annotated fields of the dataclass, with their defaults."""
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, ast.literal_eval(node.value)


def _parse_docstring(docstring: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, type and description of the entries in the numpydoc section "Parameters"."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    for entry in re.split(r"\n(?=\w)", section[1]) if section else []:
        heading, _, description = entry.partition("\n")
        if match := _ENTRY.fullmatch(heading):
            yield match["name"], (match["type"], " ".join(description.split()))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.) ", text, maxsplit=1)[0]
