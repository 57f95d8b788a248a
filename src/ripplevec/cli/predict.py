"""The commands `ripplevec score` and `ripplevec recommend`: candidate edges of a saved model or a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplevec.cli import options
from ripplevec.cli.console import print_json
from ripplevec.cli.model_directory import ModelDirectory, open_model, resolve_id


def score(
    directory: ModelDirectory,
    pairs: Annotated[str, typer.Argument(help="File with pairs of vertices, as edges; '-': standard input.")],
    src: options.Src = None,
    dst: options.Dst = None,
    weight: options.Weight = None,
    time: options.Time = None,
    header: options.Header = None,
    format: options.Format = None,
    ids: options.Ids = "auto",
    json: options.Json = False,
) -> None:
    """Score candidate edges by the cosine of their vectors; print one line `src,dst,score` per pair."""
    from ripplevec.batch import ids_to_list
    from ripplevec.io.readers.edge_files import open_edges
    from ripplevec.io.readers.option_syntax import as_flags

    columns = options.drop_unset(src=src, dst=dst, weight=weight, time=time, header=header, format=format)
    with open_model(directory) as model:
        for batch in open_edges(pairs, ids=ids, syntax=as_flags, **columns):
            sources, targets = ids_to_list(batch.src), ids_to_list(batch.dst)
            for source, target, value in zip(sources, targets, model.score(batch).tolist(), strict=True):
                if json:
                    print_json({"src": source, "dst": target, "score": value})
                else:
                    typer.echo(f"{source},{target},{value:.6g}")


def recommend(
    directory: ModelDirectory,
    vertices: Annotated[list[str], typer.Argument(metavar="VERTEX…", help="Vertices to recommend new edges for.")],
    k: Annotated[int, typer.Option("-k", help="Number of recommended vertices.", min=1)] = 10,
    among: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Text file with the candidates, one per line.")
    ] = None,
    neighbors: Annotated[bool, typer.Option("--neighbors", help="Include vertices that already have an edge.")] = False,
    json: options.Json = False,
) -> None:
    """Recommend new edges of vertices; print one line `vertex,candidate,score` per recommendation."""
    with open_model(directory) as model:
        names = [resolve_id(model, text) for text in vertices]
        candidates = None
        if among is not None:
            candidates = [resolve_id(model, line) for line in among.read_text().splitlines() if line]
        results = model.recommend(names, k, among=candidates, exclude=None if neighbors else "neighbors")
    for name, found in zip(names, results, strict=True):
        if json:
            print_json({"vertex": name, "recommended": found})
            continue
        for candidate, value in found:
            typer.echo(f"{name},{candidate},{value:.6g}")
