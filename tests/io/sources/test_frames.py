from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import coo_array

from ripplevec.batch import ids_to_list
from ripplevec.errors import InvalidValueError
from ripplevec.io.sources.frames import FrameSource

ROWS = {"src": ["a", "b", "c", "d", "e"], "dst": ["b", "c", "d", "e", "f"], "op": [0, 0, 1, 0, 3]}
FRAME_TYPES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "table": pa.table,
    "batch": pa.RecordBatch.from_pydict,
}


def read_all(source):
    reads = []
    with suppress(EOFError):
        while True:
            reads.append(source.read(0))
    with pytest.raises(EOFError, match="rows of frame have been read"):
        source.read(0)
    return reads


@pytest.mark.parametrize("library", FRAME_TYPES)
def test_frame_source_reads_batches_from_any_position(library):
    source = FrameSource(FRAME_TYPES[library](ROWS), batch_size=2)
    source.open(None)
    reads = read_all(source)
    assert [ids_to_list(read.batch.src) for read in reads] == [["a", "b"], ["c", "d"], ["e"]]
    assert np.concatenate([read.batch.op for read in reads]).tolist() == ROWS["op"]
    source.acknowledge(reads[0].position)
    source.open(reads[0].position)
    assert [ids_to_list(read.batch.src) for read in read_all(source)] == [["c", "d"], ["e"]]
    source.close()
    assert (source.name, FrameSource(FRAME_TYPES[library](ROWS), name="mine").name) == ("frame", "mine")


@pytest.mark.parametrize("library", FRAME_TYPES)
def test_frame_source_with_bad_row_reports_bad_message(library):
    source = FrameSource(FRAME_TYPES[library]({"src": [1, 2, 3], "dst": [2, 3, 4], "weight": [1.0, -1.0, 2.0]}))
    (read,) = read_all(source)
    assert (ids_to_list(read.batch.src), read.batch.weight.tolist()) == ([1, 3], [1, 2])
    (bad,) = read.bad_messages
    assert (bad.where, "'weight': -1.0" in bad.message) == ("frame, row 2", True)
    assert "positive finite" in bad.reason


@pytest.mark.parametrize("library", FRAME_TYPES)
def test_frame_source_finds_columns_by_known_or_given_names(library):
    rows = {"Target": ["a"], "source": ["b"], "amount": [2.0]}
    source = FrameSource(FRAME_TYPES[library](rows), weight="amount")
    (read,) = read_all(source)
    assert (ids_to_list(read.batch.src), ids_to_list(read.batch.dst), read.batch.weight.tolist()) == (["b"], ["a"], [2])
    (read,) = read_all(FrameSource(FRAME_TYPES[library](rows), src="Target", dst="source"))
    assert (ids_to_list(read.batch.src), read.batch.weight) == (["a"], None)


def test_frame_source_with_invalid_argument_raises():
    with pytest.raises(InvalidValueError, match="pandas, polars or pyarrow"):
        FrameSource([(1, 2)])
    with pytest.raises(InvalidValueError, match="pandas, polars or pyarrow"):
        FrameSource(coo_array((2, 2)))
    with pytest.raises(InvalidValueError, match="columns src, dst"):
        FrameSource(pd.DataFrame({"a": [1]}))
    with pytest.raises(InvalidValueError, match="batch_size"):
        FrameSource(pd.DataFrame(ROWS), batch_size=-1)
