"""Options that several commands share.

Options of the model take their help text and default from the docstring of `Embedder`. An option that is not given
leaves the default to the library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.errors import check_choice
from ripplevec.parameter_docs import describe_parameters

READING_PANEL, STREAM_PANEL, MODEL_PANEL = "Reading", "Stream", "Embedding"


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, **more)


def _parameter(name: str) -> Any:
    """Create the option of an `Embedder` parameter."""
    parameter = describe_parameters()[name]
    default = "no" if parameter.default is False else parameter.default
    help = parameter.summary if default is None else f"{parameter.summary} Default: {default}."
    metavar = {"metavar": "|".join(parameter.choices)} if parameter.choices else {}
    return _option(MODEL_PANEL, help, **metavar)


Src = Annotated[
    str | None, _option(READING_PANEL, "Column of the source: a name, or a position from 1.", metavar="COLUMN")
]
Dst = Annotated[str | None, _option(READING_PANEL, "Column of the target.", metavar="COLUMN")]
Weight = Annotated[str | None, _option(READING_PANEL, "Column of the weight; 'none': no weights.", metavar="COLUMN")]
Time = Annotated[
    str | None, _option(READING_PANEL, "Column of the time; if given, edges are sorted by it.", metavar="COLUMN")
]
Header = Annotated[
    bool | None,
    _option(READING_PANEL, "Whether the first line names the columns. By default decided by the first lines."),
]
Format = Annotated[
    str | None, _option(READING_PANEL, "File format, if content and suffix do not tell.", metavar="csv|jsonl|parquet")
]
Ids = Annotated[
    str, _option(READING_PANEL, "Type of ids; auto: int if all ids look like integers.", metavar="auto|int|str")
]
OnError = Annotated[str, _option(READING_PANEL, "What to do with a row that cannot be read.", metavar="stop|skip")]

Start = Annotated[float, _option(STREAM_PANEL, "Share of the edges that makes up the initial graph.", min=0, max=1)]
StartEdges = Annotated[
    str | None, _option(STREAM_PANEL, "File with the edges of the initial graph, instead of --start.", metavar="FILE")
]
BatchSize = Annotated[int, _option(STREAM_PANEL, "Number of edges in a batch.", min=1)]
Changes = Annotated[Path | None, _option(STREAM_PANEL, "File to log changes to: .parquet or .jsonl.", metavar="FILE")]

Attributes = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Table of vertex attributes with an id column: .csv, .jsonl or .parquet."),
]

EMBEDDER_OPTIONS: dict[str, Any] = {  # the options of a model, in the order of `--help`
    "dim": Annotated[int | None, _parameter("dim")],
    "rule": Annotated[str | None, _parameter("rule")],
    "depth": Annotated[int | None, _parameter("depth")],
    "seed": Annotated[int | None, _parameter("seed")],
    "anchor_growth": Annotated[float | None, _parameter("anchor_growth")],
    "threads": Annotated[int | None, _parameter("threads")],
    "directed": Annotated[bool | None, _parameter("directed")],
    "duplicates": Annotated[str | None, _parameter("duplicates")],
    "max_reads": Annotated[int | None, _parameter("max_reads")],
    "half_life": Annotated[float | None, _parameter("half_life")],
    "expire_after": Annotated[float | None, _parameter("expire_after")],
    "attribute_dim": Annotated[int | None, _parameter("attribute_dim")],
    "set": Annotated[
        list[str] | None, _option(MODEL_PANEL, "Any other parameter of Embedder.", "--set", metavar="NAME=VALUE")
    ],
}
REPLAY_OPTIONS = {name: EMBEDDER_OPTIONS[name] for name in ("dim", "rule", "seed", "attribute_dim", "set")}

Json = Annotated[bool, typer.Option("--json", help="Print a summary as JSON on standard output.")]


def add_model_options(model_options: dict[str, Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces the parameter `model` of a command by one option per entry of `model_options`.

    The command receives the values of these options as a dictionary `model`; see `collect_parameters`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run_command(**values: Any) -> None:
            command(model={name: values.pop(name) for name in model_options}, **values)

        parameters: list[Parameter] = []
        for parameter in signature(command, eval_str=True).parameters.values():
            if parameter.name == "model":
                parameters += [
                    Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=option)
                    for name, option in model_options.items()
                ]
            else:
                parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
        run_command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run_command

    return decorate


def collect_parameters(model: dict[str, Any]) -> dict[str, Any]:
    """Return the model parameters that the user gave, as options or with `--set`, which takes precedence."""
    named = {name: value for name, value in model.items() if name != "set"}
    settings = parse_settings(model["set"])
    for name in settings:
        check_choice("--set", name, list(describe_parameters()))
    return drop_unset(**named) | settings


def drop_unset(**options: Any) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def parse_settings(pairs: list[str] | None) -> dict[str, Any]:
    """Parse options written as NAME=VALUE; a value is JSON if possible, otherwise text."""
    parsed = {}
    for pair in pairs or []:
        name, sign, text = pair.partition("=")
        if not sign or not name.isidentifier():
            raise typer.BadParameter(f"expected NAME=VALUE, got {pair!r}", param_hint="--set")
        try:
            parsed[name] = json.loads(text)
        except ValueError:
            parsed[name] = text
    return parsed
