"""The command `ripplevec nearest`: the vertices most similar to a vertex of a saved model or a session."""

from __future__ import annotations

from typing import Annotated

import typer

from ripplevec.cli.console import print_json
from ripplevec.cli.model_directory import ModelDirectory, open_model, resolve_id
from ripplevec.cli.options import Json


def nearest(
    directory: ModelDirectory,
    vertex: Annotated[str, typer.Argument(metavar="ID", help="Vertex; digits mean the text id if there is one.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Number of vertices.")] = 10,
    by_attributes: Annotated[bool, typer.Option("--by-attributes", help="Compare attributes only.")] = False,
    json: Json = False,
) -> None:
    """Print the vertices most similar to a vertex, with their cosines, most similar first."""
    with open_model(directory) as model:
        known = resolve_id(model, vertex)
        find = model.nearest_by_attributes if by_attributes else model.nearest
        found = find(known if known in model else vertex, k)
    if json:
        return print_json({"id": known, "nearest": found})
    for name, cosine in found:
        typer.echo(f"{cosine:7.4f}  {name}")
