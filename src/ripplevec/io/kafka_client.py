"""Kafka clients: import of the optional library, default settings, and error logging."""

from __future__ import annotations

import logging
from typing import Any

from ripplevec.errors import InvalidValueError, MissingExtraError

log = logging.getLogger(__name__)


def import_confluent_kafka() -> Any:
    """Return the module `confluent_kafka`; raise `MissingExtraError` if it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise MissingExtraError("Kafka", "kafka") from error
    return confluent_kafka


def create_kafka_client(class_name: str, servers: str, config: dict[str, Any] | None, **defaults: Any) -> Any:
    """Create a Consumer or a Producer; the settings in `config` override the defaults."""
    kafka = import_confluent_kafka()
    settings = {
        "bootstrap.servers": servers,
        "error_cb": log_client_error,
        "logger": log,
        **defaults,
        **(config or {}),
    }
    try:
        return getattr(kafka, class_name)(settings)
    except kafka.KafkaException as error:
        raise InvalidValueError(f"Kafka: expected settings that librdkafka knows: {error.args[0].str()}") from error


def log_client_error(error: Any) -> None:
    """Log an error that librdkafka reports; it reconnects by itself."""
    log.warning("Kafka client error, reconnecting error=%s", error)
