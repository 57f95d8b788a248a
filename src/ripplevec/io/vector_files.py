"""Writers of vector files (Parquet, CSV, npz, word2vec) and change logs; a file appears complete or not at all."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.changes import Changes
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.util.checked_directory import atomic_write

VECTOR_FILE_SUFFIXES = (".parquet", ".csv", ".npz", ".txt", ".bin")
CHANGE_LOG_SUFFIXES = (".parquet", ".jsonl")

_WORD2VEC_ROWS = 1 << 14  # rows formatted as text at once


def check_output_path(name: str, path: str | os.PathLike[str], choices: Sequence[str]) -> str:
    """Return the suffix of an output file; raise if it is not one of the choices or the folder does not exist."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in choices:
        raise InvalidValueError.of(name, "a file name that ends in " + ", ".join(choices), str(path))
    if not target.parent.is_dir():
        raise InvalidValueError.of(name, "a file in a folder that exists", str(path))
    return suffix


def write_vectors(
    path: str | os.PathLike[str], ids: Sequence[Id], vectors: NDArray[np.float32] | NDArray[np.float16]
) -> None:
    """Write one vector per id to a file whose suffix selects the format.

    Parameters
    ----------
    path : str or path
        .parquet (columns id, vector), .csv (id, v0, v1, …), .npz (arrays ids, vectors), .txt (word2vec text) or .bin
        (word2vec binary).
    ids : sequence of int or str
        Integers stay integers if all ids are; otherwise all are written as text.
    vectors : array of shape (len(ids), dim)
        float16 vectors stay float16 in Parquet and npz.

    Raises
    ------
    InvalidValueError
        If the suffix is unknown, the folder does not exist, the numbers of vectors and ids differ, or word2vec cannot
        represent an id.
    """
    suffix = check_output_path("output", path, VECTOR_FILE_SUFFIXES)
    if np.ndim(vectors) != 2 or len(vectors) != len(ids):
        raise InvalidValueError.of("vectors", f"shape ({len(ids)}, dim), one row per id", f"shape {np.shape(vectors)}")
    with atomic_write(path) as part:
        if suffix in (".txt", ".bin"):
            write = _write_word2vec_text if suffix == ".txt" else _write_word2vec_binary
            write(part, ids, np.asarray(vectors, np.float32))
            return
        id_column = ids_to_arrow(ids)
        if suffix == ".parquet":
            pq.write_table(pa.table({"id": id_column, "vector": vectors_to_arrow(vectors)}), part)
        elif suffix == ".csv":
            write_vectors_csv(part, ids, vectors)
        else:
            with part.open("wb") as file:
                np.savez(file, ids=_ids_to_numpy(id_column), vectors=vectors)


def write_vectors_csv(output: Any, ids: Sequence[Id], vectors: NDArray[Any]) -> None:
    """Write the columns id, v0, v1, … to a path or a binary stream."""
    columns = {f"v{column}": vectors[:, column] for column in range(vectors.shape[1])}
    arrow_csv.write_csv(pa.table({"id": ids_to_arrow(ids), **columns}), output)


# Arrow columns


def ids_to_arrow(ids: Sequence[Id]) -> pa.Array:
    """Return ids as an Arrow column: int64 if all fit, otherwise text, where 1 and "1" are the same."""
    if all(isinstance(name, int) for name in ids):
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(ids, pa.int64())
    return pa.array([str(name) for name in ids], pa.large_string())


def _ids_to_numpy(ids: pa.Array) -> NDArray[Any]:
    return np.asarray(ids.to_numpy() if ids.type == pa.int64() else np.array(ids.to_pylist(), np.str_))


