"""Arrow IPC streams: encoding a table, and bounding the memory that an untrusted stream needs when it is decoded.

A compressed buffer starts with its claimed decompressed length, and Arrow allocates that much memory before it looks
further: a few bytes could claim gigabytes. Compressed streams are therefore refused. Dictionary-encoded text also grows
when it is decoded, because every row gets its own copy.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def encode_arrow_stream(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Return the schema and the rows as the bytes of an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write(rows)
    return bytes(sink.getvalue().to_pybytes())


# Size of an untrusted stream


def unpacked_size(stream: bytes) -> int:
    """Return the total size of all message bodies; raise `ArrowInvalid` if one of them is compressed.

    pyarrow does not report whether a message is compressed, so it decodes the messages with bodies of zeros first. A
    compressed buffer of zeros claims no memory, and no codec accepts it. Only a compressed buffer without content
    passes: when the stream is decoded, Arrow reserves the claimed memory, finds no content before it uses any, and
    fails.
    """
    blank_stream, size = pa.BufferOutputStream(), 0
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)):
        encoded, body_size = message.serialize(), 0 if message.body is None else message.body.size
        blank_stream.write(encoded.slice(0, encoded.size - body_size))
        blank_stream.write(bytes(body_size))
        size += body_size
    _decode_blank_stream(blank_stream.getvalue())
    return size


def _decode_blank_stream(stream: pa.Buffer) -> None:
    with pa.ipc.open_stream(stream) as reader:
        try:
            for _ in reader:
                pass
        except OSError as error:
            raise pa.ArrowInvalid(
                "a compressed buffer, which is not supported. Write the stream without compression"
            ) from error


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
