"""How much memory an Arrow stream from outside would take up, known before anything in it is unpacked.

A compressed buffer begins with the length that it claims to unpack to, and Arrow takes so much memory before it looks
further. Where the buffers lie stands in the metadata of a message: tables of FlatBuffers, of which a few fields are
read here (Message.header, DictionaryBatch.data, RecordBatch.buffers and RecordBatch.compression of Arrow's format).
Text that stands once and is referred to often becomes longer, too, when every row gets its own.
"""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HEADER, _CUSTOM, _DATA, _BUFFERS, _COMPRESSION = 2, 4, 1, 2, 3  # the numbers of the fields within their tables
_PLAIN = -1  # the length that a buffer claims which was left as it is


def unpacked_size(stream: bytes) -> int:
    """What the bodies of all messages of a stream claim to be when they are unpacked."""
    return sum(_claimed(message) for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)))


def _claimed(message: pa.ipc.Message) -> int:
    if message.type not in ("record batch", "dictionary"):
        return 0
    data, body = memoryview(message.metadata), memoryview(message.body)
    try:
        if message.metadata_version < pa.ipc.MetadataVersion.V5 and _field(data, _reference(data, 0), _CUSTOM):
            raise pa.ArrowInvalid("metadata of Arrow before 1.0, which may hide a compression")
        return _lengths(data, body, message.type == "dictionary")
    except struct.error as error:
        raise pa.ArrowInvalid(f"metadata that points outside of itself ({error})") from error


def _lengths(data: memoryview, body: memoryview, is_dictionary: bool) -> int:
    batch = _reference(data, _field(data, _reference(data, 0), _HEADER))
    if is_dictionary:
        batch = _reference(data, _field(data, batch, _DATA))
    buffers, compression = _field(data, batch, _BUFFERS), _field(data, batch, _COMPRESSION)
    if not compression or not buffers:
        return len(body)
    vector = _reference(data, buffers)
    (count,) = struct.unpack_from("<I", data, vector)
    places = (struct.unpack_from("<qq", data, vector + 4 + 16 * number) for number in range(count))
    return sum(_length(body, offset, length) for offset, length in places if length)


def _length(body: memoryview, offset: int, length: int) -> int:
    if offset < 0 or length < 8:
        raise pa.ArrowInvalid("a buffer that is too short for its length")
    (claimed,) = struct.unpack_from("<q", body, offset)
    if claimed < _PLAIN:  # it would be taken off from the others
        raise pa.ArrowInvalid(f"a buffer of {claimed} bytes")
    return length if claimed == _PLAIN else int(claimed)


def _reference(data: memoryview, place: int) -> int:
    """Where something lies that is referred to from this place."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: memoryview, table: int, number: int) -> int:
    """Where a field of a table lies; 0 where the table does not have it."""
    listed = table - int(struct.unpack_from("<i", data, table)[0])
    if listed < 0:
        raise struct.error("a table before its beginning")
    (size,) = struct.unpack_from("<H", data, listed)
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", data, listed + entry)[0] if entry < size else 0
    return table + int(offset) if offset else 0


def decoded_text_size(column: pa.ChunkedArray) -> int:
    """What a checked column of text takes up when every row has its own; 0 where it holds no text."""
    return sum(_text_bytes(chunk) for chunk in column.chunks)


def _text_bytes(chunk: pa.Array) -> int:
    if isinstance(chunk, pa.DictionaryArray):
        if (lengths := _text_lengths(chunk.dictionary)) is None:
            return 0
        return pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    lengths = _text_lengths(chunk)
    return 0 if lengths is None else pc.sum(lengths).as_py() or 0


def _text_lengths(texts: pa.Array) -> pa.Array | None:
    """The bytes of each; None where they are no text."""
    if pa.types.is_string_view(texts.type):  # 16 bytes each, of which the first four are the length
        views = np.frombuffer(texts.buffers()[1], np.int32)[::4]
        return pa.array(views[texts.offset : texts.offset + len(texts)].astype(np.int64))
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        return pc.binary_length(texts).cast(pa.int64())
    return None


def encode_arrow_stream(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The schema and the rows, as one stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return bytes(sink.getvalue().to_pybytes())
