"""Replay into brokers: a source reads back the events that were replayed."""

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
from ripplevec.replay.replay import generate_stream

VERTICES, EVENTS = 80, 120


def replay(to: str) -> dict[str, object]:
    graph = ["--built-in", "--vertices", str(VERTICES), "--limit", str(EVENTS), "--at-once", "20"]
    result = CliRunner().invoke(main.app, ["replay", *graph, "--speed", "1e6", "--to", to, "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def read_all(source: EventSource) -> list[tuple[object, object]]:
    edges: list[tuple[object, object]] = []
    with closing(source):
        source.open(None)
        while len(edges) < EVENTS:
            read = source.read(30)
            assert read is not None, f"expected {EVENTS} events, got {len(edges)}"
            assert not read.bad_messages
            edges += zip(ids_to_list(read.batch.src), ids_to_list(read.batch.dst), strict=True)
    return edges


def expected_edges() -> list[tuple[object, object]]:
    batch, _ = generate_stream(VERTICES)
    return list(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))[:EVENTS]


def test_replay_into_redis_keeps_order(redis_server: object, redis_client: object) -> None:
    address = f"{redis_server.url}?stream=edges"  # type: ignore[attr-defined]
    summary = replay(address)
    assert summary["events"] == EVENTS - 20
    assert read_all(stream_from(address)) == expected_edges()


def test_replay_into_kafka_keeps_order_per_vertex(kafka_servers: str) -> None:
    pytest.importorskip("confluent_kafka", reason="not installed: pip install '.[kafka]'")
    address = f"kafka://{kafka_servers}/replayed"
    replay(address)
    received, sent = read_all(stream_from(address)), expected_edges()
    assert sorted(received) == sorted(sent)
    for vertex in {src for src, _ in sent}:
        of_vertex = [[dst for src, dst in edges if src == vertex] for edges in (received, sent)]
        assert of_vertex[0] == of_vertex[1], "the events of one vertex are out of order"


def test_replay_unreachable_redis_exits_with_message(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("redis", reason="not installed: pip install '.[redis]'")
    file = tmp_path / "edges.csv"
    file.write_text("a,b\n")
    with pytest.raises(SystemExit) as exit_info:
        main.run(["replay", str(file), "--rate", "10", "--to", "redis://127.0.0.1:9/0?stream=edges&patience=0.1"])
    assert exit_info.value.code == main.ExitCode.BAD_INPUT
    assert "redis://127.0.0.1:9/0/edges" in capsys.readouterr().err
