"""Whom a stream is played to: the directory of a session, a Redis Stream, a Kafka topic, or a service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ripplevec.batch import Batch, Id, ids_to_list, times_to_json
from ripplevec.errors import InvalidValueError
from ripplevec.io.registry import address_parts, made_for_broker
from ripplevec.io.retry_policy import PATIENCE, UnreachableError, patiently

TOKEN = "RIPPLEVEC_TOKEN"
"""The variable of the environment that holds the token for a service that needs one."""


class Target(Protocol):
    """Who takes events."""

    def send(self, batch: Batch) -> None:
        """Return once the events are safe there."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


def open_target(where: str, *, labels: Mapping[Id, str] | None = None, **parameters: Any) -> Target:
    """DIR, redis://host:port/db?stream=…, kafka://host:port/topic or http://host:port.

    `labels` are passed on where labels are taken: to a service. `parameters` are those of the model of a new directory.
    """
    scheme = where.partition("://")[0] if "://" in where else ""
    if parameters and scheme:
        raise InvalidValueError.of("parameters of a model", "a directory that is new", where)
    if not scheme:
        return DirectoryTarget(Path(where), parameters)
    if scheme in ("http", "https"):
        return ServiceTarget(where, labels or {})
    url = address_parts(where)
    assert url is not None  # an address, or it would have been refused
    made: Target = made_for_broker(url, [RedisTarget, KafkaTarget], {})
    return made


class DirectoryTarget:
    """The directory of a session; a new one where there is none."""

    def __init__(self, directory: Path, parameters: Mapping[str, Any]) -> None:
        from ripplevec.durability.session import Session

        self._session = Session(directory, **parameters)

    def send(self, batch: Batch) -> None:
        """Put the events on disk and apply them."""
        self._session.apply(batch)

    def close(self) -> None:
        """Let go of the directory."""
        self._session.close()


class ServiceTarget:
    """A service, which also gets the labels of vertices, before they arrive."""

    def __init__(self, url: str, labels: Mapping[Id, str]) -> None:
        from ripplevec.client import Client

        self._client, self._url = Client(url, token=os.environ.get(TOKEN)), url
        self._labels = dict(labels)

    def send(self, batch: Batch) -> None:
        """Return once the service has the events on disk."""
        from httpx import TransportError

        try:
            if fresh := self._fresh(batch):
                self._client.put_labels(fresh)
            self._client.add_edges(batch)
        except TransportError as error:
            raise UnreachableError(f"{self._url} cannot be reached: {error}") from error

    def _fresh(self, batch: Batch) -> dict[Id, str | None]:
        """The labels of those that have not been named before."""
        if not self._labels:
            return {}
        names = dict.fromkeys([*ids_to_list(batch.src), *ids_to_list(batch.dst)])
        return {name: self._labels.pop(name) for name in names if name in self._labels}

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


class RedisTarget:
    """A Redis Stream: an entry per event, whose field `data` is JSON."""

    def __init__(self, url: str, *, stream: str, maxlen: int | None = None, patience: float = PATIENCE) -> None:
        from ripplevec.io.redis_client import address, connected

        self._client = connected(url)
        self._stream, self._maxlen, self._patience = stream, maxlen, patience
        self._name = f"{address(self._client)}/{stream}"

    def send(self, batch: Batch) -> None:
        """Return once Redis has the entries, all of them or none."""
        from ripplevec.io.redis_client import away

        with self._client.pipeline(transaction=True) as pipe:
            for message in messages(batch):
                pipe.xadd(self._stream, {"data": message}, maxlen=self._maxlen)
            patiently(pipe.execute, away(), self._patience, self._name)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


class KafkaTarget:
    """A Kafka topic: a message per event, in JSON; the events of one source vertex stay in order."""

    def __init__(
        self, servers: str, topic: str, *, patience: float = PATIENCE, config: dict[str, Any] | None = None
    ) -> None:
        from ripplevec.io.kafka_client import client

        self._producer = client("Producer", servers, config, **{"enable.idempotence": True})
        self._name, self._topic, self._patience = f"kafka://{servers}/{topic}", topic, patience

    def send(self, batch: Batch) -> None:
        """Return once Kafka has the messages."""
        for message, source in zip(messages(batch), ids_to_list(batch.src), strict=True):
            self._produce(message, str(source).encode())
        self._flush()

    def _produce(self, message: bytes, key: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, message, key)
                return
            except BufferError:  # as many are on their way as it holds
                self._flush()

    def _flush(self) -> None:
        if left := self._producer.flush(self._patience):
            raise UnreachableError(f"{self._name} has not taken {left:,} messages within {self._patience:g} s")

    def close(self) -> None:
        """There is nothing left to send."""


def messages(batch: Batch) -> Iterator[bytes]:
    """Every event as a message of its own: `[src, dst, weight]`, or an object where it has an operation or a time."""
    columns: dict[str, list[Any]] = {"src": ids_to_list(batch.src), "dst": ids_to_list(batch.dst)}
    for name in ("weight", "op"):
        if (column := getattr(batch, name)) is not None:
            columns[name] = column.tolist()
    if batch.time is not None:
        columns["time"] = times_to_json(batch.time)
    for row in zip(*columns.values(), strict=True):
        value = dict(zip(columns, row, strict=True)) if columns.keys() & {"op", "time"} else row
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
