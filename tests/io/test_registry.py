from __future__ import annotations

from contextlib import closing

import pandas as pd
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import InvalidValueError
from ripplevec.io import registry
from ripplevec.io.registry import create_for_broker, dead_letters_to, parse_broker_address, sink_to, stream_from
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink, StdoutSink
from ripplevec.io.sinks.kafka import KafkaDeadLetters, KafkaSink
from ripplevec.io.sinks.lance import LanceSink
from ripplevec.io.sinks.parquet import ParquetSink
from ripplevec.io.sinks.redis import RedisDeadLetters, RedisSink
from ripplevec.io.sources.files import FileSource
from ripplevec.io.sources.frames import FrameSource
from ripplevec.io.sources.kafka import KafkaSource
from ripplevec.io.sources.redis import RedisSource
from ripplevec.io.sources.stdin import StdinSource

REDIS, KAFKA = "redis://me:secret@127.0.0.1:7/1?stream=s", "kafka://127.0.0.1:1/t"


def test_stream_from_path_stdin_or_frame_creates_matching_source(tmp_path):
    assert isinstance(stream_from("-", fixed=True), StdinSource)
    assert isinstance(stream_from(pd.DataFrame({"src": [1], "dst": [2]}), name="mine"), FrameSource)
    for path in (tmp_path, str(tmp_path)):
        assert isinstance(stream_from(path, follow=True, ids="str"), FileSource)


def read_ids(source):
    source.open(None)
    with closing(source):
        batch = source.read(0).batch
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))


