"""Redis source with a real server: positions, acknowledgement, claimed entries, errors."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing

import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.sources.redis import RedisSource, entry_sort_key

redis = pytest.importorskip("redis", reason="not installed: pip install '.[redis]'")


@pytest.fixture
def open_source(redis_server, redis_client):
    """Return a function that opens a source at a position that went through JSON, as a saved one does."""
    with ExitStack() as sources:

        def open_at(position=None, **options):
            options = {"stream": "edges", "batch_size": 3, **options}
            source = sources.enter_context(closing(RedisSource(redis_server.url, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield open_at


def add_edges(client, first, last):
    """Add an edge from each number to a hub; return the entry ids."""
    return [client.xadd("edges", {"src": str(number), "dst": "hub"}).decode() for number in range(first, last)]


def source_numbers(read):
    return [int(name) for name in ids_to_list(read.batch.src)]


def pending_entries(client):
    return [row["message_id"].decode() for row in client.xpending_range("edges", "ripplevec", "-", "+", 1000)]


def test_redis_source_position_names_last_returned_entry(redis_client, open_source):
    entry_ids = add_edges(redis_client, 0, 5)
    source = open_source()
    first, second = source.read(0), source.read(0)
    assert [first.position, second.position] == [
        {"last": entry_ids[2], "late": []},
        {"last": entry_ids[4], "late": []},
    ]
    assert (source_numbers(first), source_numbers(second)) == ([0, 1, 2], [3, 4])
    assert source.read(0) is None


def test_redis_source_opened_at_position_returns_later_entries_only(redis_client, open_source):
    entry_ids = add_edges(redis_client, 0, 5)
    assert source_numbers(open_source({"last": entry_ids[3], "late": []}).read(0)) == [4]
    assert source_numbers(open_source(None).read(0)) == [0, 1, 2]


def test_redis_source_acknowledge_clears_pending_entries_up_to_position(redis_client, open_source):
    entry_ids = add_edges(redis_client, 0, 6)
    source = open_source()
    first, second = source.read(0), source.read(0)
    assert pending_entries(redis_client) == entry_ids
    source.acknowledge(first.position)
    assert pending_entries(redis_client) == entry_ids[3:]
    source.acknowledge(second.position)
    assert pending_entries(redis_client) == []


def test_redis_source_acknowledge_during_outage_is_repeated_later(redis_client, open_source, monkeypatch, caplog):
    add_edges(redis_client, 0, 6)
    source = open_source()
    first, second = source.read(0), source.read(0)

    def lose_connection(*arguments):
        raise redis.ConnectionError("connection lost")

    with monkeypatch.context() as outage:
        outage.setattr(redis.Redis, "xack", lose_connection)
        source.acknowledge(first.position)
    assert len(pending_entries(redis_client)) == 6
    assert f"broker unreachable, retrying broker={source.name} error=connection lost" in caplog.text
    source.acknowledge(second.position)
    assert pending_entries(redis_client) == []


def test_redis_source_open_acknowledges_entries_applied_before_crash(redis_client, open_source):
    entry_ids = add_edges(redis_client, 0, 6)
    source = open_source()
    applied = source.read(0).position
    source.read(0)  # delivered, but not saved before the crash
    again = open_source(applied)
    assert pending_entries(redis_client) == entry_ids[3:]
    assert source_numbers(again.read(0)) == [3, 4, 5]


def test_redis_source_with_fixed_returns_full_reads_only(redis_client, open_source):
    add_edges(redis_client, 0, 4)
    source = open_source(fixed=True)
    assert source_numbers(source.read(0)) == [0, 1, 2]
    assert source.read(0.01) is None
    add_edges(redis_client, 4, 6)
    assert source_numbers(source.read(1)) == [3, 4, 5]


def test_redis_source_claims_abandoned_entries_and_lists_them_as_late(redis_client, open_source):
    source = open_source(claim_idle=0)
    entry_ids = add_edges(redis_client, 0, 2)
    redis_client.xreadgroup("ripplevec", "other", {"edges": ">"}, count=1)
    claimed, next_read = source.read(0), source.read(0)
    assert (source_numbers(claimed), claimed.position) == ([0], {"last": "0-0", "late": [entry_ids[0]]})
    assert (source_numbers(next_read), next_read.position["last"]) == ([1], entry_ids[1])
    source.acknowledge(next_read.position)
    assert pending_entries(redis_client) == []
    add_edges(redis_client, 2, 3)
    assert source.read(0).position["late"] == []


def test_redis_source_opened_with_late_entry_does_not_return_it_again(redis_client, open_source):
    entry_ids = add_edges(redis_client, 0, 3)
    source = open_source({"last": "0-0", "late": [entry_ids[1]]})
    assert source_numbers(source.read(0)) == [0, 2]


def test_redis_source_with_bad_entry_reports_its_id_and_reason(redis_client, open_source):
    entry_id = redis_client.xadd("edges", {"data": json.dumps({"src": 1, "dst": 2, "color": 3})}).decode()
    add_edges(redis_client, 7, 8)
    read = open_source().read(0)
    (bad,) = read.bad_messages
    assert source_numbers(read) == [7]
    assert bad.where.endswith(f"/0/edges, entry {entry_id}")
    assert "not 'color'" in bad.reason


def test_redis_source_with_extra_field_beside_data_reports_bad_message(redis_client, open_source):
    redis_client.xadd("edges", {"data": "[1, 2]", "color": "red"})
    (bad,) = open_source().read(0).bad_messages
    assert "or data alone, got ['data', 'color']" in bad.reason


def test_redis_source_with_ids_int_returns_integers(redis_client, open_source):
    redis_client.xadd("edges", {"src": "1", "dst": "2"})
    assert ids_to_list(open_source(ids="int").read(0).batch.src) == [1]


def test_redis_source_of_other_data_type_raises_format_error(redis_client, open_source):
    redis_client.set("text", "x")
    with pytest.raises(FormatError, match=r"/0/text: .*WRONGTYPE"):
        open_source(stream="text")


def test_redis_source_with_denied_access_raises_at_once(redis_server, redis_client):
    redis_client.acl_setuser("reader", enabled=True, passwords=["+secret"])
    try:
        source = RedisSource(redis_server.url.replace("://", "://reader:wrong@"), stream="edges", patience=60)
        with (
            closing(source),
            pytest.raises(UnreachableError, match=r"denied access: .*Check the user and the password"),
        ):
            source.open(None)
    finally:
        redis_client.acl_deluser("reader")


def test_redis_source_of_unreachable_server_raises_after_patience():
    source = RedisSource("redis://127.0.0.1:1/0", stream="edges", patience=0.1)
    with closing(source), pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/0/edges has not answered for 0\.1 s"):
        source.open(None)


def test_redis_source_read_during_outage_returns_none_and_recovers(redis_client, open_source, monkeypatch):
    add_edges(redis_client, 0, 2)
    source = open_source()

    def lose_connection(*arguments, **options):
        raise redis.ConnectionError("connection lost")

    with monkeypatch.context() as outage:
        outage.setattr(redis.Redis, "xreadgroup", lose_connection)
        assert source.read(0) is None
    assert source_numbers(source.read(1)) == [0, 1]


@pytest.mark.parametrize("batch_size", [0, -1, 1.5])
def test_redis_source_with_invalid_batch_size_raises(batch_size):
    with pytest.raises(InvalidValueError, match="batch_size: expected an integer of at least 1"):
        RedisSource("redis://127.0.0.1:1/0", stream="edges", batch_size=batch_size)


def test_entry_sort_key_compares_numbers():
    entry_ids = ["10-0", "9-10", "9-9", "0-1"]
    assert sorted(entry_ids, key=entry_sort_key) == ["0-1", "9-9", "9-10", "10-0"]