def vectors_to_arrow(vectors: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return a matrix as an Arrow column of fixed-size lists, float16 or else float32, with null for missing rows."""
    dtype = np.float16 if vectors.dtype == np.float16 else np.float32
    flat = pa.array(np.ascontiguousarray(vectors, dtype).reshape(-1))
    mask = None if missing is None else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1], mask=mask)


def changes_to_columns(changes: Changes, dim: int) -> dict[str, Any]:
    """Return the columns of a change log except the ids: one row per changed vertex, then one per removed vertex."""
    changed_count, removed_count = len(changes.ids), len(changes.removed)
    count = changed_count + removed_count
    removed = np.arange(count) >= changed_count
    vectors = np.zeros((count, dim), np.float32)
    vectors[:changed_count] = changes.vectors
    return {
        "sequence": np.full(count, changes.sequence),
        "arrived": np.append(np.asarray(changes.arrived, bool), np.zeros(removed_count, bool)),
        "removed": removed,
        "anchored": np.full(count, changes.anchored),
        "vector": vectors_to_arrow(vectors, removed),
    }


# word2vec formats, which gensim, node2vec and many other tools read


def ids_to_words(ids: Sequence[Id]) -> list[str]:
    """Return ids as text; raise `InvalidValueError` if two ids have the same text."""
    words = [str(name) for name in ids]
    if len(set(words)) < len(words):
        duplicate, _ = Counter(words).most_common(1)[0]
        raise InvalidValueError.of("ids", "ids that differ as text", f"both {duplicate} and {duplicate!r}")
    return words


def _write_word2vec_text(path: Path, ids: Sequence[Id], vectors: NDArray[np.float32]) -> None:
    """Write a line with both sizes, then a line per vertex: id and vector components, separated by blanks."""
    words = _check_words(ids)
    with path.open("wb") as file:
        file.write(_word2vec_header(vectors))
        for first in range(0, len(words), _WORD2VEC_ROWS):
            rows = slice(first, first + _WORD2VEC_ROWS)
            numbers = (pa.array(column).cast(pa.string()) for column in vectors[rows].T)
            lines = pc.binary_join_element_wise(pa.array(words[rows], pa.string()), *numbers, " ")
            file.writelines(f"{line}\n".encode() for line in lines.to_pylist())


def _write_word2vec_binary(path: Path, ids: Sequence[Id], vectors: NDArray[np.float32]) -> None:
    """Write a line with both sizes, then for each vertex its id and the bytes of its float32 vector."""
    rows = np.ascontiguousarray(vectors, "<f4")
    with path.open("wb") as file:
        file.write(_word2vec_header(vectors))
        for word, row in zip(_check_words(ids), rows, strict=True):
            file.write(word.encode() + b" " + row.tobytes() + b"\n")


def _word2vec_header(vectors: NDArray[np.float32]) -> bytes:
    return f"{vectors.shape[0]} {vectors.shape[1]}\n".encode()


def _check_words(ids: Sequence[Id]) -> list[str]:
    """Return ids as words; raise if an id contains a blank, which ends a word and cannot be escaped."""
    words = ids_to_words(ids)
    for word in words:
        if len(word.split()) != 1 or word.strip() != word:
            raise InvalidValueError.of("ids", "ids without blanks, which end a word in these formats", word)
    return words


# Change logs


class ChangeLog:
    """Writes the changes of every batch to a .parquet or .jsonl file, one row per vertex.

    Use it as a context manager; the file appears when it is closed. In Parquet the first batch decides whether all ids
    are integers or text.
    """

    def __init__(self, path: str | os.PathLike[str], dim: int) -> None:
        suffix = check_output_path("changes", path, CHANGE_LOG_SUFFIXES)
        self._stack = ExitStack()
        part = self._stack.enter_context(atomic_write(path))
        writer = _ParquetLogWriter(part, dim) if suffix == ".parquet" else _JsonLogWriter(part)
        self._write = writer.write
        self._stack.callback(writer.close)

    def __enter__(self) -> ChangeLog:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, changes: Changes) -> None:
        """Append the changes of one batch."""
        self._write(changes)


class _JsonLogWriter:
    """Writes changes as JSON Lines, where ids keep their type."""

    def __init__(self, part: Path) -> None:
        self._file = part.open("w", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def write(self, changes: Changes) -> None:
        arrived, vectors = np.asarray(changes.arrived).tolist(), np.asarray(changes.vectors).tolist()
        for name, is_new, vector in zip(changes.ids, arrived, vectors, strict=True):
            self._write_line(changes, name, is_new, vector)
        for name in changes.removed:
            self._write_line(changes, name, False, None)

    def _write_line(self, changes: Changes, name: Id, arrived: bool, vector: list[float] | None) -> None:
        flags = {"arrived": arrived, "removed": vector is None, "anchored": changes.anchored}
        self._file.write(json.dumps({"sequence": changes.sequence, "id": name, **flags, "vector": vector}) + "\n")


class _ParquetLogWriter:
    """Writes changes as a Parquet table, one row group per batch."""

    def __init__(self, part: Path, dim: int) -> None:
        self._part, self._dim = part, dim
        self._writer: pq.ParquetWriter | None = None

    def close(self) -> None:
        self._open_writer(pa.int64()).close()

    def write(self, changes: Changes) -> None:
        table = self._build_table(changes)
        self._open_writer(table.schema.field("id").type).write_table(table)

    def _open_writer(self, id_type: pa.DataType) -> pq.ParquetWriter:
        self._writer = self._writer or pq.ParquetWriter(self._part, _change_log_schema(id_type, self._dim))
        return self._writer

    def _build_table(self, changes: Changes) -> pa.Table:
        ids = ids_to_arrow([*changes.ids, *changes.removed])
        if self._writer:
            ids = _cast_ids(ids, self._writer.schema.field("id").type)
        return pa.table({**changes_to_columns(changes, self._dim), "id": ids}, _change_log_schema(ids.type, self._dim))


def _change_log_schema(id_type: pa.DataType, dim: int) -> pa.Schema:
    flags = [(flag, pa.bool_()) for flag in ("arrived", "removed", "anchored")]
    return pa.schema([("sequence", pa.int64()), ("id", id_type), *flags, ("vector", pa.list_(pa.float32(), dim))])


def _cast_ids(ids: pa.Array, id_type: pa.DataType) -> pa.Array:
    if ids.type != id_type and id_type == pa.int64():
        raise FormatError(
            "changes: expected integer ids as before, got text. Read all ids as text: ids='str', --ids str."
        )
    return ids.cast(id_type)
