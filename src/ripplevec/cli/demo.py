"""`ripplevec demo`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplevec.cli.console import print_json, progress, say
from ripplevec.cli.options import Json


def demo(
    vertices: Annotated[int, typer.Option(min=500, help="How many vertices arrive in all.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the graph and of the embedding.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the two pictures go.")] = Path(),
    json: Json = False,
) -> None:
    """Stream a growing community graph, compare with recomputing, and draw a map of what came out."""
    from ripplevec.cli.demo_pictures import places, write_html, write_png
    from ripplevec.cli.demo_run import run, table

    out.mkdir(parents=True, exist_ok=True)
    png, html = out / "ripplevec-demo.png", out / "ripplevec-demo.html"
    with progress() as bars:
        result = run(vertices, seed, bars)
        task = bars.add_task("draw", total=3, note="")
        moments = places(result.vectors, result.labels)
        bars.advance(task)
        write_png(png, moments, result.labels, result.caption())
        bars.advance(task)
        write_html(html, moments, result.labels, result.caption())
    if json:
        print_json({**result.summary(), "pictures": [str(png), str(html)]})
    else:
        table(result)
        say(f"map: {png}, and to explore: {html}")
