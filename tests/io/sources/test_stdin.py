from __future__ import annotations

import json
import os
import sys

import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import InvalidValueError
from ripplevec.io.sources.stdin import StdinSource


@pytest.fixture
def pipe(monkeypatch):
    """Return a function that opens a source on a new pipe and a function that sends bytes; sending None ends it."""
    descriptors = []

    def open_pipe(position=None, **options):
        read_end, write_end = os.pipe()
        descriptors.extend([read_end, write_end])
        monkeypatch.setattr(sys, "stdin", os.fdopen(read_end, "rb", closefd=False))
        source = StdinSource(**options)
        source.open(json.loads(json.dumps(position)))

        def send(data):
            if data is None:
                os.close(descriptors.pop(descriptors.index(write_end)))
            else:
                os.write(write_end, data)

        return source, send

    yield open_pipe
    for descriptor in descriptors:
        os.close(descriptor)


def test_stdin_source_reads_json_lines(pipe):
    source, send = pipe(batch_size=2)
    assert source.read(0.01) is None
    send(b'\n["a", "b"]\n["b", ')
    assert ids_to_list(source.read(1).batch.src) == ["a"]
    assert source.read(0) is None
    send(b'"c"]\n["c", "d"]\nnothing\n["d", "e"]')
    assert ids_to_list(source.read(1).batch.src) == ["b", "c"]
    read = source.read(1)
    assert (len(read.batch), [bad.where for bad in read.bad_messages]) == (0, ["stdin, line 5"])
    assert source.read(0) is None
    send(None)
    read = source.read(1)
    assert (ids_to_list(read.batch.src), read.position) == (["d"], {"line": 7})
    source.acknowledge(read.position)
    source.close()
    with pytest.raises(EOFError, match="ended"):
        source.read(1)


def test_stdin_source_with_fixed_reads_full_batches_of_csv(pipe):
    source, send = pipe(fixed=True, batch_size=2)
    send(b"src\tdst\n1\t2\n")
    assert source.read(0) is None
    send(b"2\t3\n3\t4\n")
    assert ids_to_list(source.read(0).batch.dst) == [2, 3]
    assert source.read(0) is None
    send(None)
    assert ids_to_list(source.read(0).batch.dst) == [4]


def test_stdin_source_with_replayed_skips_lines_read_before(pipe):
    text = b"src,dst\n1,2\n2,3\n3,4\n4,5\n"
    source, send = pipe(batch_size=2)
    send(text)
    position = source.read(0).position
    for replayed, expected in ((False, [1, 2]), (True, [3, 4])):
        source, send = pipe(position, replayed=replayed, batch_size=2)
        send(text)
        send(None)
        assert ids_to_list(source.read(0).batch.src) == expected


def test_stdin_source_reopened_after_its_end_detects_the_format_again(pipe):
    source, send = pipe()
    send(b"src,dst,weight\n1,2,3.0\n")
    send(None)
    assert ids_to_list(source.read(0).batch.src) == [1]
    with pytest.raises(EOFError):
        source.read(0)
    _, send = pipe()
    source.open(None)
    send(b'["a", "b"]\n')
    read = source.read(0)
    assert (ids_to_list(read.batch.src), read.bad_messages, read.position) == (["a"], [], {"line": 2})
    send(b'["b", "c"]\n')
    assert ids_to_list(source.read(0).batch.src) == ["b"]


def test_stdin_source_with_short_replay_ends(pipe):
    source, send = pipe({"line": 9}, replayed=True)
    send(b"[1, 2]\n[2, 3]")
    assert source.read(0) is None
    send(None)
    with pytest.raises(EOFError):
        source.read(0)


def test_stdin_source_without_input_ends(pipe):
    source, send = pipe()
    send(None)
    with pytest.raises(EOFError):
        source.read(0)
    with pytest.raises(InvalidValueError, match="format"):
        StdinSource(format="parquet")
