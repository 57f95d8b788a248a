"""Arrow IPC streams: encoding a table, and computing the memory that an untrusted stream needs before decoding it.

A compressed buffer starts with its claimed decompressed length, and Arrow allocates that much memory before it looks
further. The positions of the buffers are in the message metadata: FlatBuffers tables, of which a few fields are parsed
here (Message.header, DictionaryBatch.data, RecordBatch.buffers and RecordBatch.compression of the Arrow format).
Dictionary-encoded text also grows when it is decoded, because every row gets its own copy.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HEADER, _CUSTOM_METADATA, _DICTIONARY_DATA, _BUFFERS, _COMPRESSION = 2, 4, 1, 2, 3  # field numbers in their tables
_UNCOMPRESSED = -1  # claimed length of a buffer that is stored uncompressed


def encode_arrow_stream(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return the schema and the rows as the bytes of an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return bytes(sink.getvalue().to_pybytes())


# Size of an untrusted stream


def unpacked_size(stream: bytes) -> int:
    """Return the total size of all message bodies after decompression, as the stream claims it."""
    return sum(_claimed_size(message) for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)))


def _claimed_size(message: pa.ipc.Message) -> int:
    if message.type not in ("record batch", "dictionary"):
        return 0
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    try:
        root = _follow_offset(metadata, 0)
        if message.metadata_version < pa.ipc.MetadataVersion.V5 and _find_field(metadata, root, _CUSTOM_METADATA):
            raise pa.ArrowInvalid("metadata of Arrow before 1.0, which may hide a compression")
        return _sum_buffer_sizes(metadata, body, message.type == "dictionary")
    except struct.error as error:
        raise pa.ArrowInvalid(f"metadata that points outside of itself ({error})") from error


def _sum_buffer_sizes(metadata: memoryview, body: memoryview, is_dictionary: bool) -> int:
    batch = _follow_offset(metadata, _find_field(metadata, _follow_offset(metadata, 0), _HEADER))
    if is_dictionary:
        batch = _follow_offset(metadata, _find_field(metadata, batch, _DICTIONARY_DATA))
    buffers, compression = _find_field(metadata, batch, _BUFFERS), _find_field(metadata, batch, _COMPRESSION)
    if not compression or not buffers:
        return len(body)
    vector = _follow_offset(metadata, buffers)
    (count,) = struct.unpack_from("<I", metadata, vector)
    ranges = (struct.unpack_from("<qq", metadata, vector + 4 + 16 * number) for number in range(count))
    return sum(_buffer_size(body, offset, length) for offset, length in ranges if length)


def _buffer_size(body: memoryview, offset: int, length: int) -> int:
    if offset < 0 or length < 8:
        raise pa.ArrowInvalid("a buffer that is too short for its length")
    (claimed,) = struct.unpack_from("<q", body, offset)
    if claimed < _UNCOMPRESSED:  # a negative size would reduce the sum
        raise pa.ArrowInvalid(f"a buffer of {claimed} bytes")
    return length if claimed == _UNCOMPRESSED else int(claimed)


def _follow_offset(metadata: memoryview, place: int) -> int:
    """Return the place that the relative offset at `place` points to."""
    return place + int(struct.unpack_from("<I", metadata, place)[0])


def _find_field(metadata: memoryview, table: int, number: int) -> int:
    """Return the place of a field of a FlatBuffers table; 0 if the table does not have it."""
    vtable = table - int(struct.unpack_from("<i", metadata, table)[0])
    if vtable < 0:
        raise struct.error("a table before its beginning")
    (size,) = struct.unpack_from("<H", metadata, vtable)
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, vtable + entry)[0] if entry < size else 0
    return table + int(offset) if offset else 0


# Size of text


def decoded_text_size(column: pa.ChunkedArray) -> int:
    """Return the bytes of a valid text column when every row has its own copy; 0 for a column that is not text."""
    return sum(_chunk_text_size(chunk) for chunk in column.chunks)


def _chunk_text_size(chunk: pa.Array) -> int:
    if isinstance(chunk, pa.DictionaryArray):
        if (lengths := _text_lengths(chunk.dictionary)) is None:
            return 0
        return pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    lengths = _text_lengths(chunk)
    return 0 if lengths is None else pc.sum(lengths).as_py() or 0


def _text_lengths(texts: pa.Array) -> pa.Array | None:
    """Return the length of each text in bytes; None if the array is not text."""
    if pa.types.is_string_view(texts.type):  # 16 bytes per view; the first four are the length
        views = np.frombuffer(texts.buffers()[1], np.int32)[::4]
        return pa.array(views[texts.offset : texts.offset + len(texts)].astype(np.int64))
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return pc.binary_length(texts).cast(pa.int64())
    return None
