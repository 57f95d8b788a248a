"""A replay into brokers: what comes out of them is what went in."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ripplevec.batch import ids_to_list
from ripplevec.cli import main
from ripplevec.io.protocols import EventSource
from ripplevec.io.registry import stream_from
from ripplevec.replay.builtin_stream import generate_stream

VERTICES, EVENTS = 80, 120


def replay(to: str) -> dict[str, object]:
    graph = ["--built-in", "--vertices", str(VERTICES), "--limit", str(EVENTS), "--at-once", "20"]
    result = CliRunner().invoke(main.app, ["replay", *graph, "--speed", "1e6", "--to", to, "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def received(source: EventSource) -> list[tuple[object, object]]:
    edges: list[tuple[object, object]] = []
    with closing(source):
        source.open(None)
        while len(edges) < EVENTS:
            read = source.read(30)
            assert read is not None, f"{len(edges)} of {EVENTS} have come"
            assert not read.bad_messages
            edges += zip(ids_to_list(read.batch.src), ids_to_list(read.batch.dst), strict=True)
    return edges


def played() -> list[tuple[object, object]]:
    batch, _ = generate_stream(VERTICES)
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))[:EVENTS]


def test_into_redis(redis_server: object, redis_client: object) -> None:
    address = f"{redis_server.url}?stream=edges"  # type: ignore[attr-defined]
    summary = replay(address)
    assert summary["events"] == EVENTS - 20
    assert received(stream_from(address)) == played()


def test_into_kafka(kafka_servers: str) -> None:
    pytest.importorskip("confluent_kafka", reason="not installed: pip install 'ripplevec[kafka]'")
    address = f"kafka://{kafka_servers}/replayed"
    replay(address)
    came, went = received(stream_from(address)), played()
    assert sorted(came) == sorted(went)
    for vertex in {src for src, _ in went}:
        own = [[dst for src, dst in edges if src == vertex] for edges in (came, went)]
        assert own[0] == own[1], "the events of one vertex stay in order"


def test_a_redis_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("redis", reason="not installed: pip install 'ripplevec[redis]'")
    file = tmp_path / "edges.csv"
    file.write_text("a,b\n")
    with pytest.raises(SystemExit) as left:
        main.run(["replay", str(file), "--rate", "10", "--to", "redis://127.0.0.1:9/0?stream=edges&patience=0.1"])
    assert left.value.code == main.ExitCode.BAD_INPUT
    assert "redis://127.0.0.1:9/0/edges" in capsys.readouterr().err
