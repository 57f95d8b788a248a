"""Where vectors go: Parquet, CSV, npz or word2vec files, and the log of changes; a file appears whole or not at all."""

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
from ripplevec.io.atomic_file import atomic_write

VECTOR_FILE_SUFFIXES = (".parquet", ".csv", ".npz", ".txt", ".bin")
CHANGE_LOG_SUFFIXES = (".parquet", ".jsonl")


def check_output_path(name: str, path: str | os.PathLike[str], choices: Sequence[str]) -> str:
    """The suffix of a file to write; an error where it is not one of the choices or its folder is not there."""
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
    """Write one vector per id to a .parquet (id, vector), .csv (id, v0, v1, …) or .npz (ids, vectors) file.

    Or as word2vec does: .txt its text, .bin its binary format. Vectors of float16 stay so in Parquet and npz.
    """
    suffix = check_output_path("output", path, VECTOR_FILE_SUFFIXES)
    with atomic_write(path) as part:
        if suffix in (".txt", ".bin"):
            (write_text if suffix == ".txt" else write_binary)(part, ids, np.asarray(vectors, np.float32))
            return
        names = id_array(ids)
        if suffix == ".parquet":
            pq.write_table(pa.table({"id": names, "vector": vector_array(vectors)}), part)
        elif suffix == ".csv":
            columns = {f"v{column}": vectors[:, column] for column in range(vectors.shape[1])}
            arrow_csv.write_csv(pa.table({"id": names, **columns}), part)
        else:
            with part.open("wb") as file:
                np.savez(file, ids=_numpy_ids(names), vectors=vectors)


def id_array(ids: Sequence[Id]) -> pa.Array:
    """Ids as one Arrow column: int64 where all are such integers, else text (1 and "1" then look the same)."""
    if all(isinstance(name, int) for name in ids):
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(ids, pa.int64())
    return pa.array([str(name) for name in ids], pa.large_string())


def _numpy_ids(names: pa.Array) -> NDArray[Any]:
    return np.asarray(names.to_numpy() if names.type == pa.int64() else np.array(names.to_pylist(), np.str_))


def vector_array(vectors: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """A matrix as an Arrow column of fixed-size lists of float32, or float16 as given, null where a row is missing."""
    kind = np.float16 if vectors.dtype == np.float16 else np.float32
    flat = pa.array(np.ascontiguousarray(vectors, kind).reshape(-1))
    mask = None if missing is None else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1], mask=mask)


class ChangeLog:
    """The changes of every batch, a row per vertex, in a .parquet or .jsonl file that appears once it is closed.

    The first batch says whether the ids are integers or text. In Parquet that holds for all of them.
    """

    def __init__(self, path: str | os.PathLike[str], dim: int) -> None:
        suffix = check_output_path("changes", path, CHANGE_LOG_SUFFIXES)
        self._stack = ExitStack()
        part = self._stack.enter_context(atomic_write(path))
        file = _ParquetLog(part, dim) if suffix == ".parquet" else _JsonLog(part)
        self._write = file.write
        self._stack.callback(file.close)

    def __enter__(self) -> ChangeLog:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def write(self, changes: Changes) -> None:
        """Put the changes of one batch behind those before it."""
        self._write(changes)


class _JsonLog:
    """Changes as lines of JSON, where ids keep their kind."""

    def __init__(self, part: Path) -> None:
        self._file = part.open("w", encoding="utf-8")

    def close(self) -> None:
        self._file.close()

    def write(self, changes: Changes) -> None:
        arrived, vectors = np.asarray(changes.arrived).tolist(), np.asarray(changes.vectors).tolist()
        for name, new, vector in zip(changes.ids, arrived, vectors, strict=True):
            self._line(changes, name, new, vector)
        for name in changes.removed:
            self._line(changes, name, False, None)

    def _line(self, changes: Changes, name: Id, arrived: bool, vector: list[float] | None) -> None:
        flags = {"arrived": arrived, "removed": vector is None, "anchored": changes.anchored}
        self._file.write(json.dumps({"sequence": changes.sequence, "id": name, **flags, "vector": vector}) + "\n")


