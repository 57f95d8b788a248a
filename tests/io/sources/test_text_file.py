from __future__ import annotations

import gzip
import json
import os
from contextlib import ExitStack, closing

import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sources.files import TextFileReader


@pytest.fixture
def opened():
    with ExitStack() as files:

        def make(path, position=None, *, size=2, fixed=False):
            place = json.loads(json.dumps(position or {}))
            return files.enter_context(closing(TextFileReader(path, "csv", ReadOptions(), size, fixed, place)))

        yield make


def rest(file):
    return list(iter(lambda: file.read(False), None))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(b"src,dst\n" + b"".join(b"%d,%d\n" % (i, i + 1) for i in range(5)))
    return path


def sources(reads):
    return [ids_to_list(read.batch.src) for read in reads]


def test_reads_of_one_size_from_any_position(opened, path):
    reads = rest(opened(path))
    assert sources(reads) == [[0, 1], [2, 3], [4]]
    for number, read in enumerate(reads):
        again = rest(opened(path, read.position))
        assert sources(again) == sources(reads)[number + 1 :]
        assert [one.position for one in again] == [one.position for one in reads[number + 1 :]]


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_going_on_in_a_compressed_file(opened, path, pack):
    path.write_bytes(pack(path.read_bytes()))
    file = opened(path)
    position = file.read(True).position
    file.close()
    assert ids_to_list(opened(path, position).read(False).batch.src) == [2, 3]


def test_following(opened, path):
    file = opened(path, size=10)
    assert len(file.read(True).batch) == 5
    assert file.read(True) is None
    with path.open("ab") as end:
        end.write(b"7,8\n9,1")
    assert ids_to_list(file.read(True).batch.src) == [7]
    with path.open("ab") as end:
        end.write(b"0\n")
    read = file.read(True)
    assert (ids_to_list(read.batch.src), ids_to_list(read.batch.dst), read.position["line"]) == ([9], [10], 9)


def test_fixed_reads_wait_until_they_are_full(opened, path):
    file = opened(path, size=4, fixed=True)
    assert len(file.read(True).batch) == 4
    assert file.read(True) is None
    with path.open("ab") as end:
        end.write(b"5,6\n6,7\n7,8\n8,9\n")
    assert ids_to_list(file.read(True).batch.src) == [4, 5, 6, 7]
    assert file.read(True) is None
    assert len(file.read(False).batch) == 1


def test_bad_lines_are_poison_and_the_stream_goes_on(opened, path):
    path.write_bytes(b"1,2\n3\n4,5\n")
    read = opened(path, size=3).read(False)
    assert ids_to_list(read.batch.src) == [1, 4]
    assert [(one.where, one.message) for one in read.bad_messages] == [(f"{path}, line 2", "3")]


def shorter(path):
    os.truncate(path, 10)


def replaced(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes() + b"8,9\n")
    other.replace(path)


def rewritten(path):
    path.write_bytes(b"x" * 100 + b"\n")


def gone(path):
    path.unlink()


@pytest.mark.parametrize(
    ("harm", "message"),
    [(shorter, "shorter"), (replaced, "taken its place"), (rewritten, "other bytes"), (gone, "it is gone")],
)
def test_another_file_under_the_same_name(opened, path, harm, message):
    file = opened(path, size=3)
    file.read(True)
    harm(path)
    with pytest.raises(FormatError, match=message):
        file.read(True)


@pytest.mark.parametrize(("harm", "message"), [(shorter, "shorter"), (rewritten, "other bytes")])
def test_another_file_after_a_restart(opened, path, harm, message):
    file = opened(path, size=4)
    position = file.read(True).position
    harm(path)
    with pytest.raises(FormatError, match=message):
        opened(path, position)


def test_a_copy_of_the_file_is_the_same_file(opened, path):
    position = opened(path).read(False).position
    replaced(path)
    assert ids_to_list(opened(path, position).read(True).batch.src) == [2, 3]


def test_a_last_line_that_grew_after_it_was_read(opened, path):
    path.write_bytes(b"1,2\n3,4")
    position = opened(path).read(False).position
    assert opened(path, position).read(False) is None
    path.write_bytes(b"1,2\n3,45\n")
    with pytest.raises(FormatError, match="has become longer"):
        opened(path, position)


def test_a_long_file_is_known_by_its_beginning(opened, path):
    path.write_bytes(b"".join(b"%d,%d\n" % (i, i + 1) for i in range(2000)))
    file = opened(path, size=1999)
    position = file.read(True).position
    with path.open("ab") as end:
        end.write(b"1,1\n")
    assert ids_to_list(opened(path, position).read(True).batch.src) == [1999, 1]
