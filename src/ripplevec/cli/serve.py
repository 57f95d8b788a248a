"""`ripplevec serve`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import options as o
from ripplevec.errors import MissingExtraError

SERVICE, CLUSTER = "Service", "Cluster"


def _service(help: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=SERVICE, help=help, **more)


State = Annotated[Path, typer.Option("--state", help="Directory of the state; made where there is none.")]
Host = Annotated[str, typer.Option(help="Address to listen at; one beyond this machine needs tokens.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at.")]
Source = Annotated[
    str | None, typer.Option(help="A stream to follow: redis://…, kafka://…, or a file.", metavar="URL|FILE")
]
DeadLetters = Annotated[
    str | None, typer.Option(help="Where messages of the source go that hold no events.", metavar="URL|FILE")
]
Sink = Annotated[str | None, typer.Option(help="A vector store to keep in step: lancedb://DIR?table=…", metavar="URL")]
MaxDelay = Annotated[float, _service("How long a batch waits for others.", min=0, max=1000)]
MaxBatch = Annotated[int, _service("Events put on disk with one flush, at most.", min=1)]
TokenFile = Annotated[Path | None, _service("Lines `read TOKEN` or `write TOKEN`.", metavar="FILE")]
AllowHost = Annotated[list[str] | None, _service("Another name of this service.", metavar="NAME")]
MaxBody = Annotated[int, _service("Largest body of a request.", min=1)]
Shards = Annotated[
    int | None, typer.Option(min=1, rich_help_panel=CLUSTER, help="Keep the model on so many shards of a Ray cluster.")
]
RayAddress = Annotated[
    str | None,
    typer.Option(rich_help_panel=CLUSTER, help="The cluster: auto, or an address; else it starts here."),
]
AccessLog = Annotated[bool, _service("Log every request.")]
AnchorLag = Annotated[
    float | None,
    typer.Option(
        min=0,
        rich_help_panel=o.MODEL,
        help="Events that a correction is worked out beside, as a share of the graph.",
        show_default=False,
    ),
]


def serve(
    state: State,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    source: Source = None,
    dead_letters: DeadLetters = None,
    sink: Sink = None,
    max_delay_ms: MaxDelay = 0.0,
    max_batch: MaxBatch = 10_000,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    max_body_mb: MaxBody = 16,
    access_log: AccessLog = True,
    shards: Shards = None,
    ray_address: RayAddress = None,
    dim: o.Dim = None,
    rule: o.Rule = None,
    depth: o.Depth = None,
    seed: o.Seed = None,
    anchor_growth: o.AnchorGrowth = None,
    anchor_lag: AnchorLag = None,
    threads: o.Threads = None,
    directed: o.Directed = None,
    duplicates: o.Duplicates = None,
    max_reads: o.MaxReads = None,
    half_life: o.HalfLife = None,
    expire_after: o.ExpireAfter = None,
    setting: o.Settings = None,
) -> None:
    """Serve a model over HTTP, its state kept in a directory: what was answered with success survives a crash."""
    model = o.given(dim=dim, rule=rule, depth=depth, seed=seed, anchor_growth=anchor_growth, threads=threads)
    model |= o.given(anchor_lag=anchor_lag, directed=directed, duplicates=duplicates, max_reads=max_reads)
    model |= o.given(half_life=half_life, expire_after=expire_after) | o.settings(setting)
    try:
        from ripplevec.service import logs, server
        from ripplevec.service.security import Tokens
        from ripplevec.service.settings import Limits, Settings
    except ImportError as error:
        raise MissingExtraError("ripplevec serve", "serve") from error

    tokens = Tokens.from_environment()
    if token_file is not None:
        tokens |= Tokens.from_file(token_file)
    logs.configure_logging()
    server.serve(
        Settings(
            state=state,
            host=host,
            port=port,
            source=source,
            dead_letters=dead_letters,
            sink=sink,
            parameters=model,
            shards=shards,
            ray_address=ray_address,
            max_delay_ms=max_delay_ms,
            max_batch=max_batch,
            tokens=tokens,
            hosts=frozenset(name.lower() for name in allow_host or ()),
            limits=Limits(body_bytes=max_body_mb << 20),
            access_log=access_log,
        )
    )