class _ParquetLog:
    """Changes as a Parquet table, a row group per batch."""

    def __init__(self, part: Path, dim: int) -> None:
        self._part, self._dim = part, dim
        self._writer: pq.ParquetWriter | None = None

    def close(self) -> None:
        self._opened(pa.int64()).close()

    def write(self, changes: Changes) -> None:
        table = self._table(changes)
        self._opened(table.schema.field("id").type).write_table(table)

    def _opened(self, kind: pa.DataType) -> pq.ParquetWriter:
        self._writer = self._writer or pq.ParquetWriter(self._part, _log_schema(kind, self._dim))
        return self._writer

    def _table(self, changes: Changes) -> pa.Table:
        names = id_array([*changes.ids, *changes.removed])
        if self._writer:
            names = _as_before(names, self._writer.schema.field("id").type)
        return pa.table({**change_columns(changes, self._dim), "id": names}, _log_schema(names.type, self._dim))


def change_columns(changes: Changes, dim: int) -> dict[str, Any]:
    """What a row per changed vertex, and then per removed one, says of it, but for its id."""
    kept, gone = len(changes.ids), len(changes.removed)
    removed = np.arange(kept + gone) >= kept
    vectors = np.zeros((kept + gone, dim), np.float32)
    vectors[:kept] = changes.vectors
    return {
        "sequence": np.full(kept + gone, changes.sequence),
        "arrived": np.append(np.asarray(changes.arrived, bool), np.zeros(gone, bool)),
        "removed": removed,
        "anchored": np.full(kept + gone, changes.anchored),
        "vector": vector_array(vectors, removed),
    }


def _log_schema(kind: pa.DataType, dim: int) -> pa.Schema:
    flags = [(flag, pa.bool_()) for flag in ("arrived", "removed", "anchored")]
    return pa.schema([("sequence", pa.int64()), ("id", kind), *flags, ("vector", pa.list_(pa.float32(), dim))])


def _as_before(names: pa.Array, kind: pa.DataType) -> pa.Array:
    if names.type != kind and kind == pa.int64():
        raise FormatError("changes: expected integer ids as before, got text; read all ids as text with --ids str")
    return names.cast(kind)


_ROWS = 1 << 14  # turned into text together


def ids_to_words(ids: Sequence[Id]) -> list[str]:
    """Ids as text; an error where two of them would become the same."""
    words = [str(name) for name in ids]
    if len(set(words)) < len(words):
        twice, _ = Counter(words).most_common(1)[0]
        raise InvalidValueError.of("ids", "ids that differ as text", f"both {twice} and {twice!r}")
    return words


def write_text(path: Path, ids: Sequence[Id], vectors: NDArray[np.float32]) -> None:
    """A line with both sizes, then a line per vertex: its id and the numbers of its vector, one blank between them."""
    words = _unbroken(ids)
    with path.open("wb") as file:
        file.write(_sizes(vectors))
        for first in range(0, len(words), _ROWS):
            rows = slice(first, first + _ROWS)
            numbers = (pa.array(column).cast(pa.string()) for column in vectors[rows].T)
            lines = pc.binary_join_element_wise(pa.array(words[rows], pa.string()), *numbers, " ")
            file.writelines(f"{line}\n".encode() for line in lines.to_pylist())


def write_binary(path: Path, ids: Sequence[Id], vectors: NDArray[np.float32]) -> None:
    """The same with every vector as the bytes of its float32 numbers."""
    rows = np.ascontiguousarray(vectors, "<f4")
    with path.open("wb") as file:
        file.write(_sizes(vectors))
        for word, row in zip(_unbroken(ids), rows, strict=True):
            file.write(word.encode() + b" " + row.tobytes() + b"\n")


def _sizes(vectors: NDArray[np.float32]) -> bytes:
    return f"{vectors.shape[0]} {vectors.shape[1]}\n".encode()


def _unbroken(ids: Sequence[Id]) -> list[str]:
    """Ids as words: a blank ends a word, and there is no way to write one into it."""
    words = ids_to_words(ids)
    for word in words:
        if len(word.split()) != 1 or word.strip() != word:
            raise InvalidValueError.of("ids", "ids without blanks, which end a word in these formats", word)
    return words
