"""Redis Streams against a real server: order, restarts, lost connections, what others left, what holds no events."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack, closing

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.batch import ids_to_list, id_column
from ripplevec.changes import Changes
from ripplevec.errors import FormatError
from ripplevec.io.arrow_ipc import encode_arrow_stream
from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.retry_policy import UnreachableError
from ripplevec.io.sinks.redis import RedisDeadLetters, RedisSink
from ripplevec.io.sources.redis import RedisSource

redis = pytest.importorskip("redis", reason="the Python package is not installed: pip install 'ripplevec[redis]'")


@pytest.fixture
def begun(redis_server):
    with ExitStack() as sources:

        def make(position=None, **options):
            options = {"stream": "edges", "batch_size": 4, "patience": 60, **options}
            source = sources.enter_context(closing(RedisSource(redis_server.url, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield make


def fill(client, first, last):
    for number in range(first, last):
        client.xadd("edges", {"src": f"v{number}", "dst": "hub"})


def numbers(*reads):
    return [int(name[1:]) for read in reads for name in ids_to_list(read.batch.src)]


def leave_for_long(client, source):
    """Have everything that is pending look as if nobody had touched it for an hour, and the source look at it now."""
    for entry in client.xpending_range("edges", "ripplevec", "-", "+", 1000):
        client.xclaim("edges", "ripplevec", entry["consumer"], 0, [entry["message_id"]], idle=3_600_000, justid=True)
    source._next_claim = 0.0


def drain(source, acknowledge=True):
    reads = []
    while (read := source.read(0)) is not None:
        reads.append(read)
        if acknowledge:
            source.acknowledge(read.position)
    return reads


def pending(client):
    return client.xpending("edges", "ripplevec")["pending"]


def test_reads_of_one_size_from_any_position(redis_client, begun):
    fill(redis_client, 0, 11)
    reads = drain(begun())
    assert [numbers(read) for read in reads] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    for number, read in enumerate(reads):
        again = drain(begun(read.position))
        assert [numbers(one) for one in again] == [numbers(one) for one in reads[number + 1 :]]
        assert [one.position for one in again] == [one.position for one in reads[number + 1 :]]
    assert numbers(*drain(begun())) == list(range(11))  # a new state begins at the beginning


def test_entries_are_pending_until_they_are_durable(redis_client, begun):
    fill(redis_client, 0, 8)
    source = begun()
    first, second = source.read(0), source.read(0)
    assert pending(redis_client) == 8
    source.acknowledge(first.position)
    assert pending(redis_client) == 4
    source.acknowledge(second.position)
    assert pending(redis_client) == 0


def test_a_crash_before_the_durable_point_and_one_before_the_acknowledgement(redis_client, begun):
    fill(redis_client, 0, 12)
    source = begun()
    durable, lost = source.read(0), source.read(0)  # neither is acknowledged, one is in our journal
    assert numbers(lost) == [4, 5, 6, 7]
    again = begun(durable.position, consumer="ripplevec")
    assert pending(redis_client) == 4  # what is in the journal has been acknowledged
    assert [numbers(read) for read in drain(again)] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert pending(redis_client) == 0


def test_fixed_reads_wait_until_they_are_full(redis_client, begun):
    fill(redis_client, 0, 6)
    source = begun(fixed=True)
    assert [numbers(read) for read in drain(source)] == [[0, 1, 2, 3]]
    fill(redis_client, 6, 7)
    assert source.read(0.05) is None
    fill(redis_client, 7, 9)
    assert [numbers(read) for read in drain(source)] == [[4, 5, 6, 7]]


def test_waiting_for_entries(redis_client, begun):
    source = begun()
    later = threading.Timer(0.1, fill, (redis_client, 0, 2))
    later.start()
    got = []
    while len(got) < 2:
        got += numbers(source.read(60))
    later.join()
    assert got == [0, 1]
    assert source.read(0.01) is None


def test_what_a_dead_consumer_took_is_taken_over_in_order(redis_client, begun):
    fill(redis_client, 0, 6)
    redis_client.xgroup_create("edges", "ripplevec", 0)
    redis_client.xreadgroup("ripplevec", "dead", {"edges": ">"}, count=3)
    assert numbers(*drain(begun())) == list(range(6))
    assert pending(redis_client) == 0


def test_what_another_consumer_left_is_claimed_and_applied_once(redis_client, begun):
    source = begun()
    fill(redis_client, 0, 3)
    redis_client.xreadgroup("ripplevec", "other", {"edges": ">"}, count=2)
    redis_client.xdel("edges", redis_client.xrange("edges")[0][0])
    before = source.read(0)
    assert numbers(before) == [2]
    leave_for_long(redis_client, source)
    claimed = source.read(0)
    assert numbers(claimed) == [1]  # the other was deleted
    assert claimed.position["last"] == before.position["last"]
    assert drain(source) == []
    again = begun(before.position)  # a crash before the durable point: it comes again
    leave_for_long(redis_client, again)
    assert numbers(*drain(again, acknowledge=False)) == [1]
    assert pending(redis_client) == 1
    once = begun(claimed.position)  # a crash behind it: it does not
    leave_for_long(redis_client, once)
    assert drain(once) == []
    assert pending(redis_client) == 0
    fill(redis_client, 3, 4)
    (read,) = drain(once)
    source.acknowledge(read.position)
    fill(redis_client, 4, 5)
    assert once.read(0).position["late"] == []


def test_what_was_claimed_ahead_is_not_delivered_again(redis_client, begun):
    source = begun()
    fill(redis_client, 0, 2)
    redis_client.xreadgroup("ripplevec", "other", {"edges": ">"}, count=2)
    leave_for_long(redis_client, source)
    claimed = source.read(0)
    assert (numbers(claimed), claimed.position["last"]) == ([0, 1], "0-0")
    source.acknowledge(claimed.position)
    fill(redis_client, 2, 4)
    again = begun(claimed.position)
    reads = drain(again)
    assert numbers(*reads) == [2, 3]
    fill(redis_client, 4, 5)
    assert again.read(0).position["late"] == []


def test_the_broker_goes_away_and_comes_back(redis_server, redis_client, begun, caplog):
    fill(redis_client, 0, 6)
    source = begun(fixed=True)
    first = source.read(0)
    assert source.read(0) is None  # two entries wait here for two more
    redis_server.stop()
    try:
        assert source.read(0.2) is None
        source.acknowledge(first.position)
    finally:
        redis_server.start()
    fill(redis_client, 6, 12)
    got = [source.read(60), source.read(60)]
    assert numbers(first, *got) == list(range(12))
    assert caplog.text.count("broker unreachable") == 1
    source.acknowledge(got[-1].position)
    assert pending(redis_client) == 0


def test_answers_that_are_lost_on_the_way(redis_client, begun, monkeypatch):
    fill(redis_client, 0, 30)
    source, calls = begun(batch_size=3), iter(range(1000))
    ask = source._client.xreadgroup

    def lossy(*arguments, **options):
        answer = ask(*arguments, **options)
        if next(calls) % 2:
            raise redis.ConnectionError("cut off")
        return answer

    monkeypatch.setattr(source._client, "xreadgroup", lossy)
    got = []
    while len(got) < 30:
        read = source.read(5)
        source.acknowledge(read.position)
        got += numbers(read)
    assert got == list(range(30))
    assert pending(redis_client) == 0


def test_a_stream_that_is_deleted_begins_anew(redis_client, begun):
    fill(redis_client, 0, 2)
    source = begun()
    assert numbers(source.read(0)) == [0, 1]
    redis_client.delete("edges")
    assert source.read(0.01) is None
    fill(redis_client, 2, 4)
    assert numbers(source.read(5)) == [2, 3]


def arrow(**columns):
    return encode_arrow_stream(pa.table(columns))


def test_payloads_and_poison(redis_client, begun):
    entries = [
        {"src": "a", "dst": "b", "weight": "2", "op": "add", "time": "5"},
        {"data": '{"arrivals": [{"id": "c", "neighbors": ["a"]}], "remove_edges": [["a", "b"]]}'},
        {"data": arrow(src=["d"], dst=["a"])},
        {"color": "red"},
        {"data": "[" * 100_000},
    ]
    keys = [redis_client.xadd("edges", fields).decode() for fields in entries]
    read = begun(batch_size=9).read(0)
    assert ids_to_list(read.batch.src) == ["a", "c", "a", "d"]
    assert read.batch.op.tolist() == [0, 0, 1, 0]
    assert [one.where.split()[-1] for one in read.bad_messages] == keys[3:]
    assert [one.reason.split(",")[0] for one in read.bad_messages] == [
        "expected fields src",
        "expected JSON of moderate depth",
    ]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([b"src", b"dst", b"op", b"data", b"\xff"]), st.binary(max_size=9), min_size=1))
def test_any_entry_is_events_or_poison(redis_client, begun, fields):
    redis_client.delete("edges")
    redis_client.xadd("edges", fields)
    read = begun().read(0)
    assert len(read.batch) or read.bad_messages or b"data" in fields


def test_what_cannot_work_is_said_at_once(redis_server, redis_client, begun):
    redis_client.set("text", "x")
    with pytest.raises(FormatError, match="WRONGTYPE"):
        begun(stream="text")
    with pytest.raises(UnreachableError, match=r"has not answered for 0\.1 s"):
        RedisSource("redis://127.0.0.1:1/0", stream="edges", patience=0.1).open(None)
    redis_client.config_set("requirepass", "secret")
    try:
        with pytest.raises(UnreachableError, match="denied access"):
            RedisSource(redis_server.url, stream="edges", patience=60).open(None)
    finally:
        redis_client.execute_command("AUTH", "secret")
        redis_client.config_set("requirepass", "")


def test_names_hold_no_password():
    source = RedisSource("redis://me:secret@127.0.0.1:7/3", stream="edges")
    assert source.name == "redis://127.0.0.1:7/3/edges"
    assert RedisSource("unix:///tmp/redis.sock", stream="edges").name == "redis:///tmp/redis.sock/0/edges"
    assert RedisSource("redis://127.0.0.1:7", stream="edges", name="mine").name == "mine"


def changed(sequence, count=2):
    vectors = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
    names = id_column([f"n{number}" for number in range(count)])
    return Changes(names, np.arange(count), lambda rows: vectors, np.ones(count, bool), ["gone"], sequence, False)


def test_changes_as_entries(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes")
    sink.write(changed(1))
    assert redis_client.exists("changes") == 0
    sink.write(changed(2))
    sink.flush()
    assert [json.loads(fields[b"data"]) for _, fields in redis_client.xrange("changes")] == [
        changes_to_dict(changed(1)),
        changes_to_dict(changed(2)),
    ]
    assert [fields[b"sequence"] for _, fields in redis_client.xrange("changes")] == [b"1", b"2"]
    sink.write(changed(3))
    sink.close()
    assert redis_client.xlen("changes") == 3


def test_a_stream_of_bounded_length(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes", maxlen=100)
    for sequence in range(1000):
        sink.write(changed(sequence))
    sink.close()
    assert 100 <= redis_client.xlen("changes") < 300


def test_much_is_sent_without_a_flush(redis_server, redis_client, monkeypatch):
    monkeypatch.setattr("ripplevec.io.sinks.redis.MAX_QUEUED_BYTES", 100)
    sink = RedisSink(redis_server.url, stream="changes")
    sink.write(changed(1, 20))
    assert redis_client.xlen("changes") == 1
    sink.close()


def test_a_sink_waits_for_its_broker(redis_server, redis_client):
    sink = RedisSink(redis_server.url, stream="changes", patience=30)
    hasty = RedisSink(redis_server.url, stream="changes", patience=0.1)
    sink.write(changed(1))
    hasty.write(changed(2))
    redis_server.stop()
    back = threading.Timer(0.3, redis_server.start)
    try:
        with pytest.raises(UnreachableError):
            hasty.flush()
    finally:
        back.start()
    sink.flush()
    back.join()
    hasty.close()
    sink.close()
    assert [fields[b"sequence"] for _, fields in redis_client.xrange("changes")] == [b"1", b"2"]


def test_dead_letters(redis_server, redis_client):
    letters = RedisDeadLetters(redis_server.url, stream="dead")
    letters.record("redis", BadMessage("\ud800", "entry 1", "no"))
    letters.close()
    ((_, fields),) = redis_client.xrange("dead")
    assert fields == {b"source": b"redis", b"where": b"entry 1", b"reason": b"no", b"message": b"\\ud800"}
