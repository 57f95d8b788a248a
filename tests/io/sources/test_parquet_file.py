from __future__ import annotations

import json
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError
from ripplevec.io.readers.edge_rows import ReadOptions
from ripplevec.io.sources.files import ParquetFileReader


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "edges.parquet"
    table = pa.table({"src": range(10), "dst": range(1, 11), "weight": [1.0] * 6 + [-1.0] + [1.0] * 3})
    pq.write_table(table, path, row_group_size=4)
    return path


def opened(path, position=None, size=3, **options):
    return ParquetFileReader(
        path, "parquet", ReadOptions(**options), size, True, json.loads(json.dumps(position or {}))
    )


def rest(file):
    with closing(file):
        return list(iter(lambda: file.read(True), None))


def test_reads_of_one_size_across_row_groups_from_any_row(path):
    reads = rest(opened(path))
    assert [ids_to_list(read.batch.src) for read in reads] == [[0, 1, 2], [3, 4, 5], [7, 8], [9]]
    assert [[one.where for one in read.bad_messages] for read in reads] == [[], [], [f"{path}, row 7"], []]
    for number, read in enumerate(reads):
        again = rest(opened(path, read.position))
        assert [ids_to_list(one.batch.src) for one in again] == [
            ids_to_list(one.batch.src) for one in reads[number + 1 :]
        ]
        assert [one.bad_messages for one in again] == [one.bad_messages for one in reads[number + 1 :]]


def test_another_file_or_a_damaged_one(path):
    position = opened(path).read(True).position
    with pytest.raises(FormatError, match="expected columns x"):
        opened(path, src="x")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(FormatError, match="that was being read"):
        opened(path, position)
    with pytest.raises(FormatError, match="cut off or damaged"):
        opened(path)
