"""The command `ripplevec replay`: its options, progress and summary; `ripplevec.replay` does the work."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli import options
from ripplevec.cli.console import format_count, print_json, print_message, show_progress

if TYPE_CHECKING:
    from rich.progress import Progress

    from ripplevec.replay.pacing import Report
    from ripplevec.replay.replay import Replay
    from ripplevec.replay.targets import Target

INTERRUPTED = 130
BUILT_IN_SPEED = 40.0


@options.add_model_options(options.REPLAY_OPTIONS)
def replay(
    *,
    file: Annotated[str | None, typer.Argument(help="CSV, TSV, JSONL or Parquet; '-': standard input.")] = None,
    to: Annotated[
        str, typer.Option("--to", help="DIR, redis://…?stream=…, kafka://…/topic or http://…", metavar="TARGET")
    ] = "http://127.0.0.1:8080",
    rate: Annotated[float | None, typer.Option(help="Events per second, regardless of their times.")] = None,
    speed: Annotated[float | None, typer.Option(help="Speed relative to the original times.")] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Replay a growing synthetic graph of ten communities.")
    ] = False,
    vertices: Annotated[int, typer.Option(min=1, help="Vertices of the built-in graph.")] = 20_000,
    at_once: Annotated[int, typer.Option(min=0, help="Events to send before the clock starts.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Total number of events to send.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Maximum number of events per batch.")] = 1000,
    src: options.Src = None,
    dst: options.Dst = None,
    weight: options.Weight = None,
    time: options.Time = None,
    header: options.Header = None,
    format: options.Format = None,
    ids: options.Ids = "auto",
    on_error: options.OnError = "stop",
    attributes: options.Attributes = None,
    model: dict[str, Any],
    json: options.Json = False,
) -> None:
    """Replay a file as a live stream into a session directory, Redis, Kafka or a service: for demos and load tests."""
    if (file is None) is not built_in:
        raise typer.BadParameter("expected either a FILE or --built-in", param_hint="FILE")
    if built_in and rate is None and speed is None:
        speed = BUILT_IN_SPEED
    if (rate is None) is (speed is None):
        choices = "--rate (events per second, such as --rate 100) and --speed (relative to the times in the file)"
        raise typer.BadParameter(f"expected one of {choices}, got {'both' if rate else 'neither'}", param_hint="--rate")
    graph_seed = model["seed"] or 0  # of the built-in graph
    if built_in and "://" in to:
        model["seed"] = None  # brokers and services accept no model parameters; the seed is that of the graph only
    parameters = options.collect_parameters(model)
    columns = options.drop_unset(src=src, dst=dst, weight=weight, time=time, header=header)
    read = columns | options.drop_unset(format=format, ids=ids, on_error=on_error)

    from ripplevec.io.readers.attribute_files import PendingAttributes, read_attribute_file
    from ripplevec.io.readers.option_syntax import as_flags
    from ripplevec.replay.replay import replay_builtin, replay_file
    from ripplevec.replay.targets import AttributedTarget, open_target

    pending = None if attributes is None else PendingAttributes(read_attribute_file(attributes))
    if file is None:
        source = replay_builtin(vertices, graph_seed)
    else:
        source = replay_file(file, read | {"syntax": as_flags}, batch_size, sort=speed is not None)
    with (
        closing(source),
        closing(open_target(to, labels=source.labels, **parameters)) as target,
        show_progress() as bars,
    ):
        receiver = target if pending is None else AttributedTarget(target, pending)
        report = _play_stream(source.with_schedule(rate, speed, batch_size, at_once, limit), receiver, bars)
        if isinstance(receiver, AttributedTarget) and limit is None and not report.interrupted:
            receiver.send_rest()
    if json:
        print_json({**report.summary(), "to": to, "asked_rate": rate, "asked_speed": speed})
    else:
        _print_summary(report)
    if report.interrupted:
        raise typer.Exit(INTERRUPTED)


def _play_stream(replay: Replay, target: Target, bars: Progress) -> Report:
    task = bars.add_task("replay", total=replay.total, note="")

    def show(report: Report) -> None:
        late = f", {report.behind_now:.1f} s behind" if report.behind_now >= 1 else ""
        bars.update(task, completed=replay.sent_immediately + report.events, note=f"{report.rate:,.0f} events/s{late}")

    return replay.play(target.send, show)


def _print_summary(report: Report) -> None:
    figures: dict[str, Any] = report.summary()
    events, batches = format_count(figures["events"], "event"), format_count(figures["batches"], "batch", "batches")
    print_message(f"{events} in {batches}, {figures['seconds']:.1f} s: {figures['rate']:,.1f} events/s")
    if report.behind >= 1:
        print_message("the target was slower than the stream: up to {behind:.1f} s behind".format(**figures))
