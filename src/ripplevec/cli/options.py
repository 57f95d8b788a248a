"""The options that commands share, each said once. An option that is not given leaves the default to the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

READ, STREAM, MODEL = "Reading", "Stream", "Embedding"


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=help, show_default=more.pop("show_default", False), **more)


Src = Annotated[str | None, _option(READ, "Column of one end: a name, or a position from 1.", metavar="COLUMN")]
Dst = Annotated[str | None, _option(READ, "Column of the other end.", metavar="COLUMN")]
Weight = Annotated[str | None, _option(READ, "Column of the weight; 'none' for no weights.", metavar="COLUMN")]
Time = Annotated[str | None, _option(READ, "Column of the time; if given, edges go in its order.", metavar="COLUMN")]
Format = Annotated[str | None, _option(READ, "If content and suffix do not say it.", metavar="csv|jsonl|parquet")]
Ids = Annotated[str, _option(READ, "What ids are; auto: integers where all look so.", metavar="auto|int|str")]
OnError = Annotated[str, _option(READ, "What to do with a row that cannot be read.", metavar="stop|skip")]

Start = Annotated[float, _option(STREAM, "Share of the edges for the start.", min=0, max=1, show_default=True)]
StartEdges = Annotated[str | None, _option(STREAM, "A file with the edges of the start instead.", metavar="FILE")]
BatchSize = Annotated[int, _option(STREAM, "Edges applied together.", min=1, show_default=True)]
Changes = Annotated[Path | None, _option(STREAM, "Log of changes, .parquet or .jsonl.", metavar="FILE")]

Dim = Annotated[int | None, _option(MODEL, "Length of a vector.")]
Rule = Annotated[str | None, _option(MODEL, "How vectors move.", metavar="ripple|paper")]
Depth = Annotated[int | None, _option(MODEL, "Rounds of influence.")]
Seed = Annotated[int | None, _option(MODEL, "Seed of every draw.")]
AnchorGrowth = Annotated[float | None, _option(MODEL, "Growth between global corrections; 0: none.")]
Threads = Annotated[int | None, _option(MODEL, "Threads; the result does not depend on it.")]
Directed = Annotated[bool | None, _option(MODEL, "Whether influence follows the direction of edges.")]
Duplicates = Annotated[str | None, _option(MODEL, "What a repeated edge does.", metavar="add|ignore|replace")]
HalfLife = Annotated[float | None, _option(MODEL, "Time after which an edge weighs half, in the unit of its times.")]
ExpireAfter = Annotated[float | None, _option(MODEL, "Time after which an edge that is not mentioned again goes.")]
MaxReads = Annotated[int | None, _option(MODEL, "Bound on the work per arrival.")]
Settings = Annotated[list[str] | None, _option(MODEL, "Any other option of Embedder.", "--set", metavar="NAME=VALUE")]

Json = Annotated[bool, typer.Option("--json", help="Print a summary for programs on standard output.")]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given a value."""
    return {name: value for name, value in options.items() if value is not None}


def settings(pairs: list[str] | None) -> dict[str, Any]:
    """Options written as NAME=VALUE; a value is JSON where it can be, else text."""
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
