"""The reference of the library, a page per module, from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

MODULES = [
    "ripplevec",
    "ripplevec.io",
    "ripplevec.lab.datasets",
    "ripplevec.lab.evaluation",
    "ripplevec.lab.baselines",
    "ripplevec.lab.objective",
    "ripplevec.cluster",
]
FIRST = {  # at the top of their page, and where to read more
    "Embedder": "What its parameters mean: [the method](../method.md#parameters-of-embedder).",
    "Session": "What it keeps, and in which order: [what survives](../durability.md).",
    "Client": "What it speaks to: [the service](../service.md).",
}
LINE = 80
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Words(str):
    """An annotation as it is written, without the quotes that a text has."""

    __slots__ = ()
    __repr__ = str.__str__


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages."""
    for name in MODULES:
        files.append(File.generated(config, f"reference/{name}.md", content=page(import_module(name))))


def page(module: ModuleType) -> str:
    """Everything that a module offers."""
    names = [name for name in module.__all__ if not name.startswith("__")]
    names.sort(key=lambda name: [*FIRST, name].index(name))
    parts = (part for name in names for part in _described(name, getattr(module, name)))
    return "\n\n".join([f"# {module.__name__}", _text(module), *parts]) + "\n"


def members(owner: type) -> dict[str, Any]:
    """The public methods and properties of a class that are Ripplevec's own, inherited ones too."""
    found = {name: member for base in reversed(owner.__mro__) for name, member in vars(base).items()}
    return {name: member for name, member in found.items() if not name.startswith("_") and _is_ours(_code(member))}


def _code(member: Any) -> Any:
    """The function behind a method or a property."""
    return getattr(member, "fget", None) or getattr(member, "__func__", member)


def _is_ours(code: Any) -> bool:
    return inspect.isfunction(code) and code.__module__.startswith("ripplevec")


def _described(name: str, found: Any) -> Iterator[str]:
    yield f"## {name} {{ #{name} }}"
    if not callable(found):
        yield f"```python\n{name}: {type(found).__name__}\n```"
        return
    if not (inspect.isclass(found) and issubclass(found, Enum | Exception)):
        yield _signature(name, found)
    yield _text(found)
    yield FIRST.get(name, "")
    if inspect.isclass(found):
        yield from _fields(found)
        for inner, member in members(found).items():
            yield f"### {name}.{inner} {{ #{name}.{inner} }}"
            yield _signature(inner, member)
            yield _text(_code(member))


def _fields(owner: type) -> Iterator[str]:
    """What an object of a class holds: the values of an enumeration, or attributes that are not methods."""
    if issubclass(owner, Enum):
        yield "".join(f"- `{value.name}` ({value.value})\n" for value in owner)
    elif isinstance(slots := vars(owner).get("__slots__"), dict):  # its attributes, and what they are
        yield "".join(f"- `{name}`: {meaning}\n" for name, meaning in slots.items() if not name.startswith("_"))
    elif dataclasses.is_dataclass(owner):
        yield "".join(f"- `{field.name}`: `{field.type}`\n" for field in dataclasses.fields(owner))


def _signature(name: str, found: Any) -> str:
    if isinstance(found, property):
        return f"```python\n{name}: {inspect.signature(_code(found)).return_annotation}\n```"
    kind = {classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}.get(type(found), "")
    signature = inspect.signature(found if inspect.isclass(found) else _code(found))
    given = [
        parameter.replace(annotation=_bare(parameter.annotation), default=_plain(parameter.default))
        for position, parameter in enumerate(signature.parameters.values())
        if position or parameter.name not in ("self", "cls")
    ]
    result = "" if inspect.isclass(found) else _bare(signature.return_annotation)
    text = str(signature.replace(parameters=given, return_annotation=result or inspect.Signature.empty))
    if len(name + text) > LINE:
        text = _folded(signature.replace(parameters=given), result)
    asynchronous = "async " if inspect.iscoroutinefunction(_code(found)) else ""
    return f"```python\n{kind}{asynchronous}{name}{text}\n```"


def _folded(signature: inspect.Signature, result: Any) -> str:
    lines, kinds = [], set()
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not kinds & {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}:
            lines.append("    *,\n")
        kinds.add(parameter.kind)
        lines.append(f"    {parameter},\n")
    return f"(\n{''.join(lines)})" + (f" -> {result}" if result else "")


def _bare(annotation: Any) -> Any:
    return Words(annotation) if isinstance(annotation, str) else annotation


def _plain(default: Any) -> Any:
    return Words(f"{type(default).__name__}.{default.name}") if isinstance(default, Enum) else default


def _text(found: Any) -> str:
    """A docstring, its examples as code."""
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", inspect.getdoc(found) or "")