@pytest.mark.parametrize(
    ("address", "options", "expected"),
    [
        ("e.csv?header=no", {}, ("hero1", "hero2")),
        ("e.csv?header=true", {}, ("ann", "bob")),
        ("e.csv?src=hero2&dst=hero1", {}, ("bob", "ann")),
        ("e.csv?header=yes", {"header": False}, ("hero1", "hero2")),
        ("e.csv?batch_size=1&src=2&dst=1&header=no", {}, ("hero2", "hero1")),
        ("quiz?.csv?header=no", {}, ("u", "v")),
        ("quiz?.csv?src=v&dst=u", {}, ("y", "x")),
        ("a?b=c", {}, ("q", "r")),
    ],
)
def test_stream_from_file_address_takes_options_from_its_query(monkeypatch, tmp_path, address, options, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("hero1,hero2\nann,bob\nbob,cat\n")
    (tmp_path / "quiz?.csv").write_text("u,v\nx,y\ny,x\n")
    (tmp_path / "a?b=c").write_text("q,r\nr,s\n")
    assert read_ids(stream_from(address, **options))[0] == expected


def test_stream_from_file_whose_name_contains_a_question_mark_reads_it(tmp_path):
    for name in ("quiz?.csv", "e.csv?src=a"):
        path = tmp_path / name
        path.write_text("q,r\nr,s\n")
        for where in (path, str(path)):
            assert read_ids(stream_from(where)) == [("q", "r"), ("r", "s")]
            assert stream_from(where).name == f"file:{path}"


def test_stream_from_file_address_names_the_source_by_its_path(tmp_path):
    assert stream_from(f"{tmp_path}/e.csv?src=a&dst=b").name == f"file:{tmp_path}/e.csv"
    assert stream_from(f"{tmp_path}/e.csv?name=mine").name == "mine"


def test_stream_from_stdin_address_takes_options_from_its_query():
    source = stream_from("-?header=yes&replayed=no&name=pipe")
    assert (type(source), source.name) == (StdinSource, "pipe")


def create_with_recording_factories(address, **options):
    """Return the arguments and options with which the factory for the broker of an address is called."""

    def redis_factory(url, *, stream, group=None, consumer=None, batch_size=None, fixed=None, claim_idle=None):
        return url, {key: value for key, value in locals().items() if value is not None and key != "url"}

    def kafka_factory(servers, topic, *, config, group=None, fixed=None):
        return servers, topic, config, {"group": group, "fixed": fixed}

    return create_for_broker(parse_broker_address(address), [redis_factory, kafka_factory], options)


def test_create_for_broker_splits_redis_query_into_options_and_client_settings():
    query = "&group=g&consumer=c&batch_size=5&fixed=yes&claim_idle=2.5&health_check_interval=3"
    url, options = create_with_recording_factories(REDIS + query)
    assert url == "redis://me:secret@127.0.0.1:7/1?health_check_interval=3"
    expected = {"stream": "s", "group": "g", "consumer": "c", "batch_size": 5, "fixed": True, "claim_idle": 2.5}
    assert options == expected


def test_create_for_broker_argument_overrides_address():
    _, options = create_with_recording_factories(REDIS + "&batch_size=5", batch_size=6)
    assert options["batch_size"] == 6


def test_create_for_broker_passes_dotted_kafka_settings_as_config():
    address = "kafka://127.0.0.1:1,127.0.0.1:2/a%20b?group=g&fixed=0&client.id=me"
    assert create_with_recording_factories(address) == (
        "127.0.0.1:1,127.0.0.1:2",
        "a b",
        {"client.id": "me"},
        {"group": "g", "fixed": False},
    )


def test_stream_from_redis_address_creates_source_without_credentials_in_name():
    source = stream_from(REDIS + "&group=g&health_check_interval=3")
    assert isinstance(source, RedisSource)
    assert source.name == "redis://127.0.0.1:7/1/s"
    assert stream_from("redis://127.0.0.1:7", stream="other").name == "redis://127.0.0.1:7/0/other"


def test_stream_from_kafka_address_passes_dotted_settings_to_library():
    source = stream_from("kafka://127.0.0.1:1,127.0.0.1:2/a%20b?group=g&fixed=0&client.id=me")
    assert isinstance(source, KafkaSource)
    assert source.name == "kafka://127.0.0.1:1,127.0.0.1:2/a b"
    source.close()
    with pytest.raises(InvalidValueError, match=r"no\.such\.setting"):
        stream_from(KAFKA + "?no.such.setting=1")


def test_sink_to_creates_sink_for_path_or_address(tmp_path):
    sinks = [sink_to("-"), sink_to(tmp_path / "c.jsonl"), sink_to(tmp_path / "folder"), sink_to(tmp_path)]
    assert [type(sink) for sink in sinks] == [StdoutSink, JsonlSink, ParquetSink, ParquetSink]
    sinks += [sink_to(REDIS + "&maxlen=9"), sink_to(KAFKA), sink_to(f"lancedb://{tmp_path}/store?table=t")]
    assert [type(sink) for sink in sinks[4:]] == [RedisSink, KafkaSink, LanceSink]
    for sink in sinks:
        sink.close()


def test_dead_letters_to_creates_sink_for_path_or_address(tmp_path):
    sinks = [dead_letters_to(tmp_path / "dead.jsonl"), dead_letters_to(REDIS), dead_letters_to(KAFKA)]
    assert [type(sink) for sink in sinks] == [JsonlDeadLetters, RedisDeadLetters, KafkaDeadLetters]
    for sink in sinks:
        sink.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stream_from("amqp://here/queue"), "redis://…, kafka://… or a path, got 'amqp://…'"),
        (lambda: sink_to("amqp://here"), "kafka://…, lancedb://…, postgresql://…, qdrant://… or a path, got"),
        (lambda: stream_from("redis://127.0.0.1:7/0"), "stream="),
        (lambda: stream_from("kafka://127.0.0.1:1"), "kafka://host:port/topic"),
        (lambda: stream_from(REDIS + "&batch_size=many"), "batch_size: expected a number"),
        (lambda: stream_from(REDIS + "&fixed=perhaps"), "fixed: expected yes or no"),
        (lambda: stream_from(KAFKA + "?color=red"), "KafkaSource: expected options .*, got 'color'"),
        (lambda: stream_from("edges.csv", color="red"), "FileSource: expected options .*follow.*, got 'color'"),
        (lambda: stream_from("edges.csv", on_error="skip"), "got 'on_error'"),
        (lambda: stream_from("edges.csv?color=red"), "FileSource: expected options .*follow.*, got 'color'"),
        (lambda: stream_from("edges.csv?header=perhaps"), "header: expected yes or no, got 'perhaps'"),
        (lambda: stream_from([(1, 2)]), "a pandas, polars or pyarrow table"),
        (lambda: sink_to("-", follow=True), "StdoutSink: expected options none, got 'follow'"),
        (lambda: sink_to("lancedb://?table=t"), "address: expected lancedb://DIRECTORY"),
        (lambda: sink_to("lancedb://store?color=red"), "LanceSink: expected options table, got 'color'"),
        (lambda: sink_to("qdrant://?collection=c"), "qdrant://HOST:PORT"),
        (lambda: sink_to("qdrant:///nowhere?color=red"), "QdrantSink: expected options .*, got 'color'"),
        (lambda: sink_to("postgresql://?table=t"), "postgresql://USER@HOST/DATABASE"),
        (lambda: sink_to("changes.csv"), r"\.jsonl, \.ndjson, no suffix \(a folder for Parquet\)"),
        (lambda: dead_letters_to("dead"), r"a path that ends in \.jsonl"),
    ],
)
def test_registry_with_invalid_address_or_option_raises(make, message):
    with pytest.raises(InvalidValueError, match=message):
        make()


def test_stream_from_registered_scheme_calls_its_factory(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setitem(registry.SOURCES, "own", lambda address, *, pace=1: calls.append((address, pace)) or "source")
    assert stream_from("own://there", pace=3) == "source"
    assert calls == [("own://there", 3)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    assert isinstance(stream_from("own"), FileSource)
    with pytest.raises(InvalidValueError, match="expected options pace, got 'speed'"):
        stream_from("own://there", speed=3)
