"""Redis sinks with a real server: delivery, queue limits, outages, rejected messages."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from ripplevec.io.brokers import UnreachableError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks import redis as redis_sinks
from ripplevec.io.sinks.redis import RedisDeadLetters, RedisSink

redis = pytest.importorskip("redis", reason="not installed: pip install '.[redis]'")
UNREACHABLE_URL = "redis://127.0.0.1:1/0"


@pytest.fixture
def sink(redis_server, redis_client):
    with closing(RedisSink(redis_server.url, stream="changes")) as sink:
        yield sink


def stored_changes(client):
    return [json.loads(fields[b"data"]) for _, fields in client.xrange("changes")]


def lose_connection(*arguments, **options):
    raise redis.ConnectionError("connection lost")


def test_redis_sink_flush_delivers_queued_changes_in_order(sink, redis_client, changes_of):
    batches = [changes_of(["a", "b"], sequence=1), changes_of(["c"], removed=["a"], sequence=2)]
    for changes in batches:
        sink.write(changes)
    assert redis_client.exists("changes") == 0
    sink.flush()
    assert stored_changes(redis_client) == [changes_to_dict(changes) for changes in batches]
    assert [fields[b"sequence"] for _, fields in redis_client.xrange("changes")] == [b"1", b"2"]
    sink.flush()
    assert redis_client.xlen("changes") == 2


def test_redis_sink_close_delivers_queued_changes(redis_server, redis_client, changes_of):
    sink = RedisSink(redis_server.url, stream="changes")
    sink.write(changes_of(["a"]))
    sink.close()
    assert redis_client.xlen("changes") == 1


def test_redis_sink_with_many_bytes_delivers_without_flush(sink, redis_client, changes_of, monkeypatch):
    monkeypatch.setattr(redis_sinks, "MAX_QUEUED_BYTES", 10)
    sink.write(changes_of(["a"]))
    assert redis_client.xlen("changes") == 1


def test_redis_sink_with_maxlen_trims_stream(redis_server, redis_client, changes_of):
    with closing(RedisSink(redis_server.url, stream="changes", maxlen=100)) as sink:
        for sequence in range(1, 401):
            sink.write(changes_of(["a"], sequence=sequence))
    assert 100 <= redis_client.xlen("changes") < 300


def test_redis_sink_after_lost_connection_delivers_again(sink, redis_client, changes_of, monkeypatch):
    execute, failures = redis.client.Pipeline.execute, iter([True, True, False])

    def fail_twice(pipeline, *arguments):
        if next(failures):
            lose_connection()
        return execute(pipeline, *arguments)

    monkeypatch.setattr(redis.client.Pipeline, "execute", fail_twice)
    sink.write(changes_of(["a"]))
    sink.flush()
    assert redis_client.xlen("changes") == 1


def test_redis_sink_of_unreachable_server_keeps_changes_and_raises(changes_of):
    sink = RedisSink(UNREACHABLE_URL, stream="changes", patience=0.1)
    sink.write(changes_of(["a"]))
    for deliver in (sink.flush, sink.flush, sink.close):
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/0/changes has not answered for 0\.1 s"):
            deliver()


def test_redis_sink_idle_flush_raises_only_after_patience(sink, monkeypatch):
    monkeypatch.setattr(redis.Redis, "ping", lose_connection)
    sink.flush()
    impatient = RedisSink(UNREACHABLE_URL, stream="changes", patience=0)
    with closing(impatient), pytest.raises(UnreachableError, match="has not answered for 0 s"):
        impatient.flush()


def test_redis_sink_with_denied_access_raises_at_once(redis_server, redis_client, changes_of):
    redis_client.acl_setuser("writer", enabled=True, passwords=["+secret"])
    try:
        sink = RedisSink(redis_server.url.replace("://", "://writer:wrong@"), stream="changes", patience=60)
        sink.write(changes_of(["a"]))
        with pytest.raises(UnreachableError, match="denied access"):
            sink.flush()
    finally:
        redis_client.acl_deluser("writer")


def test_redis_dead_letters_record_stores_fields_at_once(redis_server, redis_client):
    with closing(RedisDeadLetters(redis_server.url, stream="dead")) as dead_letters:
        dead_letters.record("edges", BadMessage("\ud800", "entry 1", "expected JSON"))
        ((_, fields),) = redis_client.xrange("dead")
    assert fields == {
        b"source": b"edges",
        b"where": b"entry 1",
        b"reason": b"expected JSON",
        b"message": b"\\ud800",
    }
