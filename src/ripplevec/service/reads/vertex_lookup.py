"""Reads of the model that belong together: a vector with the sequence number at which it was so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, id_column
from ripplevec.embedder import Embedder
from ripplevec.engine.engine import Engine
from ripplevec.errors import InvalidValueError, UnknownVertexError

IdKind = Literal["auto", "text", "integer"]


def parse_id_kind(text: str) -> IdKind:
    """What an id in an address is said to be."""
    if text not in get_args(IdKind):
        raise InvalidValueError.of("kind", "auto, text or integer", text)
    return cast(IdKind, text)


def candidate_ids(text: str, kind: IdKind) -> list[Id]:
    """What an id in an address may mean: the text, and the integer where it is written as one."""
    digits = text.removeprefix("-")
    integer = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 1024 else None
    if integer is not None and str(integer) != text:
        integer = None
    found: list[Id] = [] if kind == "integer" else [text]
    return found if integer is None or kind == "text" else [*found, integer]


def known(model: Embedder, text: str, kind: IdKind) -> Id:
    """The vertex that an address names, the text before the integer."""
    for vertex in candidate_ids(text, kind):
        if vertex in model:
            return vertex
    raise UnknownVertexError([text])


def vertex(engine: Engine, text: str, kind: IdKind) -> dict[str, Any]:
    """All about one vertex, while nobody writes; its age is the number of vertices that arrived after it."""
    for name in candidate_ids(text, kind):
        row = engine.find_row(name)
        if row >= 0:
            info = engine.vertex_info(row)
            return {
                "id": name,
                "vector": engine.get_vector(row).tolist(),
                "degree": info.degree,
                "strength": info.strength,
                "placed": info.placed,
                "arrival": info.arrival,
                "age": engine.next_arrival - 1 - info.arrival,
                "sequence": engine.sequence,
            }
    raise UnknownVertexError([text])


def vectors(model: Embedder, ids: Sequence[Id]) -> tuple[int, NDArray[np.bool_], NDArray[np.float32]]:
    """The sequence number, which of these vertices are known, and the vectors of those."""
    column = id_column(list(ids))
    with model.lock.reading():
        engine = model.engine
        rows = engine.find_rows(column)
        there = rows >= 0
        return engine.sequence, there, engine.get_vectors(rows[there])


def preview(model: Embedder, neighbors: Sequence[Id], weights: Any) -> tuple[int, NDArray[np.float32]]:
    """The sequence number, and the vector that a vertex with these neighbors would get."""
    with model.lock.reading():
        return model.engine.sequence, model.preview(neighbors, weights)


def model_stats(model: Embedder) -> dict[str, Any]:
    """How the model stands, as far as that takes no time."""
    with model.lock.reading():
        engine = model.engine
        return {
            "sequence": engine.sequence,
            "vertices": len(engine),
            "edges": engine.edges,
            "dim": model.dim,
            "rule": model.rule,
            "ready": engine.ready,
            "anchors": engine.anchors,
            "growth_since_anchor": float(engine.growth),
            "events": engine.events,
            "changes": engine.changes,
        }


def digest(model: Embedder) -> tuple[int, str]:
    """The digest of the state, with the sequence number at which it was so."""
    with model.lock.exclude_writers():
        return model.engine.sequence, model.engine.digest()
