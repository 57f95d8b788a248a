from __future__ import annotations

import gzip
import json
import os
import threading
from contextlib import ExitStack, closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sources.files import FileSource, ParquetFileReader, TextFileReader


@pytest.fixture
def open_source():
    with ExitStack() as files:

        def open_at(path, position=None, **options):
            source = files.enter_context(closing(FileSource(path, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield open_at


def read_available(source):
    reads = []
    try:
        while (read := source.read(0)) is not None:
            reads.append(read)
    except EOFError:
        source.close()
    return reads


def source_ids(reads):
    return [ids_to_list(read.batch.src) for read in reads]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "edges"
    folder.mkdir()
    (folder / "1.csv").write_text("a,b\nb,c\nc,d")
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(b'["x", "y"]\n["y", "z"]\n["z", "z"]\n'))
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), folder / "3.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part").write_text("nothing")
    (folder / "4.csv").touch()
    return folder


def test_file_source_of_folder_reads_files_in_name_order(open_source, folder):
    source = open_source(folder, batch_size=2)
    reads = read_available(source)
    assert source_ids(reads) == [["a", "b"], ["c"], ["x", "y"], ["z"], [1, 2]]
    with pytest.raises(EOFError, match="read to its end"):
        source.read(0)
    source.acknowledge(reads[-1].position)
    for number, read in enumerate(reads):
        assert (
            source_ids(read_available(open_source(folder, read.position, batch_size=2)))
            == source_ids(reads)[number + 1 :]
        )


def test_file_source_following_folder_reads_new_files(open_source, folder):
    source = open_source(folder, batch_size=2, follow=True, fixed=True)
    assert source_ids(read_available(source)) == [["a", "b"], ["c"], ["x", "y"], ["z"], [1, 2]]
    assert source.read(0.01) is None
    (folder / "4.csv").write_text("e,f\nf,g\ng")
    assert source_ids(read_available(source)) == [["e", "f"]]
    with (folder / "4.csv").open("a") as file:
        file.write(",h")
    assert read_available(source) == []
    (folder / "5.csv").write_text("src,dst\n1,2\n2,3\n3,4\n")
    reads = read_available(source)
    assert source_ids(reads) == [["g"], [1, 2]]
    assert source_ids(read_available(open_source(folder, reads[0].position, batch_size=2))) == [[1, 2], [3]]


def test_file_source_following_growing_file_reads_every_line(open_source, tmp_path):
    path = tmp_path / "edges.jsonl"
    path.touch()
    source = open_source(path, batch_size=7, follow=True)

    def write():
        with path.open("a", buffering=1) as file:
            for number in range(500):
                file.write(f"[{number}, ")
                file.write(f"{number + 1}]\n")

    writer = threading.Thread(target=write)
    writer.start()
    received = []
    while len(received) < 500:
        read = source.read(5)
        assert not read.bad_messages
        received += ids_to_list(read.batch.src)
    writer.join()
    assert received == list(range(500))
    assert source.read(0) is None


def test_file_source_with_new_earlier_file_raises(open_source, folder):
    source = open_source(folder, follow=True)
    position = read_available(source)[-1].position
    (folder / "0.csv").write_text("a,b\n")
    with pytest.raises(FormatError, match="expected new files after"):
        source.read(0)
    with pytest.raises(FormatError, match="expected new files after"):
        open_source(folder, position)


def test_file_source_without_current_file_raises(open_source, folder):
    position = read_available(open_source(folder))[-1].position
    (folder / "1.csv").unlink()
    assert read_available(open_source(folder, position)) == []
    (folder / "3.parquet").unlink()
    with pytest.raises(FormatError, match=r"3\.parquet, which was being read, is missing"):
        open_source(folder, position)


def test_file_source_after_deletion_of_empty_last_file_continues(open_source, folder):
    source = open_source(folder, follow=True)
    read_available(source)
    (folder / "4.csv").unlink()
    (folder / "5.csv").write_text("1,2\n2,3\n")
    assert source_ids(read_available(source)) == [[1, 2]]


