from __future__ import annotations

import gzip
import json
import threading
from contextlib import ExitStack, closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.sources.files import FileSource


@pytest.fixture
def begun():
    with ExitStack() as files:

        def make(path, position=None, **options):
            source = files.enter_context(closing(FileSource(path, **options)))
            source.open(json.loads(json.dumps(position)))
            return source

        yield make


def drain(source):
    reads = []
    try:
        while (read := source.read(0)) is not None:
            reads.append(read)
    except EOFError:
        source.close()
    return reads


def values(reads):
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


def test_a_folder_in_the_order_of_names(begun, folder):
    source = begun(folder, batch_size=2)
    reads = drain(source)
    assert values(reads) == [["a", "b"], ["c"], ["x", "y"], ["z"], [1, 2]]
    with pytest.raises(EOFError, match="read to its end"):
        source.read(0)
    source.acknowledge(reads[-1].position)
    for number, read in enumerate(reads):
        assert values(drain(begun(folder, read.position, batch_size=2))) == values(reads)[number + 1 :]


def test_following_a_folder(begun, folder):
    source = begun(folder, batch_size=2, follow=True, fixed=True)
    assert values(drain(source)) == [["a", "b"], ["c"], ["x", "y"], ["z"], [1, 2]]
    assert source.read(0.01) is None
    (folder / "4.csv").write_text("e,f\nf,g\ng")
    assert values(drain(source)) == [["e", "f"]]
    with (folder / "4.csv").open("a") as file:
        file.write(",h")
    assert drain(source) == []
    (folder / "5.csv").write_text("src,dst\n1,2\n2,3\n3,4\n")
    reads = drain(source)
    assert values(reads) == [["g"], [1, 2]]
    assert values(drain(begun(folder, reads[0].position, batch_size=2))) == [[1, 2], [3]]


def test_following_a_file_while_it_is_written(begun, tmp_path):
    path = tmp_path / "edges.jsonl"
    path.touch()
    source = begun(path, batch_size=7, follow=True)

    def write():
        with path.open("a", buffering=1) as file:
            for number in range(500):
                file.write(f"[{number}, ")
                file.write(f"{number + 1}]\n")

    writer = threading.Thread(target=write)
    writer.start()
    got = []
    while len(got) < 500:
        read = source.read(5)
        assert not read.bad_messages
        got += ids_to_list(read.batch.src)
    writer.join()
    assert got == list(range(500))
    assert source.read(0) is None


def test_a_file_that_would_never_be_read(begun, folder):
    source = begun(folder, follow=True)
    position = drain(source)[-1].position
    (folder / "0.csv").write_text("a,b\n")
    with pytest.raises(FormatError, match="expected new files behind"):
        source.read(0)
    with pytest.raises(FormatError, match="expected new files behind"):
        begun(folder, position)


def test_finished_files_may_go_but_not_the_current_one(begun, folder):
    position = drain(begun(folder))[-1].position
    (folder / "1.csv").unlink()
    assert drain(begun(folder, position)) == []
    (folder / "3.parquet").unlink()
    with pytest.raises(FormatError, match=r"3\.parquet, which was being read"):
        begun(folder, position)


def test_the_current_file_may_go_once_it_is_read(begun, folder):
    source = begun(folder, follow=True)
    drain(source)
    (folder / "4.csv").unlink()
    (folder / "5.csv").write_text("1,2\n2,3\n")
    assert values(drain(source)) == [[1, 2]]


def test_what_cannot_be_followed(begun, folder):
    for name in ("3.parquet", "2.jsonl.gz"):
        source = begun(folder / name, follow=True)
        with pytest.raises(InvalidValueError, match="follow: expected plain text"):
            source.read(0)
    with pytest.raises(FileNotFoundError):
        begun(folder / "nothing")
    with pytest.raises(InvalidValueError, match="format"):
        FileSource(folder, format="xml")
    with pytest.raises(InvalidValueError, match="batch_size"):
        FileSource(folder, batch_size=0)


def test_names_stay_the_same(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert FileSource("1.csv").name == FileSource(folder / "1.csv").name == f"file:{folder}/1.csv"
    assert FileSource("1.csv", name="mine").name == "mine"
