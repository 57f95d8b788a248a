from __future__ import annotations

import struct
from contextlib import suppress
from resource import RUSAGE_SELF, getrusage

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.io.arrow_ipc import decoded_text_size, encode_arrow_stream, unpacked_size


def stream(table, compression=None):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


ZEROS = pa.table({"src": np.zeros(100_000, np.int64), "dst": np.zeros(100_000, np.int64)})
NAMES = pa.table({"src": pa.array(["ann", "bob"] * 5_000).dictionary_encode(), "dst": ["x" * 100] * 10_000})


@pytest.mark.parametrize("table", [ZEROS, NAMES, ZEROS[:0]])
def test_unpacked_size_of_plain_stream_is_size_of_bodies(table):
    plain = stream(table)
    assert table.nbytes <= unpacked_size(plain) <= len(plain)


def test_unpacked_size_of_replaced_and_extended_dictionaries_is_size_of_bodies():
    chunks = [pa.record_batch([pa.array(names).dictionary_encode()], ["src"]) for names in (["a"], ["a", "b"], ["c"])]
    for deltas in (True, False):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(sink, chunks[0].schema, options=options) as writer:
            for chunk in chunks:
                writer.write_batch(chunk)
        assert 0 < unpacked_size(sink.getvalue().to_pybytes()) <= sink.getvalue().size


NOISE = pa.table({"src": np.random.default_rng(0).integers(0, 2**63, 1000)})  # stored without compression


@pytest.mark.parametrize("table", [ZEROS, NAMES, NOISE])
@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_unpacked_size_of_compressed_stream_raises(table, compression):
    with pytest.raises(pa.ArrowInvalid, match="Write the stream without compression"):
        unpacked_size(stream(table, compression))


def test_unpacked_size_of_compressed_stream_raises_without_allocating_memory():
    zeros = np.zeros(1 << 24, np.int64)
    compressed = stream(pa.table({"src": zeros, "dst": zeros}), "zstd")
    assert len(compressed) < 50_000
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    blocker = pa.allocate_buffer(before - pool.bytes_allocated())  # further memory raises the maximum
    with pytest.raises(pa.ArrowInvalid, match="Write the stream without compression"):
        unpacked_size(compressed)
    assert pool.max_memory() - before < 1 << 20
    del blocker


@pytest.mark.parametrize("claim", [1 << 45, -2, -(1 << 62)])
def test_unpacked_size_with_wrong_claim_raises(claim):
    compressed = stream(ZEROS, "zstd").replace(struct.pack("<q", 800_000), struct.pack("<q", claim), 1)
    with pytest.raises(pa.ArrowInvalid, match="Write the stream without compression"):
        unpacked_size(compressed)


def test_empty_compressed_buffer_with_huge_claim_fails_without_using_memory():
    compressed = stream(ZEROS.select(["src"]), "zstd")
    length = next(size for size in range(9, 800_000) if struct.pack("<qq", 0, size) in compressed)
    emptied = compressed.replace(struct.pack("<qq", 0, length), struct.pack("<qq", 0, 8), 1)
    emptied = emptied.replace(struct.pack("<q", 800_000), struct.pack("<q", 1 << 36), 1)
    assert unpacked_size(emptied) < len(emptied)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    with pytest.raises((pa.ArrowException, OSError)):
        pa.ipc.open_stream(emptied).read_all()
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 1 << 17  # KiB


def test_unpacked_size_of_old_metadata_with_compression_raises():
    old = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    for metadata, refused in ((None, False), ({"ARROW:experimental_compression": "zstd"}, True)):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, ZEROS.schema, options=old) as writer:
            writer.write_batch(ZEROS.to_batches()[0], custom_metadata=metadata)
        data = sink.getvalue().to_pybytes()
        if refused:
            with pytest.raises(pa.ArrowInvalid, match="Write the stream without compression"):
                unpacked_size(data)
        else:
            assert unpacked_size(data) >= ZEROS.nbytes


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int16(), pa.large_string()),
    ],
)
def test_decoded_text_size_counts_text_of_every_row(kind):
    names = ["", "é", "x" * 50, "x" * 50, "é"]
    column = pa.chunked_array([pa.array(names, kind), pa.array(names, kind)[2:4], pa.array([], kind)])
    assert decoded_text_size(column) == 104 + 100


def test_decoded_text_size_of_integers_is_zero():
    assert decoded_text_size(pa.chunked_array([[1, 2]])) == 0
    assert decoded_text_size(pa.chunked_array([pa.array([1, 2]).dictionary_encode()])) == 0


@given(st.sampled_from([None, "lz4", "zstd"]), st.data())
def test_unpacked_size_of_damaged_stream_raises_or_bounds_decoded_size(compression, data):
    damaged = bytearray(stream(NAMES[:50], compression))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(pa.ArrowException, OSError):
        assert 0 <= unpacked_size(bytes(damaged)) <= len(damaged)


SMALL_TABLE = pa.table({"src": ["a", "b"], "dst": [1, 2]}).replace_schema_metadata({"sequence": "7"})


@pytest.mark.parametrize("rows", [SMALL_TABLE, SMALL_TABLE.to_batches()[0], SMALL_TABLE[:0]])
def test_encode_arrow_stream_then_read_returns_same_rows(rows: pa.Table | pa.RecordBatch) -> None:
    with pa.ipc.open_stream(encode_arrow_stream(rows)) as stream:
        table = stream.read_all()
    assert table.schema.metadata == {b"sequence": b"7"}
    assert table.to_pylist() == rows.to_pylist()
