"""Settings of a command from several places: options, then environment variables, then a TOML file, then defaults.

Typer reads environment variables by itself (`auto_envvar_prefix`). A file replaces the defaults of the context, which
have the lowest precedence.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer

from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.parameter_docs import describe_parameters

PREFIX = "RIPPLEVEC"
"""Environment variables are called RIPPLEVEC_NAME, with the name of the option in capitals."""

OTHER_VARIABLES = ("RIPPLEVEC_READ_TOKENS", "RIPPLEVEC_WRITE_TOKENS", "RIPPLEVEC_DATA", "RIPPLEVEC_COMPILE_AHEAD")
"""Variables that have no option: secrets, which other users could see among the processes, and those of the library."""

_NOT_IN_FILES = ("config", "print_config", "help")
_SECRET = re.compile(r"(?P<name>[^&=]*(?:password|secret|token|key)[^&=]*)=[^&]*", re.IGNORECASE)


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Use the settings in a TOML file as defaults; check the file and the environment variables."""
    options = _options_by_name(context)
    _check_environment(context, options, os.environ)
    if path is not None:
        entries = {key.replace("-", "_"): value for key, value in _read_toml(path).items()}
        for name, value in entries.items():
            if name not in options:
                raise InvalidValueError(f"{path}: {name} is not a setting{_suggest(name, options)}")
            text = _to_text(path, name, value)
            entries[name] = [text] if options[name].multiple and isinstance(text, str) else text
            _check_value(context, options[name], entries[name], f"{path}: {name}")
        context.default_map = entries
    return path


Config = Annotated[
    Path | None,
    typer.Option(help="TOML file with settings.", metavar="FILE", is_eager=True, callback=read_config),
]
PrintConfig = Annotated[bool, typer.Option("--print-config", help="Print all settings as a TOML file, and exit.")]


def render_config(context: typer.Context) -> str:
    """Return the settings of a command as a TOML file; a comment after each tells where it comes from."""
    lines = [_render_setting(context, name) for name in _options_by_name(context)]
    width = max(len(setting) for setting, _ in lines)
    return "\n".join(f"{setting:{width}}  # {origin}" for setting, origin in lines)


def mask_secrets(text: str) -> str:
    """Replace the passwords in an address by asterisks."""
    if "://" not in text:
        return text
    url = urlsplit(text)
    user, separator, host = url.netloc.rpartition("@")
    if ":" in user:
        user = f"{user.partition(':')[0]}:***"
    return urlunsplit(url._replace(netloc=user + separator + host, query=_SECRET.sub(r"\g<name>=***", url.query)))


def _options_by_name(context: typer.Context) -> dict[str, Any]:
    return {option.name: option for option in context.command.params if option.name not in _NOT_IN_FILES}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: expected a TOML file, got {error}") from None


def _to_text(path: Path, name: str, value: Any) -> str | list[str]:
    """Return a value as one would write it on the command line, so that it is checked in the same way."""
    if isinstance(value, list):
        return [str(_to_text(path, name, entry)) for entry in value]
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise InvalidValueError.of(f"{path}: {name}", "text, a number, true, false or a list", value)


def _suggest(name: str, known: Iterable[str]) -> str:
    similar = difflib.get_close_matches(name, list(known), n=1)
    return f". Did you mean {similar[0]}?" if similar else ". `ripplevec serve --print-config` lists all settings."


def _check_environment(context: typer.Context, options: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Raise if a variable has a value that cannot be used; warn if its name looks like a typing error."""
    by_variable = {f"{PREFIX}_{name.upper()}": option for name, option in options.items()}
    known = [*by_variable, *OTHER_VARIABLES, f"{PREFIX}_CONFIG"]
    for variable in environment:
        if variable in by_variable:
            option = by_variable[variable]
            _check_value(context, option, option.value_from_envvar(context), variable)
        elif variable.startswith(f"{PREFIX}_") and variable not in known:
            similar = difflib.get_close_matches(variable, known, n=1, cutoff=0.9)
            if similar:
                warnings.warn(f"{variable} is not a setting. Did you mean {similar[0]}?", stacklevel=2)


def _check_value(context: typer.Context, option: Any, value: Any, origin: str) -> None:
    """Convert a value as the command line would; an error names the origin of the value."""
    try:
        option.process_value(context, value)
    except typer.BadParameter as error:
        raise InvalidValueError(f"{origin}: {error.message}, got {shorten(value)}") from None


def _render_setting(context: typer.Context, name: str) -> tuple[str, str]:
    """Return a setting as a line of TOML, and its origin; a setting without a value becomes a comment."""
    value, source = context.params[name], context.get_parameter_source(name)
    origin = {
        "COMMANDLINE": "command line",
        "ENVIRONMENT": f"{PREFIX}_{name.upper()}",
        "DEFAULT_MAP": str(context.params["config"]),
    }.get(source.name if source else "", "default")
    if value is not None and value != []:
        return f"{name} = {_render_value(value)}", origin
    parameter = describe_parameters().get(name)
    default = "" if parameter is None or parameter.default is None else _render_value(parameter.default)
    return f"# {name} = {default}".rstrip(), origin


def _render_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_render_value, value))}]"
    value = mask_secrets(str(value)) if isinstance(value, str | Path) else value
    return json.dumps(value, ensure_ascii=False)
