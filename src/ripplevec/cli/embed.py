"""The command `ripplevec embed`: its options and output; `embed_run` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import options
from ripplevec.cli.console import print_json, print_message, show_progress


def embed(
    edges: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet, plain or compressed; '-': standard input.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File for the vectors: .parquet, .csv, .npz, .txt or .bin.")
    ],
    src: options.Src = None,
    dst: options.Dst = None,
    weight: options.Weight = None,
    time: options.Time = None,
    format: options.Format = None,
    ids: options.Ids = "auto",
    on_error: options.OnError = "stop",
    start: options.Start = 0.3,
    start_edges: options.StartEdges = None,
    batch_size: options.BatchSize = 1000,
    changes: options.Changes = None,
    dim: options.Dim = None,
    rule: options.Rule = None,
    depth: options.Depth = None,
    seed: options.Seed = None,
    anchor_growth: options.AnchorGrowth = None,
    threads: options.Threads = None,
    directed: options.Directed = None,
    duplicates: options.Duplicates = None,
    max_reads: options.MaxReads = None,
    half_life: options.HalfLife = None,
    expire_after: options.ExpireAfter = None,
    setting: options.Settings = None,
    json: options.Json = False,
) -> None:
    """Embed a graph from an edge list: embed the initial graph, then apply the other edges in batches."""
    model = options.drop_unset(dim=dim, rule=rule, depth=depth, seed=seed, anchor_growth=anchor_growth, threads=threads)
    model |= options.drop_unset(directed=directed, duplicates=duplicates, max_reads=max_reads)
    model |= options.drop_unset(half_life=half_life, expire_after=expire_after) | options.parse_settings(setting)
    read = options.drop_unset(src=src, dst=dst, weight=weight, time=time, format=format, ids=ids, on_error=on_error)

    from ripplevec.cli.embed_run import EmbedJob

    with show_progress() as bars:
        job = EmbedJob(edges, output, read, model, start, start_edges, batch_size, changes)
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
