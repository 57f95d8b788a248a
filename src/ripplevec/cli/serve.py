"""The command `ripplevec serve`: its options; `ripplevec.service` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ripplevec.cli import configuration, options
from ripplevec.errors import MissingExtraError

SERVICE_PANEL, CLUSTER_PANEL = "Service", "Cluster"


def _service_option(help: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=SERVICE_PANEL, help=help, **more)


State = Annotated[Path, typer.Option("--state", help="State directory; created if it does not exist.")]
Host = Annotated[str, typer.Option(help="Address to listen on; tokens are required unless it is local.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")]
Source = Annotated[
    str | None,
    typer.Option(
        help="Stream to read batches from: redis://…, kafka://…, or a file, also with options: edges.csv?src=…",
        metavar="URL|FILE",
    ),
]
DeadLetters = Annotated[
    str | None, typer.Option(help="Destination of source messages that cannot be parsed.", metavar="URL|FILE")
]
Sink = Annotated[
    str | None,
    typer.Option(help="Vector store to keep up to date: lancedb://…, postgresql://… or qdrant://…", metavar="URL"),
]
MaxDelay = Annotated[
    float, _service_option("Time that a batch waits for others, to be flushed together.", min=0, max=1000)
]
MaxBatch = Annotated[int, _service_option("Maximum number of events per flush to disk.", min=1)]
SnapshotEvery = Annotated[
    int | None, _service_option("Events between snapshots; a tenth of the edges, if more. Default: 250000.", min=1)
]
TokenFile = Annotated[
    Path | None, _service_option("File with tokens: lines `read TOKEN` or `write TOKEN`.", metavar="FILE")
]
AllowHost = Annotated[list[str] | None, _service_option("Additional host name that requests may use.", metavar="NAME")]
MaxBody = Annotated[int, _service_option("Maximum size of a request body.", min=1)]
Shards = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=CLUSTER_PANEL, help="Number of shards on a Ray cluster that hold the model."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=CLUSTER_PANEL,
        help="Ray cluster: auto, or an address. By default one is started on this machine.",
    ),
]
AccessLog = Annotated[bool, _service_option("Log every request.")]
LogFormat = Annotated[
    str | None,
    _service_option("Format of the log. By default text on a terminal, otherwise json.", metavar="text|json"),
]
LogLevel = Annotated[str, _service_option("Least level of the log.", metavar="debug|info|warning|error")]


@options.add_model_options(options.EMBEDDER_OPTIONS)
def serve(
    context: typer.Context,
    *,
    config: configuration.Config = None,
    print_config: configuration.PrintConfig = False,
    state: State,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    source: Source = None,
    dead_letters: DeadLetters = None,
    sink: Sink = None,
    max_delay_ms: MaxDelay = 0.0,
    max_batch: MaxBatch = 10_000,
    snapshot_every: SnapshotEvery = None,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    max_body_mb: MaxBody = 16,
    access_log: AccessLog = True,
    log_format: LogFormat = None,
    log_level: LogLevel = "info",
    shards: Shards = None,
    ray_address: RayAddress = None,
    model: dict[str, Any],
) -> None:
    """Serve a model over HTTP. Its state is kept in a directory: acknowledged batches survive a crash.

    Every option may also be set by its environment variable or in a TOML file (--config).
    Options override the environment, which overrides the file.
    """
    parameters = options.collect_parameters(model) | options.drop_unset(snapshot_every=snapshot_every)
    try:
        from ripplevec.service import logs, server
        from ripplevec.service.security import Tokens
        from ripplevec.service.settings import Limits, Settings
    except ImportError as error:
        raise MissingExtraError("ripplevec serve", "serve") from error

    tokens = Tokens.from_environment()
    if token_file is not None:
        tokens |= Tokens.from_file(token_file)
    settings = Settings(
        state=state,
        host=host,
        port=port,
        source=source,
        dead_letters=dead_letters,
        sink=sink,
        parameters=parameters,
        shards=shards,
        ray_address=ray_address,
        max_delay_ms=max_delay_ms,
        max_batch=max_batch,
        tokens=tokens,
        hosts=frozenset(name.lower() for name in allow_host or ()),
        limits=Limits(body_bytes=max_body_mb << 20),
        access_log=access_log,
        log_format=log_format,
        log_level=log_level,
    )
    if print_config:
        typer.echo(configuration.render_config(context))
        return
    logs.configure_logging(settings)
    server.serve(settings)
