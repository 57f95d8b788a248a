"""What every Kafka client of ours is set to, and which of its errors pass by themselves."""

from __future__ import annotations

import logging
from typing import Any

from ripplevec.errors import InvalidValueError, MissingExtraError

log = logging.getLogger(__name__)


def import_confluent_kafka() -> Any:
    """The module `confluent_kafka`, or one sentence where it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise MissingExtraError("Kafka", "kafka") from error
    return confluent_kafka


def create_kafka_client(kind: str, servers: str, config: dict[str, Any] | None, **ours: Any) -> Any:
    """A Consumer or a Producer with the settings of librdkafka that we need, unless the user says otherwise."""
    kafka = import_confluent_kafka()
    settings = {"bootstrap.servers": servers, "error_cb": log_client_error, "logger": log, **ours, **(config or {})}
    try:
        return getattr(kafka, kind)(settings)
    except kafka.KafkaException as error:
        raise InvalidValueError(f"Kafka: expected settings that librdkafka knows: {error.args[0].str()}") from error


def log_client_error(error: Any) -> None:
    """librdkafka reconnects by itself; what it says meanwhile is for the log."""
    log.warning("Kafka: %s", error)
