"""MkDocs hook that generates the Python reference, one page per module, from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, ForwardRef

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from numpydoc_markdown import has_section, render

MODULES = [
    "ripplevec",
    "ripplevec.io",
    "ripplevec.lab.datasets",
    "ripplevec.lab.evaluation",
    "ripplevec.lab.baselines",
    "ripplevec.lab.objective",
    "ripplevec.lab.temporal",
    "ripplevec.cluster",
]
FIRST = {  # names at the top of their page, with a link to further reading
    "Embedder": "See also [the method](../method.md) and [choosing parameters](../howto/choosing-parameters.md).",
    "Session": "See also [durability](../durability.md).",
    "Client": "See also [the service](../service.md).",
}
MAX_SIGNATURE_LENGTH = 80


class Verbatim(str):
    """A string whose `repr` is the string itself, so that signatures show annotations without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of all modules."""
    for name in MODULES:
        files.append(File.generated(config, f"reference/{name}.md", content=page(import_module(name))))


def page(module: ModuleType) -> str:
    """Return the page of a module, with all its public names."""
    names = [name for name in module.__all__ if not name.startswith("__")]
    names.sort(key=lambda name: [*FIRST, name].index(name))
    parts = (part for name in names for part in _describe(name, getattr(module, name)))
    return "\n\n".join([f"# {module.__name__}", _render_docstring(module), *parts]) + "\n"


def members(owner: type) -> dict[str, Any]:
    """Return the public methods and properties of a class that Ripplevec defines, including inherited ones."""
    attributes = {name: member for base in reversed(owner.__mro__) for name, member in vars(base).items()}
    return {
        name: member for name, member in attributes.items() if not name.startswith("_") and _is_ours(_function(member))
    }


def _function(member: Any) -> Any:
    """Return the function of a method or a property."""
    return getattr(member, "fget", None) or getattr(member, "__func__", member)


def _is_ours(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__.startswith("ripplevec")


def _describe(name: str, value: Any) -> Iterator[str]:
    yield f"## {name} {{ #{name} }}"
    if not callable(value):
        yield f"```python\n{name}: {type(value).__name__}\n```"
        return
    if not (inspect.isclass(value) and issubclass(value, Enum | Exception)):
        yield _signature(name, value)
    yield _render_docstring(value)
    yield FIRST.get(name, "")
    if inspect.isclass(value):
        yield from _describe_fields(value)
        for member_name, member in members(value).items():
            yield f"### {name}.{member_name} {{ #{name}.{member_name} }}"
            yield _signature(member_name, member)
            yield _render_docstring(_function(member))


def _describe_fields(owner: type) -> Iterator[str]:
    """List the values of an enumeration or the attributes of a class, unless its docstring does."""
    if has_section(inspect.getdoc(owner) or "", "Parameters", "Attributes"):
        return
    if issubclass(owner, Enum):
        yield "".join(f"- `{value.name}` ({value.value})\n" for value in owner)
    elif isinstance(slots := vars(owner).get("__slots__"), dict):  # attributes with descriptions
        yield "".join(f"- `{name}`: {meaning}\n" for name, meaning in slots.items() if not name.startswith("_"))
    elif dataclasses.is_dataclass(owner):
        yield "".join(f"- `{field.name}`: `{field.type}`\n" for field in dataclasses.fields(owner))


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"```python\n{name}: {inspect.signature(_function(value)).return_annotation}\n```"
    decorator = {classmethod: "@classmethod\n", staticmethod: "@staticmethod\n"}.get(type(value), "")
    signature = inspect.signature(value if inspect.isclass(value) else _function(value))
    parameters = [
        parameter.replace(annotation=_unquote(parameter.annotation), default=_show_default(parameter.default))
        for position, parameter in enumerate(signature.parameters.values())
        if position or parameter.name not in ("self", "cls")
    ]
    result = "" if inspect.isclass(value) else _unquote(signature.return_annotation)
    text = str(signature.replace(parameters=parameters, return_annotation=result or inspect.Signature.empty))
    if len(name + text) > MAX_SIGNATURE_LENGTH:
        text = _break_lines(signature.replace(parameters=parameters), result)
    keyword = "async " if inspect.iscoroutinefunction(_function(value)) else ""
    return f"```python\n{decorator}{keyword}{name}{text}\n```"


def _break_lines(signature: inspect.Signature, result: Any) -> str:
    """Return a signature with one parameter per line."""
    lines, kinds = [], set()
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not kinds & {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}:
            lines.append("    *,\n")
        kinds.add(parameter.kind)
        lines.append(f"    {parameter},\n")
    return f"(\n{''.join(lines)})" + (f" -> {result}" if result else "")


def _unquote(annotation: Any) -> Any:
    if isinstance(annotation, ForwardRef):  # of a field of a named tuple
        annotation = annotation.__forward_arg__
    return Verbatim(annotation) if isinstance(annotation, str) else annotation


def _show_default(default: Any) -> Any:
    if inspect.isclass(default) and default is not inspect.Parameter.empty:
        return Verbatim(default.__name__)
    return Verbatim(f"{type(default).__name__}.{default.name}") if isinstance(default, Enum) else default


def _render_docstring(value: Any) -> str:
    return render(inspect.getdoc(value) or "")
