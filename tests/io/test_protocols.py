from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ripplevec.batch import Op
from ripplevec.io.messages import decode_json
from ripplevec.io.sources.files import FileSource
from ripplevec.io.sources.frames import FrameSource
from ripplevec.io.sources.kafka import KafkaSource
from ripplevec.io.sources.redis import RedisSource
from ripplevec.io.sources.stdin import StdinSource

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_streams_page_example_runs_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "streams.md", "exec"), {})
    batches, letter, _ = capsys.readouterr().out.split("\n", 2)
    assert batches == "3 ['ann', 'bob', 'cleo', 'dan']"
    assert json.loads(letter)["where"] == "edges.csv, line 4"
    written = [json.loads(line)["sequence"] for line in Path("changes.jsonl").read_text().splitlines()]
    assert written == [1, 2, 3]
    exec(compile(example, "streams.md", "exec"), {})
    assert capsys.readouterr().out.startswith("0 [")


def test_streams_page_messages_are_decoded():
    (messages,) = blocks("json")
    decoded = [decode_json(line.encode()) for line in messages.splitlines()]
    assert [len(message.batch) for message in decoded] == [2, 2, 2, 1, 1, 1]
    assert decoded[0].key == "optional"
    assert all(f"`{name}`" in PAGE for name in (op.name.lower() for op in Op))


@pytest.mark.parametrize("source", [FileSource, FrameSource, StdinSource, RedisSource, KafkaSource])
def test_streams_page_describes_every_source_option(source):
    assert [name for name in source.__init__.__kwdefaults__ if f"`{name}`" not in PAGE] == []
