"""The one door to live streams: an address, a path, "-" or a frame becomes a source, an address or a path a sink."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
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
    from ripplevec.io.sinks.lance import LanceSink

T = TypeVar("T")

REDIS, LANCE = ("redis", "rediss", "unix"), "lancedb"
REDIS_OPTIONS = (
    "stream",
    "group",
    "consumer",
    "batch_size",
    "fixed",
    "claim_idle",
    "patience",
    "maxlen",
    "ids",
    "name",
)
"""What the address of a Redis may say to us; the rest of its query is for the client library."""

SOURCES: dict[str, Callable[..., EventSource]] = {}
"""Sources by the scheme of their address, beside Redis and Kafka: each is made of the whole address and its options."""


def stream_from(where: Any, **options: Any) -> EventSource:
    """A source of events.

    `where` is a file or a folder, "-" for standard input, `redis://host:port/db?stream=…&group=…`,
    `kafka://host:port/topic?group=…`, or a pandas, polars or pyarrow frame. The options are those of the source, and
    may stand in an address too: batch_size, fixed, follow, format, name, group, ids, and so on.
    """
    if not isinstance(where, str | os.PathLike):
        return _made(FrameSource, where, **options)
    scheme, marked, _ = str(where).partition("://")
    if marked and scheme in SOURCES:
        return _made(SOURCES[scheme], where, **options)
    url = parse_broker_address(where)
    if url is None:
        return _made(StdinSource, **options) if str(where) == "-" else _made(FileSource, where, **options)
    from ripplevec.io.sources.kafka import KafkaSource
    from ripplevec.io.sources.redis import RedisSource

    brokers: list[Callable[..., EventSource]] = [RedisSource, KafkaSource]
    return create_for_broker(url, brokers, options)


def sink_to(where: str | os.PathLike[str], **options: Any) -> ChangeSink:
    """A sink for changes.

    `where` is "-" for standard output, a .jsonl file, a folder for Parquet, a Redis or Kafka address, or
    `lancedb://DIRECTORY?table=…`, a table that is kept in step.
    """
    if str(where).startswith(f"{LANCE}://"):
        return create_lance_sink(str(where), **options)
    url = parse_broker_address(where)
    if url is None:
        if str(where) == "-":
            return _made(StdoutSink, **options)
        known: dict[str, Callable[..., ChangeSink]] = {".jsonl": JsonlSink, ".ndjson": JsonlSink, "": ParquetSink}
        return _made(_file_sink("sink", where, known), where, **options)
    from ripplevec.io.sinks.kafka import KafkaSink
    from ripplevec.io.sinks.redis import RedisSink

    brokers: list[Callable[..., ChangeSink]] = [RedisSink, KafkaSink]
    return create_for_broker(url, brokers, options)


def create_lance_sink(address: str, **options: Any) -> LanceSink:
    """The table at `lancedb://DIRECTORY?table=…`."""
    url = urlsplit(address)
    directory = unquote(url.netloc + url.path)
    if url.scheme != LANCE or not directory:
        raise InvalidValueError.of("address", f"{LANCE}://DIRECTORY?table=…", address)
    from ripplevec.io.sinks.lance import LanceSink

    return _made(LanceSink, directory, **(dict(parse_qsl(url.query)) | options))


def dead_letters_to(where: str | os.PathLike[str], **options: Any) -> DeadLetterSink:
    """A sink for messages that hold no events: a .jsonl file, or a Redis or Kafka address."""
    url = parse_broker_address(where)
    if url is None:
        known = {".jsonl": JsonlDeadLetters, ".ndjson": JsonlDeadLetters}
        return _made(_file_sink("dead letters", where, known), where, **options)
    from ripplevec.io.sinks.kafka import KafkaDeadLetters
    from ripplevec.io.sinks.redis import RedisDeadLetters

    brokers: list[Callable[..., DeadLetterSink]] = [RedisDeadLetters, KafkaDeadLetters]
    return create_for_broker(url, brokers, options)


def parse_broker_address(where: str | os.PathLike[str]) -> SplitResult | None:
    """The parts of an address; None for a path."""
    if not isinstance(where, str) or "://" not in where:
        return None
    url = urlsplit(where)
    if url.scheme not in (*REDIS, "kafka"):
        raise InvalidValueError.of("address", "redis://…, kafka://… or a path", f"{url.scheme}://…")
    return url


def _file_sink(name: str, where: str | os.PathLike[str], known: Mapping[str, Callable[..., T]]) -> Callable[..., T]:
    path = Path(where)
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix not in known:
        choices = ", ".join(suffix or "no suffix (a folder for Parquet)" for suffix in known)
        raise InvalidValueError.of(name, f"a path that ends in {choices}", str(where))
    return known[suffix]


def create_for_broker(url: SplitResult, brokers: Sequence[Callable[..., T]], options: dict[str, Any]) -> T:
    """What stands for an address: of two kinds, the first for Redis and the second for Kafka, the one it names."""
    redis, kafka = brokers
    query = dict(parse_qsl(url.query))
    if url.scheme == "kafka":
        topic = unquote(url.path.strip("/"))
        if not url.netloc or not topic:
            raise InvalidValueError.of("address", "kafka://host:port/topic", url.geturl())
        config = {name: query.pop(name) for name in list(query) if "." in name}  # as librdkafka names its settings
        return _made(kafka, url.netloc, topic, config=config, **(_typed(query) | options))
    ours = {name: query.pop(name) for name in REDIS_OPTIONS if name in query}
    options = _typed(ours) | options
    if not options.get("stream"):
        raise InvalidValueError.of("address", "redis://host:port/db?stream=…", "one without a stream")
    return _made(redis, urlunsplit(url._replace(query=urlencode(query))), **options)


def _typed(query: dict[str, str]) -> dict[str, Any]:
    """The options of an address as what they are."""
    kinds: dict[str, Callable[[str], Any]] = {
        "batch_size": int,
        "maxlen": int,
        "claim_idle": float,
        "patience": float,
        "fixed": _flag,
    }
    made: dict[str, Any] = {}
    for name, text in query.items():
        try:
            made[name] = kinds.get(name, str)(text)
        except ValueError:
            raise InvalidValueError.of(name, "a number" if name != "fixed" else "yes or no", text) from None
    return made


def _flag(text: str) -> bool:
    known = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
    if text.lower() not in known:
        raise ValueError(text)
    return known[text.lower()]


def _made(kind: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """One of ours with these options, or an error that names the option it does not have."""
    parameters = inspect.signature(kind).parameters
    known = {name for name, one in parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        known |= {field.name for field in fields(ReadOptions)} - {"on_error"}
    unknown = sorted(options.keys() - known)
    if unknown:
        choices = ", ".join(sorted(known - {"config"})) or "none"
        raise InvalidValueError(
            f"{getattr(kind, '__name__', '')}: expected options {choices}, got {shorten(unknown[0])}"
        )
    return kind(*arguments, **options)
