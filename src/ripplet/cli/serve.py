"""`ripplet serve`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ripplet.cli import options as o
from ripplet.errors import MissingExtraError

SERVICE = "Service"


def serve(
    state: Annotated[Path, typer.Option("--state", help="Directory of the state; made where there is none.")],
    host: Annotated[
        str, typer.Option(help="Address to listen at; one beyond this machine needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")] = 8080,
    source: Annotated[
        str | None, typer.Option(help="A stream to follow: redis://…, kafka://…, or a file.", metavar="URL|FILE")
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(help="Where messages of the source go that hold no events.", metavar="URL|FILE"),
    ] = None,
    max_delay_ms: Annotated[
        float, typer.Option(min=0, max=1000, rich_help_panel=SERVICE, help="How long a batch waits for others.")
    ] = 0.0,
    max_batch: Annotated[
        int, typer.Option(min=1, rich_help_panel=SERVICE, help="Events put on disk with one flush, at most.")
    ] = 10_000,
    token_file: Annotated[
        Path | None,
        typer.Option(rich_help_panel=SERVICE, help="Lines `read TOKEN` or `write TOKEN`.", metavar="FILE"),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(rich_help_panel=SERVICE, help="Another name of this service.", metavar="NAME")
    ] = None,
    max_body_mb: Annotated[int, typer.Option(min=1, rich_help_panel=SERVICE, help="Largest body of a request.")] = 16,
    access_log: Annotated[bool, typer.Option(rich_help_panel=SERVICE, help="Log every request.")] = True,
    dim: o.Dim = None,
    rule: o.Rule = None,
    depth: o.Depth = None,
    seed: o.Seed = None,
    anchor_growth: o.AnchorGrowth = None,
    threads: o.Threads = None,
    directed: o.Directed = None,
    duplicates: o.Duplicates = None,
    max_reads: o.MaxReads = None,
    setting: o.Settings = None,
) -> None:
    """Serve a model over HTTP, its state kept in a directory: what was answered with success survives a crash."""
    model = o.given(dim=dim, rule=rule, depth=depth, seed=seed, anchor_growth=anchor_growth, threads=threads)
    model |= o.given(directed=directed, duplicates=duplicates, max_reads=max_reads) | o.settings(setting)
    try:
        from ripplet.service import logs, server
        from ripplet.service.security import Tokens
        from ripplet.service.settings import Limits, Settings
    except ImportError as error:
        raise MissingExtraError("ripplet serve", "serve") from error

    tokens = Tokens.from_environment()
    if token_file is not None:
        tokens |= Tokens.from_file(token_file)
    logs.set_up()
    server.serve(
        Settings(
            state=state,
            host=host,
            port=port,
            source=source,
            dead_letters=dead_letters,
            parameters=model,
            max_delay_ms=max_delay_ms,
            max_batch=max_batch,
            tokens=tokens,
            hosts=frozenset(name.lower() for name in allow_host or ()),
            limits=Limits(body_bytes=max_body_mb << 20),
            access_log=access_log,
        )
    )
