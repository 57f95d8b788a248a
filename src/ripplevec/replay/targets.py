"""Replay targets: a session directory, a Redis Stream, a Kafka topic, or a service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ripplevec.attributes.input import attach_attributes, attributes_to_json, split_attributes
from ripplevec.batch import Batch, Id, ids_to_list, times_to_json
from ripplevec.errors import InvalidValueError
from ripplevec.io.brokers import DEFAULT_PATIENCE, UnreachableError, retry
from ripplevec.io.readers.attribute_files import PendingAttributes
from ripplevec.io.registry import create_for_broker, parse_broker_address

TOKEN = "RIPPLEVEC_TOKEN"
"""Environment variable with the token for a service that requires one."""


class Target(Protocol):
    """A receiver of events."""

    def send(self, batch: Batch) -> None:
        """Send the events; return once the target has stored them."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


def open_target(address: str, *, labels: Mapping[Id, str] | None = None, **parameters: Any) -> Target:
    """Open DIR, redis://host:port/db?stream=…, kafka://host:port/topic or http://host:port.

    `labels` are sent to a service; other targets ignore them. `parameters` configure the model of a new directory.
    """
    scheme = address.partition("://")[0] if "://" in address else ""
    if parameters and scheme:
        raise InvalidValueError.of("model parameters", "a new session directory as target", address)
    if not scheme:
        return DirectoryTarget(Path(address), parameters)
    if scheme in ("http", "https"):
        return ServiceTarget(address, labels or {})
    url = parse_broker_address(address)
    assert url is not None  # it has a scheme, so it is an address
    target: Target = create_for_broker(url, [RedisTarget, KafkaTarget], {})
    return target


class DirectoryTarget:
    """A session directory, created if it does not exist."""

    def __init__(self, directory: Path, parameters: Mapping[str, Any]) -> None:
        from ripplevec.durability.session import Session

        self._session = Session(directory, **parameters)

    def send(self, batch: Batch) -> None:
        """Write the events to the journal and apply them."""
        self._session.apply(batch)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


class ServiceTarget:
    """A running service. The label of a vertex is sent before the vertex arrives."""

    def __init__(self, url: str, labels: Mapping[Id, str]) -> None:
        from ripplevec.client import Client

        self._client, self._url = Client(url, token=os.environ.get(TOKEN)), url
        self._labels = dict(labels)

    def send(self, batch: Batch) -> None:
        """Send the events; return once the service has written them to disk."""
        from ripplevec.client.protocol import UnreachableServiceError

        try:
            if labels := self._unsent_labels(batch):
                self._client.put_labels(labels)
            self._client.add_edges(batch)
        except UnreachableServiceError as error:
            advice = "Start a service with `ripplevec serve --state DIR`, or name another target with --to"
            raise UnreachableError(f"{self._url} cannot be reached: {error.__cause__}. {advice}.") from error

    def _unsent_labels(self, batch: Batch) -> dict[Id, str | None]:
        """Remove and return the labels of vertices that appear for the first time."""
        if not self._labels:
            return {}
        names = dict.fromkeys([*ids_to_list(batch.src), *ids_to_list(batch.dst)])
        return {name: self._labels.pop(name) for name in names if name in self._labels}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class AttributedTarget:
    """A target that receives the attributes of every vertex with the first batch that names it."""

    def __init__(self, target: Target, attributes: PendingAttributes) -> None:
        self._target, self._attributes = target, attributes

    def send(self, batch: Batch) -> None:
        """Send the events, with the attributes of their vertices that have not been sent."""
        rows = self._attributes.take(batch)
        self._target.send(batch if rows is None else attach_attributes(batch, rows))

    def send_rest(self) -> None:
        """Send the attributes of the vertices that no batch has named."""
        if (rows := self._attributes.take_rest()) is not None:
            self._target.send(attach_attributes(Batch.of([], []), rows))

    def close(self) -> None:
        """Close the target."""
        self._target.close()


class RedisTarget:
    """A Redis Stream: one entry per event, with JSON in its field `data`."""

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = DEFAULT_PATIENCE) -> None:
        from ripplevec.io.brokers import create_redis_client, server_address

        self._client = create_redis_client(url)
        self._stream, self._maxlen, self._patience = stream, maxlen, patience
        self._name = f"{server_address(self._client)}/{stream}"

    def send(self, batch: Batch) -> None:
        """Add the entries in one transaction."""
        from ripplevec.io.brokers import connection_errors

        with self._client.pipeline(transaction=True) as pipe:
            for message in encode_messages(batch):
                pipe.xadd(self._stream, {"data": message}, maxlen=self._maxlen)
            retry(pipe.execute, connection_errors(), self._patience, self._name)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class KafkaTarget:
    """A Kafka topic: one JSON message per event, keyed by source vertex, so events of one vertex stay in order."""

    def __init__(
        self, servers: str, topic: str, *, patience: float = DEFAULT_PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        from ripplevec.io.brokers import create_kafka_client

        self._producer = create_kafka_client("Producer", servers, config, **{"enable.idempotence": True})
        self._name, self._topic, self._patience = f"kafka://{servers}/{topic}", topic, patience

    def send(self, batch: Batch) -> None:
        """Send the messages; return once Kafka has acknowledged them."""
        for message, source in zip(encode_messages(batch), ids_to_list(batch.src), strict=True):
            self._produce(message, str(source).encode())
        self._flush()

    def _produce(self, message: bytes, key: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, message, key)
                return
            except BufferError:  # the producer queue is full
                self._flush()

    def _flush(self) -> None:
        if left := self._producer.flush(self._patience):
            raise UnreachableError(f"{self._name} has not accepted {left:,} messages within {self._patience:g} s")

    def close(self) -> None:
        """Do nothing: every `send` has flushed."""


def encode_messages(batch: Batch) -> Iterator[bytes]:
    """Yield one JSON message per row of a batch.

    It is `[src, dst, weight]`, an object if the row has an operation or a time, or a document if it sets attributes.
    """
    batch, rows = split_attributes(batch)
    columns: dict[str, list[Any]] = {"src": ids_to_list(batch.src), "dst": ids_to_list(batch.dst)}
    for name in ("weight", "op"):
        if (column := getattr(batch, name)) is not None:
            columns[name] = column.tolist()
    if batch.time is not None:
        columns["time"] = times_to_json(batch.time)
    for row in zip(*columns.values(), strict=True):
        yield _to_json(dict(zip(columns, row, strict=True)) if columns.keys() & {"op", "time"} else row)
    for vertex in [] if rows is None else attributes_to_json(rows):
        yield _to_json({"attributes": [vertex]})


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
