from __future__ import annotations

import json

import pytest

from ripplevec.io.change_messages import changes_to_dict
from ripplevec.io.protocols import BadMessage
from ripplevec.io.sinks.jsonl import JsonlDeadLetters, JsonlSink, StdoutSink


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_jsonl_sink_appends_one_line_per_batch(tmp_path, changes_of):
    path = tmp_path / "changes.jsonl"
    first, second = changes_of(["a", "b"], sequence=1), changes_of(["ö"], removed=[3], sequence=2)
    sink = JsonlSink(path)
    sink.write(first)
    sink.flush()
    assert read_lines(path) == [changes_to_dict(first)]
    sink.close()
    sink.close()
    reopened = JsonlSink(path)
    reopened.write(second)
    reopened.close()
    assert read_lines(path) == [changes_to_dict(first), changes_to_dict(second)]


@pytest.mark.parametrize("incomplete", ["", '{"seq', '{"seq' + "0" * 200_000], ids=["none", "short", "long"])
@pytest.mark.parametrize("complete", [0, 1, 50_000])
def test_jsonl_sink_after_crash_removes_incomplete_line(tmp_path, changes_of, complete, incomplete):
    path = tmp_path / "changes.jsonl"
    path.write_text("{}\n" * complete + incomplete)
    sink = JsonlSink(path)
    sink.write(changes_of(["a"]))
    sink.close()
    assert read_lines(path) == [{}] * complete + [changes_to_dict(changes_of(["a"]))]


def test_jsonl_sink_on_full_disk_drops_unwritten_lines_when_closed(changes_of):
    sink = JsonlSink("/dev/full")
    sink.write(changes_of(["a"]))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            sink.flush()
    with pytest.raises(OSError, match="No space left"):
        sink.close()
    sink.close()  # the file is closed; the unwritten line is dropped


def test_stdout_sink_prints_one_line_per_batch(capfdbinary, changes_of):
    sink = StdoutSink()
    sink.write(changes_of(["a"], sequence=9))
    sink.close()
    assert json.loads(capfdbinary.readouterr().out) == changes_to_dict(changes_of(["a"], sequence=9))


def test_jsonl_dead_letters_record_writes_at_once(tmp_path):
    path = tmp_path / "dead.jsonl"
    dead_letters = JsonlDeadLetters(path)
    dead_letters.record("file:e", BadMessage("\ud800", "line 1", "expected JSON"))
    assert read_lines(path) == [{"source": "file:e", "where": "line 1", "reason": "expected JSON", "message": "\ud800"}]
    dead_letters.close()
