from __future__ import annotations

import json

import pytest

from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks import jsonl
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink, StdoutSink


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_jsonl_sink_appends_one_line_per_batch(tmp_path, changes_of):
    path = tmp_path / "changes.jsonl"
    first, second = changes_of(["a", "b"], sequence=1), changes_of(["ö"], removed=[3], sequence=2)
    sink = JsonlSink(path)
    sink.write(first)
    sink.flush()
    assert lines(path) == [changes_to_dict(first)]
    sink.close()
    sink.close()
    again = JsonlSink(path)
    again.write(second)
    again.close()
    assert lines(path) == [changes_to_dict(first), changes_to_dict(second)]


@pytest.mark.parametrize("left", [b"", b"{}\n", b'{}\n{"seq', b'{"seq'])
def test_jsonl_sink_after_crash_removes_incomplete_line(tmp_path, changes_of, left, monkeypatch):
    monkeypatch.setattr(jsonl._size_of_complete_lines, "__defaults__", (3,))
    path = tmp_path / "changes.jsonl"
    path.write_bytes(left)
    sink = JsonlSink(path)
    sink.write(changes_of(["a"]))
    sink.close()
    assert lines(path) == [{}] * left.count(b"\n") + [changes_to_dict(changes_of(["a"]))]


def test_jsonl_sink_on_full_disk_drops_unwritten_lines_when_closed(changes_of):
    sink = JsonlSink("/dev/full")
    sink.write(changes_of(["a"]))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            sink.flush()
    with pytest.raises(OSError, match="No space left"):
        sink.close()
    sink.close()  # the file is closed, and what it held is gone with it


def test_stdout_sink_prints_one_line_per_batch(capfdbinary, changes_of):
    sink = StdoutSink()
    sink.write(changes_of(["a"], sequence=9))
    sink.close()
    assert json.loads(capfdbinary.readouterr().out) == changes_to_dict(changes_of(["a"], sequence=9))


def test_jsonl_dead_letters_record_writes_at_once(tmp_path):
    path = tmp_path / "dead.jsonl"
    letters = JsonlDeadLetters(path)
    letters.record("file:e", BadMessage("\ud800", "line 1", "expected JSON"))
    assert lines(path) == [{"source": "file:e", "where": "line 1", "reason": "expected JSON", "message": "\ud800"}]
    letters.close()
