from __future__ import annotations

import sys

import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io.kafka_client import create_kafka_client, import_confluent_kafka, log_client_error


def test_a_missing_extra_names_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        MissingExtraError, match=r"Kafka needs an optional dependency: pip install 'ripplevec\[kafka\]'"
    ):
        import_confluent_kafka()


def test_the_user_has_the_last_word():
    with pytest.raises(InvalidValueError, match="retries"):
        create_kafka_client("Producer", "127.0.0.1:1", {"retries": "many"}, retries=5)
    create_kafka_client("Producer", "127.0.0.1:1", {"retries": 5}, retries="many")


def test_what_the_library_says_is_logged(caplog):
    log_client_error("broker down")
    assert "Kafka: broker down" in caplog.text
