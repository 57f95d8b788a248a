"""Registry of sources and sinks: creates them from a path, an address, "-" or a frame."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from ripplevec.errors import InvalidValueError, shorten
from ripplevec.io.protocols import ChangeSink, DeadLetterSink, EventSource
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink, StdoutSink
from ripplevec.io.sinks.parquet import ParquetSink
from ripplevec.io.sources.files import FileSource
from ripplevec.io.sources.frames import FrameSource
from ripplevec.io.sources.stdin import StdinSource

if TYPE_CHECKING:
    from ripplevec.io.sinks.vector_store import VectorStoreSink

T = TypeVar("T")

REDIS_SCHEMES = ("redis", "rediss", "unix")
VECTOR_STORES = {
    "lancedb": "lancedb://DIRECTORY?table=…",
    "postgresql": "postgresql://USER@HOST/DATABASE?table=…",
    "qdrant": "qdrant://HOST:PORT?collection=…",
}
"""Vector stores that are kept in step, by the scheme of their address."""

REDIS_OPTIONS = (
    *("stream", "group", "consumer", "batch_size", "fixed"),
    *("claim_idle", "patience", "maxlen", "ids", "name"),
)
"""Options in the query of a Redis address that belong to Ripplevec; the rest of the query is for the client library."""

SOURCES: dict[str, Callable[..., EventSource]] = {}
"""Additional sources by the scheme of their address; each is called with the whole address and its options."""


def stream_from(where: Any, **options: Any) -> EventSource:
    """Create a source of events.

    Parameters
    ----------
    where : str, path or frame
        A file or a folder, "-" for standard input, both also with options, `edges.csv?src=buyer&header=yes`,
        `redis://host:port/db?stream=…&group=…`, `kafka://host:port/topic?group=…`, or a pandas, polars or pyarrow
        frame.
    **options
        Options of the source, which may also be in the query of an address: batch_size, fixed, follow, format, src,
        dst, header, name, group, ids, and so on. An argument overrides the address.

    Returns
    -------
    EventSource

    Raises
    ------
    InvalidValueError
        If the address or an option is not valid.
    """
    if not isinstance(where, str | os.PathLike):
        return _construct(FrameSource, where, **options)
    scheme, separator, _ = str(where).partition("://")
    if separator and scheme in SOURCES:
        return _construct(SOURCES[scheme], where, **options)
    url = parse_broker_address(where)
    if url is None:
        path, query = _split_file_address(where)
        options = _parse_options(query) | options
        return _construct(StdinSource, **options) if str(path) == "-" else _construct(FileSource, path, **options)
    from ripplevec.io.sources.kafka import KafkaSource
    from ripplevec.io.sources.redis import RedisSource

    factories: list[Callable[..., EventSource]] = [RedisSource, KafkaSource]
    return create_for_broker(url, factories, options)


def sink_to(where: str | os.PathLike[str], **options: Any) -> ChangeSink:
    """Create a sink for changes.

    Parameters
    ----------
    where : str or path
        "-" for standard output, a .jsonl file, a folder for Parquet, a Redis or Kafka address, or the address of a
        vector store that is kept in step: `lancedb://DIRECTORY?table=…`, `postgresql://USER@HOST/DATABASE?table=…`
        or `qdrant://HOST:PORT?collection=…`.
    **options
        Options of the sink, which may also be in the query of an address.

    Returns
    -------
    ChangeSink

    Raises
    ------
    InvalidValueError
        If the path, the address or an option is not valid.
    """
    if str(where).partition("://")[0] in VECTOR_STORES:
        return create_vector_store_sink(str(where), **options)
    url = parse_broker_address(where, VECTOR_STORES)
    if url is None:
        if str(where) == "-":
            return _construct(StdoutSink, **options)
        by_suffix: dict[str, Callable[..., ChangeSink]] = {".jsonl": JsonlSink, ".ndjson": JsonlSink, "": ParquetSink}
        return _construct(_select_by_suffix("sink", where, by_suffix), where, **options)
    from ripplevec.io.sinks.kafka import KafkaSink
    from ripplevec.io.sinks.redis import RedisSink

    factories: list[Callable[..., ChangeSink]] = [RedisSink, KafkaSink]
    return create_for_broker(url, factories, options)


def create_vector_store_sink(address: str, **options: Any) -> VectorStoreSink:
    """Create a sink for the vector store at an address, one of `VECTOR_STORES`."""
    url = urlsplit(address)
    place = unquote(url.netloc + url.path)
    if "://" not in address or url.scheme not in VECTOR_STORES or not place:
        raise InvalidValueError.of("address", " or ".join(VECTOR_STORES.values()), address)
    query = dict(parse_qsl(url.query))
    if url.scheme == "postgresql":
        from ripplevec.io.sinks.pgvector import PgvectorSink

        options = {name: query.pop(name) for name in ("table",) if name in query} | options
        server = urlunsplit(url._replace(query=urlencode(query)))  # the rest of the query is for the client library
        return _construct(PgvectorSink, server, **options)
    if url.scheme == "qdrant":
        from ripplevec.io.sinks.qdrant import QdrantSink

        return _construct(QdrantSink, place, **(query | options))
    from ripplevec.io.sinks.lance import LanceSink

    return _construct(LanceSink, place, **(query | options))


def dead_letters_to(where: str | os.PathLike[str], **options: Any) -> DeadLetterSink:
    """Create a sink for messages that could not be decoded or applied.

    Parameters
    ----------
    where : str or path
        A .jsonl file, or a Redis or Kafka address.
    **options
        Options of the sink, which may also be in the query of an address.

    Returns
    -------
    DeadLetterSink

    Raises
    ------
    InvalidValueError
        If the path, the address or an option is not valid.
    """
    url = parse_broker_address(where)
    if url is None:
        by_suffix = {".jsonl": JsonlDeadLetters, ".ndjson": JsonlDeadLetters}
        return _construct(_select_by_suffix("dead letters", where, by_suffix), where, **options)
    from ripplevec.io.sinks.kafka import KafkaDeadLetters
    from ripplevec.io.sinks.redis import RedisDeadLetters

    factories: list[Callable[..., DeadLetterSink]] = [RedisDeadLetters, KafkaDeadLetters]
    return create_for_broker(url, factories, options)


def parse_broker_address(where: str | os.PathLike[str], others: Iterable[str] = ()) -> SplitResult | None:
    """Return the parts of a Redis or Kafka address; None for a path. An error names the other schemes, too."""
    if not isinstance(where, str) or "://" not in where:
        return None
    url = urlsplit(where)
    if url.scheme not in (*REDIS_SCHEMES, "kafka"):
        schemes = ", ".join(f"{scheme}://…" for scheme in ("redis", "kafka", *others))
        raise InvalidValueError.of("address", f"{schemes} or a path", f"{url.scheme}://…")
    return url


def _split_file_address(where: str | os.PathLike[str]) -> tuple[str | os.PathLike[str], dict[str, str]]:
    """Return the path and the options in an address such as `edges.csv?src=buyer&header=yes`.

    A path object has no options, and text with "?" is a path if it exists or has no `name=value` after the last "?".
    """
    path, _, query = str(where).rpartition("?")
    has_options = path and all("=" in option for option in query.split("&"))
    if not isinstance(where, str) or not has_options or Path(where).exists():
        return where, {}
    return path, dict(parse_qsl(query, keep_blank_values=True))


def create_for_broker(url: SplitResult, factories: Sequence[Callable[..., T]], options: dict[str, Any]) -> T:
    """Call the factory for the broker of an address: the first one for Redis, the second one for Kafka."""
    redis_factory, kafka_factory = factories
    query = dict(parse_qsl(url.query))
    if url.scheme == "kafka":
        topic = unquote(url.path.strip("/"))
        if not url.netloc or not topic:
            raise InvalidValueError.of("address", "kafka://host:port/topic", url.geturl())
        config = {name: query.pop(name) for name in list(query) if "." in name}  # settings of librdkafka have dots
        return _construct(kafka_factory, url.netloc, topic, config=config, **(_parse_options(query) | options))
    redis_options = {name: query.pop(name) for name in REDIS_OPTIONS if name in query}
    options = _parse_options(redis_options) | options
    if not options.get("stream"):
        raise InvalidValueError.of("address", "redis://host:port/db?stream=…", "one without a stream")
    return _construct(redis_factory, urlunsplit(url._replace(query=urlencode(query))), **options)


def _select_by_suffix(
    name: str, where: str | os.PathLike[str], by_suffix: Mapping[str, Callable[..., T]]
) -> Callable[..., T]:
    path = Path(where)
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix not in by_suffix:
        choices = ", ".join(suffix or "no suffix (a folder for Parquet)" for suffix in by_suffix)
        raise InvalidValueError.of(name, f"a path that ends in {choices}", str(where))
    return by_suffix[suffix]


def _parse_options(query: dict[str, str]) -> dict[str, Any]:
    """Convert the options of an address from text to their types."""
    parsers: dict[str, Callable[[str], Any]] = {
        "batch_size": int,
        "maxlen": int,
        "claim_idle": float,
        "patience": float,
        **dict.fromkeys(("fixed", "follow", "header", "replayed"), _parse_bool),
    }
    options: dict[str, Any] = {}
    for name, text in query.items():
        try:
            options[name] = parsers.get(name, str)(text)
        except ValueError:
            raise InvalidValueError.of(
                name, "yes or no" if parsers[name] is _parse_bool else "a number", text
            ) from None
    return options


def _parse_bool(text: str) -> bool:
    values = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]


def _construct(factory: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call a factory; raise an error that names an option that it does not have."""
    parameters = inspect.signature(factory).parameters
    accepted = {name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        accepted |= {field.name for field in fields(ReadOptions)} - {"on_error"}
    unknown = sorted(options.keys() - accepted)
    if unknown:
        choices = ", ".join(sorted(accepted - {"config", "syntax"})) or "none"
        raise InvalidValueError(
            f"{getattr(factory, '__name__', '')}: expected options {choices}, got {shorten(unknown[0])}"
        )
    return factory(*arguments, **options)
