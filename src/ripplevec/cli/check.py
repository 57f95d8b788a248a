"""The command `ripplevec check`: what an edge file contains, and what `embed` would do with it; see `check_run`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ripplevec.cli import options
from ripplevec.cli.console import format_count, print_json


def check(
    edges: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet, plain or compressed; '-': standard input.")],
    src: options.Src = None,
    dst: options.Dst = None,
    weight: options.Weight = None,
    time: options.Time = None,
    header: options.Header = None,
    format: options.Format = None,
    ids: options.Ids = "auto",
    json: options.Json = False,
) -> None:
    """Describe an edge file: columns, ids, duplicates, components, times; and advise how to embed it."""
    columns = options.drop_unset(src=src, dst=dst, weight=weight, time=time, header=header, format=format)

    from ripplevec.cli import check_run

    report = check_run.describe_file(edges, columns | {"ids": ids})
    if json:
        return print_json(report)
    _print_report(report)


def _print_report(report: dict[str, Any]) -> None:
    skipped = report["skipped"]
    rows = f"{format_count(report['rows'], 'row')}, {f'{skipped:,} cannot be read' if skipped else 'all can be read'}"
    vertices = format_count(report["vertices"], "vertex", "vertices")
    edges, largest = format_count(report["edges"], "edge"), format_count(report["largest"], "vertex", "vertices")
    repeated, loops = format_count(report["repeated"], "repeated edge"), format_count(report["self_loops"], "self-loop")
    lines = {
        "rows": rows,
        "columns": ", ".join(f"{column} is {name}" for column, name in report["column_names"].items()),
        "ignored": ", ".join(report["ignored_columns"]),
        "ids": report["ids"],
        "graph": f"{vertices}, {edges}; {repeated}, {loops}",
        "components": f"{report['components']:,}, the largest has {largest}",
        "bipartite": "yes" if report["bipartite"] else "no",
    }
    for name, digits in (("weights", 6), ("times", 15)):  # times may be seconds since 1970
        if report[name] is not None:
            first, last = (f"{value:.{digits}g}" for value in report[name])
            lines[name] = f"from {first} to {last}"
    for name, text in lines.items():
        if text:
            typer.echo(f"{name:<11} {text}")
    for advice in report["advice"]:
        typer.echo(f"→ {advice}")
