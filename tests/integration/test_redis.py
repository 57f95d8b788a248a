"""Redis Streams on a real server: order, restarts, lost connections, claimed entries, bad messages."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, closing
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.batch import id_column, ids_to_list
from ripplevec.changes import Changes
from ripplevec.errors import FormatError
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.redis import RedisDeadLetters, RedisSink
from ripplevec.io.sources import redis as redis_source
from ripplevec.io.sources.redis import RedisSource

redis = pytest.importorskip("redis", reason="the Python package is not installed: pip install '.[redis]'")


@pytest.fixture
def open_source(redis_server):
    with ExitStack() as sources:

        def open_at(position=None, **options):
            options = {"stream": "edges", "batch_size": 4, "patience": 60, **options}
            source = sources.enter_context(closing(RedisSource(redis_server.url, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield open_at


def add_edges(client, first, last):
    for number in range(first, last):
        client.xadd("edges", {"src": f"v{number}", "dst": "hub"})


def edge_numbers(*reads):
    return [int(name[1:]) for read in reads for name in ids_to_list(read.batch.src)]


@pytest.fixture
def make_pending_idle(redis_client, monkeypatch):
    """Return a function that lets an hour pass for pending entries and sources, which then claim idle entries."""
    clock = SimpleNamespace(passed=0, sleep=time.sleep, monotonic=lambda: time.monotonic() + clock.passed)
    monkeypatch.setattr(redis_source, "time", clock)

    def pass_an_hour():
        for entry in redis_client.xpending_range("edges", "ripplevec", "-", "+", 1000):
            entries = [entry["message_id"]]
            redis_client.xclaim("edges", "ripplevec", entry["consumer"], 0, entries, idle=3_600_000, justid=True)
        clock.passed += 3_600

    return pass_an_hour


def read_all(source, acknowledge=True):
    reads = []
    while (read := source.read(0)) is not None:
        reads.append(read)
        if acknowledge:
            source.acknowledge(read.position)
    return reads


def count_pending(client):
    return client.xpending("edges", "ripplevec")["pending"]


def test_redis_source_resumes_at_any_position(redis_client, open_source):
    add_edges(redis_client, 0, 11)
    reads = read_all(open_source())
    assert [edge_numbers(read) for read in reads] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    for number, read in enumerate(reads):
        again = read_all(open_source(read.position))
        assert [edge_numbers(one) for one in again] == [edge_numbers(one) for one in reads[number + 1 :]]
        assert [one.position for one in again] == [one.position for one in reads[number + 1 :]]
    assert edge_numbers(*read_all(open_source())) == list(range(11))  # a new state starts at the beginning


def test_redis_source_entries_are_pending_until_acknowledged(redis_client, open_source):
    add_edges(redis_client, 0, 8)
    source = open_source()
    first, second = source.read(0), source.read(0)
    assert count_pending(redis_client) == 8
    source.acknowledge(first.position)
    assert count_pending(redis_client) == 4
    source.acknowledge(second.position)
    assert count_pending(redis_client) == 0


def test_redis_source_crash_before_acknowledgment_repeats_unsaved_reads(redis_client, open_source):
    add_edges(redis_client, 0, 12)
    source = open_source()
    durable, lost = source.read(0), source.read(0)  # neither is acknowledged, but the first is in the journal
    assert edge_numbers(lost) == [4, 5, 6, 7]
    again = open_source(durable.position, consumer="ripplevec")
    assert count_pending(redis_client) == 4  # opening acknowledges entries in the journal
    assert [edge_numbers(read) for read in read_all(again)] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert count_pending(redis_client) == 0


def test_redis_source_fixed_reads_wait_until_full(redis_client, open_source):
    add_edges(redis_client, 0, 6)
    source = open_source(fixed=True)
    assert [edge_numbers(read) for read in read_all(source)] == [[0, 1, 2, 3]]
    add_edges(redis_client, 6, 7)
    assert source.read(0.05) is None
    add_edges(redis_client, 7, 9)
    assert [edge_numbers(read) for read in read_all(source)] == [[4, 5, 6, 7]]


def test_redis_source_read_waits_for_entries(redis_client, open_source):
    source = open_source()
    later = threading.Timer(0.1, add_edges, (redis_client, 0, 2))
    later.start()
    got = []
    while len(got) < 2:
        got += edge_numbers(source.read(60))
    later.join()
    assert got == [0, 1]
    assert source.read(0.01) is None


def test_redis_source_takes_over_entries_of_dead_consumer_in_order(redis_client, open_source):
    add_edges(redis_client, 0, 6)
    redis_client.xgroup_create("edges", "ripplevec", 0)
    redis_client.xreadgroup("ripplevec", "dead", {"edges": ">"}, count=3)
    assert edge_numbers(*read_all(open_source())) == list(range(6))
    assert count_pending(redis_client) == 0


def test_redis_source_idle_entries_of_other_consumer_are_claimed_once(redis_client, open_source, make_pending_idle):
    source = open_source()
    add_edges(redis_client, 0, 3)
    redis_client.xreadgroup("ripplevec", "other", {"edges": ">"}, count=2)
    redis_client.xdel("edges", redis_client.xrange("edges")[0][0])
    before = source.read(0)
    assert edge_numbers(before) == [2]
    make_pending_idle()
    claimed = source.read(0)
    assert edge_numbers(claimed) == [1]  # the other entry was deleted
    assert claimed.position["last"] == before.position["last"]
    assert read_all(source) == []
    again = open_source(before.position)  # after a crash before it was saved, the entry is read again
    make_pending_idle()
    assert edge_numbers(*read_all(again, acknowledge=False)) == [1]
    assert count_pending(redis_client) == 1
    once = open_source(claimed.position)  # after a crash once it was saved, it is not
    make_pending_idle()
    assert read_all(once) == []
    assert count_pending(redis_client) == 0
    add_edges(redis_client, 3, 4)
    (read,) = read_all(once)
    source.acknowledge(read.position)
    add_edges(redis_client, 4, 5)
    assert once.read(0).position["late"] == []


def test_redis_source_claimed_entries_are_not_read_again(redis_client, open_source, make_pending_idle):
    source = open_source()
    add_edges(redis_client, 0, 2)
    redis_client.xreadgroup("ripplevec", "other", {"edges": ">"}, count=2)
    make_pending_idle()
    claimed = source.read(0)
    assert (edge_numbers(claimed), claimed.position["last"]) == ([0, 1], "0-0")
    source.acknowledge(claimed.position)
    add_edges(redis_client, 2, 4)
    again = open_source(claimed.position)
    reads = read_all(again)
    assert edge_numbers(*reads) == [2, 3]
    add_edges(redis_client, 4, 5)
    assert again.read(0).position["late"] == []


def test_redis_source_survives_broker_restart(redis_server, redis_client, open_source, caplog):
    add_edges(redis_client, 0, 6)
    source = open_source(fixed=True)
    first = source.read(0)
    assert source.read(0) is None  # two entries wait in the source for two more
    redis_server.stop()
    try:
        assert source.read(0.2) is None
        source.acknowledge(first.position)
    finally:
        redis_server.start()
    add_edges(redis_client, 6, 12)
    got = [source.read(60), source.read(60)]
    assert edge_numbers(first, *got) == list(range(12))
    assert caplog.text.count("broker unreachable") == 1
    source.acknowledge(got[-1].position)
    assert count_pending(redis_client) == 0


def test_redis_source_lost_responses_lose_no_entries(redis_client, open_source, monkeypatch):
    add_edges(redis_client, 0, 30)
    source, calls = open_source(batch_size=3), iter(range(1000))
    xreadgroup = redis.Redis.xreadgroup

    def xreadgroup_with_losses(*arguments, **options):
        answer = xreadgroup(*arguments, **options)
        if next(calls) % 2:
            raise redis.ConnectionError("connection lost")
        return answer

    monkeypatch.setattr(redis.Redis, "xreadgroup", xreadgroup_with_losses)
    got = []
    while len(got) < 30:
        read = source.read(5)
        source.acknowledge(read.position)
        got += edge_numbers(read)
    assert got == list(range(30))
    assert count_pending(redis_client) == 0
    assert next(calls) > 10  # half of the responses were lost


def test_redis_source_deleted_stream_starts_again(redis_client, open_source):
    add_edges(redis_client, 0, 2)
    source = open_source()
    assert edge_numbers(source.read(0)) == [0, 1]
    redis_client.delete("edges")
    assert source.read(0.01) is None
    add_edges(redis_client, 2, 4)
    assert edge_numbers(source.read(5)) == [2, 3]


def encode_arrow(**columns):
    return encode_arrow_stream(pa.table(columns))


def test_redis_source_decodes_payloads_and_reports_bad_messages(redis_client, open_source):
    entries = [
        {"src": "a", "dst": "b", "weight": "2", "op": "add", "time": "5"},
        {"data": '{"arrivals": [{"id": "c", "neighbors": ["a"]}], "remove_edges": [["a", "b"]]}'},
        {"data": encode_arrow(src=["d"], dst=["a"])},
        {"color": "red"},
        {"data": "[" * 100_000},
    ]
    keys = [redis_client.xadd("edges", fields).decode() for fields in entries]
    read = open_source(batch_size=9).read(0)
    assert ids_to_list(read.batch.src) == ["a", "c", "a", "d"]
    assert read.batch.op.tolist() == [0, 0, 1, 0]
    assert [one.where.split()[-1] for one in read.bad_messages] == keys[3:]
    assert [one.reason.split(",")[0] for one in read.bad_messages] == [
        "expected fields src",
        "expected JSON of moderate depth",
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([b"src", b"dst", b"op", b"data", b"\xff"]), st.binary(max_size=9), min_size=1))
def test_redis_source_any_entry_is_events_or_bad_message(redis_client, open_source, fields):
    redis_client.delete("edges")
    redis_client.xadd("edges", fields)
    read = open_source().read(0)
    assert len(read.batch) or read.bad_messages or b"data" in fields


def test_redis_source_permanent_errors_raise_at_once(redis_server, redis_client, open_source):
    redis_client.set("text", "x")
    with pytest.raises(FormatError, match="WRONGTYPE"):
        open_source(stream="text")
    with pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s"):
        RedisSource("redis://127.0.0.1:1/0", stream="edges", patience=0.1).open(None)
    redis_client.config_set("requirepass", "secret")
    try:
        with pytest.raises(UnreachableError, match="denied access"):
            RedisSource(redis_server.url, stream="edges", patience=60).open(None)
    finally:
        redis_client.execute_command("AUTH", "secret")
        redis_client.config_set("requirepass", "")


def test_redis_source_name_contains_no_password():
    source = RedisSource("redis://me:secret@127.0.0.1:7/3", stream="edges")
    assert source.name == "redis://127.0.0.1:7/3/edges"
    assert RedisSource("unix:///tmp/redis.sock", stream="edges").name == "redis:///tmp/redis.sock/0/edges"
    assert RedisSource("redis://127.0.0.1:7", stream="edges", name="mine").name == "mine"


def make_changes(sequence, count=2):
    vectors = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
    ids = id_column([f"n{number}" for number in range(count)])
    return Changes(ids, np.arange(count), lambda rows: vectors, np.ones(count, bool), ["removed"], sequence, False)


def test_redis_sink_writes_changes_as_entries(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes")
    sink.write(make_changes(1))
    assert redis_client.exists("changes") == 0
    sink.write(make_changes(2))
    sink.flush()
    assert [json.loads(fields[b"data"]) for _, fields in redis_client.xrange("changes")] == [
        changes_to_dict(make_changes(1)),
        changes_to_dict(make_changes(2)),
    ]
    assert [fields[b"sequence"] for _, fields in redis_client.xrange("changes")] == [b"1", b"2"]
    sink.write(make_changes(3))
    sink.close()
    assert redis_client.xlen("changes") == 3


def test_redis_sink_maxlen_bounds_stream(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes", maxlen=100)
    for sequence in range(1000):
        sink.write(make_changes(sequence))
    sink.close()
    assert 100 <= redis_client.xlen("changes") < 300


def test_redis_sink_large_changes_are_sent_without_flush(redis_server, redis_client, monkeypatch):
    monkeypatch.setattr("ripplevec.io.sinks.redis.MAX_QUEUED_BYTES", 100)
    sink = RedisSink(redis_server.url, stream="changes")
    sink.write(make_changes(1, 20))
    assert redis_client.xlen("changes") == 1
    sink.close()


def test_redis_sink_flush_waits_for_broker(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes", patience=30)
    hasty = RedisSink(redis_server.url, stream="changes", patience=0.1)
    sink.write(make_changes(1))
    hasty.write(make_changes(2))
    redis_server.stop()
    restart = threading.Timer(0.3, redis_server.start)
    try:
        with pytest.raises(UnreachableError):
            hasty.flush()
    finally:
        restart.start()
    sink.flush()
    restart.join()
    hasty.close()
    sink.close()
    assert [fields[b"sequence"] for _, fields in redis_client.xrange("changes")] == [b"1", b"2"]


def test_redis_dead_letters_record_bad_message(redis_server, redis_client):
    letters = RedisDeadLetters(redis_server.url, stream="dead")
    letters.record("redis", BadMessage("\ud800", "entry 1", "no"))
    letters.close()
    ((_, fields),) = redis_client.xrange("dead")
    assert fields == {b"source": b"redis", b"where": b"entry 1", b"reason": b"no", b"message": b"\\ud800"}
