"""The command `ripplevec embed`: its options and output; `embed_run` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import options
from ripplevec.cli.console import print_json, print_message, show_progress


@options.add_model_options(options.EMBEDDER_OPTIONS)
def embed(
    *,
    edges: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet, plain or compressed; '-': standard input.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File for the vectors: .parquet, .csv, .npz, .txt or .bin.")
    ],
    src: options.Src = None,
    dst: options.Dst = None,
    weight: options.Weight = None,
    time: options.Time = None,
    header: options.Header = None,
    format: options.Format = None,
    ids: options.Ids = "auto",
    on_error: options.OnError = "stop",
    start: options.Start = 0.3,
    start_edges: options.StartEdges = None,
    batch_size: options.BatchSize = 1000,
    changes: options.Changes = None,
    model: dict[str, Any],
    json: options.Json = False,
) -> None:
    """Embed a graph from an edge list: embed the initial graph, then apply the other edges in batches."""
    parameters = options.collect_parameters(model)
    columns = options.drop_unset(src=src, dst=dst, weight=weight, time=time, header=header)
    read = columns | options.drop_unset(format=format, ids=ids, on_error=on_error)

    from ripplevec.cli.embed_run import EmbedJob

    with show_progress() as bars:
        job = EmbedJob(edges, output, read, parameters, start, start_edges, batch_size, changes)
        summary = job.run(bars)
    if json:
        print_json(summary)
    else:
        _print_summary(summary)


def _print_summary(summary: dict[str, Any]) -> None:
    """Print the summary as text."""
    print_message("{vertices:,} vertices, {edges:,} edges, {dim} dimensions → {output}".format(**summary))
    print_message("start: {start_edges:,} edges in {start_seconds:.2f} s".format(**summary))
    print_message("stream: {streamed_edges:,} edges in {stream_seconds:.2f} s, {changes:,} changes".format(**summary))
    if summary["skipped"]:
        print_message("skipped {skipped:,} rows that could not be read, the first at {skipped_rows}".format(**summary))
