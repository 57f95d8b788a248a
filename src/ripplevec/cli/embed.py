"""The command `ripplevec embed`: its options and output; `embed_run` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import options
from ripplevec.cli.console import STANDARD_OUTPUT, format_count, print_json, print_message, show_progress


@options.add_model_options(options.EMBEDDER_OPTIONS)
def embed(
    *,
    edges: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet, plain or compressed; '-': standard input.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="File for the vectors: .parquet, .csv, .npz, .txt or .bin; '-': CSV on standard output.",
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the model, for `ripplevec nearest` and `load`.")
    ] = None,
    attributes: options.Attributes = None,
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
    if output is None and save is None:
        raise typer.BadParameter("expected --output for the vectors, or --save for the model", param_hint="--output")
    if json and str(output) == STANDARD_OUTPUT:
        raise typer.BadParameter("expected a file, because --json prints on standard output", param_hint="--output")
    parameters = options.collect_parameters(model)
    columns = options.drop_unset(src=src, dst=dst, weight=weight, time=time, header=header)
    read = columns | options.drop_unset(format=format, ids=ids, on_error=on_error)

    from ripplevec.cli.embed_run import EmbedJob

    with show_progress() as bars:
        job = EmbedJob(edges, output, read, parameters, start, start_edges, batch_size, changes, save, attributes)
        summary = job.run(bars)
    if not summary["started"]:
        _warn_not_started(summary)
    elif summary["all_zero"]:
        _warn_all_zero(summary)
    if json:
        print_json(summary)
    else:
        _print_summary(summary)


def _warn_not_started(summary: dict[str, Any]) -> None:
    """Warn that all vectors are zero, and say what to do."""
    needed = f"{summary['connected']:,} of the {summary['start_size']:,} vertices with edges that a start needs"
    advice = "Embed all edges at once with --start 1, or use fewer dimensions (--dim)"
    print_message(f"warning: all vectors are zero: the stream had {needed}. {advice}.")


def _warn_all_zero(summary: dict[str, Any]) -> None:
    """Warn that the graph is too small for vectors that tell its vertices apart, and say what to do."""
    vertices, edges = format_count(summary["vertices"], "vertex", "vertices"), format_count(summary["edges"], "edge")
    advice = f"Embed a larger graph; {summary['start_size']:,} vertices with edges are usually enough"
    print_message(f"warning: all vectors are zero: {vertices} and {edges} have no structure to embed. {advice}.")


def _print_summary(summary: dict[str, Any]) -> None:
    """Print the summary as text."""
    vertices = format_count(summary["vertices"], "vertex", "vertices")
    edges, dimensions = format_count(summary["edges"], "edge"), format_count(summary["dim"], "dimension")
    vectors = "standard output" if summary["output"] == STANDARD_OUTPUT else summary["output"]
    outputs = " and ".join(path for path in (vectors, summary["model"]) if path is not None)
    print_message(f"{vertices}, {edges}, {dimensions} → {outputs}")
    print_message(f"start: {format_count(summary['start_rows'], 'row')} in {summary['start_seconds']:.2f} s")
    streamed, changes = format_count(summary["streamed_rows"], "row"), format_count(summary["changes"], "change")
    print_message(f"stream: {streamed} in {summary['stream_seconds']:.2f} s, {changes}")
    if scores := summary.get("view_scores"):
        compared = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
        criterion = "mean reciprocal rank of hidden edges"
        print_message(f"views: {summary['views']}, because no others are clearly better ({criterion}: {compared})")
    if summary["skipped"]:
        first = ", ".join(f"{row:,}" for row in summary["skipped_rows"])
        rows = format_count(summary["skipped"], "row")
        print_message(f"skipped {rows} that could not be read, the first: {first}")
