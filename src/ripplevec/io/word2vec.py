"""Vectors in the formats of word2vec, which gensim, node2vec and many others read: text, or binary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ripplevec.batch import Id
from ripplevec.errors import InvalidValueError

_ROWS = 1 << 14  # turned into text together


def as_words(ids: Sequence[Id]) -> list[str]:
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
    words = as_words(ids)
    for word in words:
        if len(word.split()) != 1 or word.strip() != word:
            raise InvalidValueError.of("ids", "ids without blanks, which end a word in these formats", word)
    return words
