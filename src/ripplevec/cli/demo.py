"""The command `ripplevec demo`: its options and output; `demo_run` streams, scores and draws."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplevec.cli.console import print_json, print_message, show_progress
from ripplevec.cli.options import Json


def demo(
    vertices: Annotated[int, typer.Option(min=500, help="Total number of vertices.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed of the graph and of the embedding.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for the two maps.")] = Path(),
    json: Json = False,
) -> None:
    """Stream a growing graph of communities, compare with recomputation, and draw a map of the vectors."""
    from ripplevec.cli import demo_run

    out.mkdir(parents=True, exist_ok=True)
    png, html = out / "ripplevec-demo.png", out / "ripplevec-demo.html"
    with show_progress() as bars:
        result = demo_run.run_demo(vertices, seed, bars)
        task = bars.add_task("draw", total=3, note="")
        maps = demo_run.project_vectors(result.snapshots, result.labels)
        bars.advance(task)
        demo_run.write_png(png, maps, result.labels, result.format_caption())
        bars.advance(task)
        demo_run.write_html(html, maps, result.labels, result.format_caption())
    if json:
        print_json({**result.summarize(), "pictures": [str(png), str(html)]})
    else:
        demo_run.print_summary(result)
        print_message(f"map: {png}; interactive map: {html}")
