from __future__ import annotations

import sys

import pytest

from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.io import brokers
from ripplevec.io.brokers import (
    RESPONSE_TIMEOUT,
    Backoff,
    OutageTimer,
    UnreachableError,
    access_denied_error,
    connection_errors,
    create_kafka_client,
    create_redis_client,
    import_confluent_kafka,
    is_access_denied,
    log_client_error,
    retry,
    server_address,
)

UNREACHABLE = "broker unreachable, retrying broker=the broker error=no"


def test_backoff_delays_double_up_to_limit_and_reset():
    backoff = Backoff()
    assert [backoff.next_delay() for _ in range(9)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    backoff.reset()
    assert backoff.next_delay() == 0.05


def test_retry_of_failing_action_repeats_until_success(monkeypatch, caplog):
    delays = []
    monkeypatch.setattr(brokers.time, "sleep", delays.append)
    outcomes = [OSError("no"), OSError("no"), "yes"]

    def action():
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    assert retry(action, (OSError,), 60, "the broker") == "yes"
    assert delays == [0.05, 0.1]
    assert [record.getMessage() for record in caplog.records] == [UNREACHABLE]


def test_retry_after_patience_raises_unreachable_error():
    with pytest.raises(UnreachableError, match="the broker has not answered for 0 s: division"):
        retry(lambda: 1 / 0, (ZeroDivisionError,), 0, "the broker")


def test_retry_with_other_error_raises_it():
    with pytest.raises(TypeError):
        retry(lambda: len(3), (OSError,), 60, "the broker")  # type: ignore[arg-type]


def test_outage_timer_after_success_starts_again(caplog):
    now = [0.0]
    timer = OutageTimer("the broker", 60, clock=lambda: now[0])
    for now[0] in (0.0, 59.0):
        timer.record_failure(OSError("no"))
    timer.record_success()
    for now[0] in (61.0, 120.0):
        timer.record_failure(OSError("no"))
    assert [record.getMessage() for record in caplog.records] == [UNREACHABLE] * 2


def test_outage_timer_after_patience_raises_unreachable_error():
    now = [5.0]
    timer = OutageTimer("the broker", 60, clock=lambda: now[0])
    timer.record_failure(OSError("no"))
    now[0] = 65.0
    with pytest.raises(UnreachableError, match="the broker has not answered for 60 s: no"):
        timer.record_failure(OSError("no"))


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


def test_create_redis_client_without_library_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"Redis needs an optional dependency: .*pip install .*\[redis\]"):
        create_redis_client("redis://localhost")


def test_create_redis_client_does_not_retry_commands_and_limits_waiting():
    client = create_redis_client("redis://localhost")
    assert client.connection_pool.connection_kwargs["retry"].get_retries() == 0
    assert client.connection_pool.connection_kwargs["socket_timeout"] == RESPONSE_TIMEOUT


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://me:secret@127.0.0.1:7/3", "redis://127.0.0.1:7/3"),
        ("redis://localhost", "redis://localhost:6379/0"),
        ("unix:///tmp/redis.sock?db=2", "redis:///tmp/redis.sock/2"),
    ],
)
def test_server_address_has_no_credentials(url, address):
    assert server_address(create_redis_client(url)) == address


def test_access_denied_error_names_server_without_credentials():
    redis = pytest.importorskip("redis", reason="not installed: pip install '.[redis]'")
    denied = redis.AuthenticationError("wrong password")
    assert is_access_denied(denied)
    assert not is_access_denied(redis.ConnectionError("connection lost"))
    assert isinstance(denied, connection_errors())
    error = access_denied_error(create_redis_client("redis://me:secret@localhost"), denied)
    assert str(error) == "redis://localhost:6379/0 denied access: wrong password. Check the user and the password."
