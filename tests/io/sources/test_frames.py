from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.errors import InvalidValueError
from ripplevec.io.sources.frames import FrameSource

ROWS = {"src": ["a", "b", "c", "d", "e"], "dst": ["b", "c", "d", "e", "f"], "op": [0, 0, 1, 0, 3]}
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "table": pa.table, "batch": pa.RecordBatch.from_pydict}


def drain(source):
    reads = []
    while source._row < len(source._frame):
        reads.append(source.read(0))
    with pytest.raises(EOFError, match="have been read"):
        source.read(0)
    return reads


@pytest.mark.parametrize("kind", MAKERS)
def test_frame_source_reads_batches_from_any_position(kind):
    source = FrameSource(MAKERS[kind](ROWS), batch_size=2)
    source.open(None)
    reads = drain(source)
    assert [ids_to_list(read.batch.src) for read in reads] == [["a", "b"], ["c", "d"], ["e"]]
    assert np.concatenate([read.batch.op for read in reads]).tolist() == ROWS["op"]
    source.acknowledge(reads[0].position)
    source.open(reads[0].position)
    assert [ids_to_list(read.batch.src) for read in drain(source)] == [["c", "d"], ["e"]]
    source.close()
    assert (source.name, FrameSource(MAKERS[kind](ROWS), name="mine").name) == ("frame", "mine")


@pytest.mark.parametrize("kind", MAKERS)
def test_frame_source_with_bad_row_reports_bad_message(kind):
    source = FrameSource(MAKERS[kind]({"src": [1, 2, 3], "dst": [2, 3, 4], "weight": [1.0, -1.0, 2.0]}))
    (read,) = drain(source)
    assert (ids_to_list(read.batch.src), read.batch.weight.tolist()) == ([1, 3], [1, 2])
    (poison,) = read.bad_messages
    assert (poison.where, "'weight': -1.0" in poison.message) == ("frame, row 2", True)
    assert "positive finite" in poison.reason


def test_frame_source_with_invalid_argument_raises():
    with pytest.raises(InvalidValueError, match="pandas, polars or pyarrow"):
        FrameSource([(1, 2)])
    with pytest.raises(InvalidValueError, match="columns src, dst"):
        FrameSource(pd.DataFrame({"a": [1]}))
    with pytest.raises(InvalidValueError, match="batch_size"):
        FrameSource(pd.DataFrame(ROWS), batch_size=-1)