def test_file_source_with_invalid_argument_raises(open_source, folder):
    for name in ("3.parquet", "2.jsonl.gz"):
        source = open_source(folder / name, follow=True)
        with pytest.raises(InvalidValueError, match="follow: expected plain text"):
            source.read(0)
    with pytest.raises(FileNotFoundError):
        open_source(folder / "nothing")
    with pytest.raises(InvalidValueError, match="format"):
        FileSource(folder, format="xml")
    with pytest.raises(InvalidValueError, match="batch_size"):
        FileSource(folder, batch_size=0)


def test_file_source_name_is_absolute_path_by_default(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert FileSource("1.csv").name == FileSource(folder / "1.csv").name == f"file:{folder}/1.csv"
    assert FileSource("1.csv", name="mine").name == "mine"


@pytest.fixture
def open_text():
    with ExitStack() as files:

        def open_at(path, position=None, *, size=2, fixed=False):
            saved = json.loads(json.dumps(position or {}))
            return files.enter_context(closing(TextFileReader(path, "csv", ReadOptions(), size, fixed, saved)))

        yield open_at


def read_all(reader):
    return list(iter(lambda: reader.read(False), None))


@pytest.fixture
def text_path(tmp_path):
    text_path = tmp_path / "edges.csv"
    text_path.write_bytes(b"src,dst\n" + b"".join(b"%d,%d\n" % (i, i + 1) for i in range(5)))
    return text_path


def test_text_file_reader_resumes_at_any_position(open_text, text_path):
    reads = read_all(open_text(text_path))
    assert source_ids(reads) == [[0, 1], [2, 3], [4]]
    for number, read in enumerate(reads):
        resumed = read_all(open_text(text_path, read.position))
        assert source_ids(resumed) == source_ids(reads)[number + 1 :]
        assert [read_again.position for read_again in resumed] == [
            read_again.position for read_again in reads[number + 1 :]
        ]


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_text_file_reader_of_compressed_file_resumes(open_text, text_path, pack):
    text_path.write_bytes(pack(text_path.read_bytes()))
    reader = open_text(text_path)
    position = reader.read(True).position
    reader.close()
    assert ids_to_list(open_text(text_path, position).read(False).batch.src) == [2, 3]


def test_text_file_reader_of_growing_file_reads_complete_lines(open_text, text_path):
    reader = open_text(text_path, size=10)
    assert len(reader.read(True).batch) == 5
    assert reader.read(True) is None
    with text_path.open("ab") as end:
        end.write(b"7,8\n9,1")
    assert ids_to_list(reader.read(True).batch.src) == [7]
    with text_path.open("ab") as end:
        end.write(b"0\n")
    read = reader.read(True)
    assert (ids_to_list(read.batch.src), ids_to_list(read.batch.dst), read.position["line"]) == ([9], [10], 9)


def test_text_file_reader_with_fixed_waits_for_full_read(open_text, text_path):
    reader = open_text(text_path, size=4, fixed=True)
    assert len(reader.read(True).batch) == 4
    assert reader.read(True) is None
    with text_path.open("ab") as end:
        end.write(b"5,6\n6,7\n7,8\n8,9\n")
    assert ids_to_list(reader.read(True).batch.src) == [4, 5, 6, 7]
    assert reader.read(True) is None
    assert len(reader.read(False).batch) == 1


def test_text_file_reader_with_bad_line_reports_bad_message(open_text, text_path):
    text_path.write_bytes(b"1,2\n3\n4,5\n")
    read = open_text(text_path, size=3).read(False)
    assert ids_to_list(read.batch.src) == [1, 4]
    assert [(bad.where, bad.message) for bad in read.bad_messages] == [(f"{text_path}, line 2", "3")]


def truncate(text_path):
    os.truncate(text_path, 10)


def replace(text_path):
    other = text_path.with_name("other")
    other.write_bytes(text_path.read_bytes() + b"8,9\n")
    other.replace(text_path)


def overwrite(text_path):
    text_path.write_bytes(b"x" * 100 + b"\n")


def remove(text_path):
    text_path.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncate, "shorter"),
        (replace, "another file has replaced it"),
        (overwrite, "first bytes have changed"),
        (remove, "it has been removed"),
    ],
)
def test_text_file_reader_of_changed_file_raises(open_text, text_path, damage, message):
    reader = open_text(text_path, size=3)
    reader.read(True)
    damage(text_path)
    with pytest.raises(FormatError, match=message):
        reader.read(True)


