from __future__ import annotations

import sys

import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io.kafka_client import create_kafka_client, import_confluent_kafka, log_client_error


def test_import_confluent_kafka_without_library_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingExtraError, match=r"Kafka needs an optional dependency: .*pip install .*\[kafka\]"):
        import_confluent_kafka()


def test_create_kafka_client_config_overrides_defaults():
    with pytest.raises(InvalidValueError, match="retries"):
        create_kafka_client("Producer", "127.0.0.1:1", {"retries": "many"}, retries=5)
    create_kafka_client("Producer", "127.0.0.1:1", {"retries": 5}, retries="many")


def test_log_client_error_writes_warning(caplog):
    log_client_error("broker down")
    assert "Kafka client error, reconnecting error=broker down" in caplog.text
