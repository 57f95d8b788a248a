"""`ripplevec embed`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import options as o
from ripplevec.cli.console import print_json, progress, say


def embed(
    edges: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet, plain or compressed; '-': standard input.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where vectors go: .parquet, .csv, .npz, .txt or .bin.")
    ],
    src: o.Src = None,
    dst: o.Dst = None,
    weight: o.Weight = None,
    time: o.Time = None,
    format: o.Format = None,
    ids: o.Ids = "auto",
    on_error: o.OnError = "stop",
    start: o.Start = 0.3,
    start_edges: o.StartEdges = None,
    batch_size: o.BatchSize = 1000,
    changes: o.Changes = None,
    dim: o.Dim = None,
    rule: o.Rule = None,
    depth: o.Depth = None,
    seed: o.Seed = None,
    anchor_growth: o.AnchorGrowth = None,
    threads: o.Threads = None,
    directed: o.Directed = None,
    duplicates: o.Duplicates = None,
    max_reads: o.MaxReads = None,
    half_life: o.HalfLife = None,
    expire_after: o.ExpireAfter = None,
    setting: o.Settings = None,
    json: o.Json = False,
) -> None:
    """Embed a graph from a list of its edges: a start on the first ones, then one small step after another."""
    model = o.given(dim=dim, rule=rule, depth=depth, seed=seed, anchor_growth=anchor_growth, threads=threads)
    model |= o.given(directed=directed, duplicates=duplicates, max_reads=max_reads)
    model |= o.given(half_life=half_life, expire_after=expire_after) | o.settings(setting)
    read = o.given(src=src, dst=dst, weight=weight, time=time, format=format, ids=ids, on_error=on_error)

    from ripplevec.cli.embed_run import Job

    with progress() as bars:
        job = Job(edges, output, read, model, start, start_edges, batch_size, changes)
        summary = job.run(bars)
    if json:
        print_json(summary)
    else:
        _tell(summary)


def _tell(summary: dict[str, Any]) -> None:
    """What was done, for a person."""
    say("{vertices:,} vertices, {edges:,} edges, {dim} dimensions → {output}".format(**summary))
    say("start: {start_edges:,} edges in {start_seconds:.2f} s".format(**summary))
    say("stream: {streamed_edges:,} edges in {stream_seconds:.2f} s, {changes:,} changes".format(**summary))
    if summary["skipped"]:
        say("skipped {skipped:,} rows that could not be read, the first at {skipped_rows}".format(**summary))