@pytest.mark.parametrize(("damage", "message"), [(truncate, "shorter"), (overwrite, "first bytes have changed")])
def test_text_file_reader_of_file_changed_before_restart_raises(open_text, text_path, damage, message):
    reader = open_text(text_path, size=4)
    position = reader.read(True).position
    damage(text_path)
    with pytest.raises(FormatError, match=message):
        open_text(text_path, position)


def test_text_file_reader_of_copied_file_resumes(open_text, text_path):
    position = open_text(text_path).read(False).position
    replace(text_path)
    assert ids_to_list(open_text(text_path, position).read(True).batch.src) == [2, 3]


def test_text_file_reader_with_grown_last_line_raises(open_text, text_path):
    text_path.write_bytes(b"1,2\n3,4")
    position = open_text(text_path).read(False).position
    assert open_text(text_path, position).read(False) is None
    text_path.write_bytes(b"1,2\n3,45\n")
    with pytest.raises(FormatError, match="has become longer"):
        open_text(text_path, position)


def test_text_file_reader_of_long_file_resumes_after_append(open_text, text_path):
    text_path.write_bytes(b"".join(b"%d,%d\n" % (i, i + 1) for i in range(2000)))
    reader = open_text(text_path, size=1999)
    position = reader.read(True).position
    with text_path.open("ab") as end:
        end.write(b"1,1\n")
    assert ids_to_list(open_text(text_path, position).read(True).batch.src) == [1999, 1]


@pytest.fixture
def parquet_path(tmp_path):
    parquet_path = tmp_path / "edges.parquet"
    table = pa.table({"src": range(10), "dst": range(1, 11), "weight": [1.0] * 6 + [-1.0] + [1.0] * 3})
    pq.write_table(table, parquet_path, row_group_size=4)
    return parquet_path


def open_parquet(parquet_path, position=None, size=3, **options):
    return ParquetFileReader(
        parquet_path, "parquet", ReadOptions(**options), size, True, json.loads(json.dumps(position or {}))
    )


def read_rest(file):
    with closing(file):
        return list(iter(lambda: file.read(True), None))


def test_parquet_file_reader_resumes_at_any_row(parquet_path):
    reads = read_rest(open_parquet(parquet_path))
    assert [ids_to_list(read.batch.src) for read in reads] == [[0, 1, 2], [3, 4, 5], [7, 8], [9]]
    assert [[bad.where for bad in read.bad_messages] for read in reads] == [[], [], [f"{parquet_path}, row 7"], []]
    for number, read in enumerate(reads):
        resumed = read_rest(open_parquet(parquet_path, read.position))
        assert source_ids(resumed) == source_ids(reads[number + 1 :])
        assert [later.bad_messages for later in resumed] == [later.bad_messages for later in reads[number + 1 :]]


def test_parquet_file_reader_of_changed_or_damaged_file_raises(parquet_path):
    position = open_parquet(parquet_path).read(True).position
    with pytest.raises(FormatError, match="expected columns x"):
        open_parquet(parquet_path, src="x")
    whole = parquet_path.read_bytes()
    parquet_path.write_bytes(whole[:-20])
    with pytest.raises(FormatError, match="that was being read"):
        open_parquet(parquet_path, position)
    with pytest.raises(FormatError, match="truncated or damaged"):
        open_parquet(parquet_path)
