"""A data set from one's own files: the edges in any format that is read, and a label for every vertex."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Id, ids_to_list
from ripplevec.errors import FormatError, shorten
from ripplevec.lab.datasets.base import Dataset

PathLike = str | os.PathLike[str]

HEADERS = ("id", "vertex", "node", "name")
"""What the first field of a file of labels may say where its first line is a header."""


def from_files(edges: PathLike, labels: PathLike, *, name: str | None = None, **options: Any) -> Dataset:
    """A data set from a file of edges and a file of labels; vertices are numbered by first mention among the edges.

    Labels are lines of text, a vertex and its label, and become numbers into `class_names`. `options` are those of
    `io.open_edges`, for the edges. Weights are not kept.
    """
    pairs, names = _read_edges(edges, options)
    given = _read_labels(labels, set(map(str, names)))
    _check(given, names, edges, labels)
    kinds, codes = np.unique([given[str(vertex)] for vertex in names], return_inverse=True)
    return Dataset.of(name or PurePath(edges).name.split(".")[0], pairs, codes, names, kinds.tolist())


def _read_edges(edges: PathLike, options: dict[str, Any]) -> tuple[NDArray[np.int64], list[Id]]:
    from ripplevec.graph.ids import Ids
    from ripplevec.io.readers.edge_files import open_edges

    ids = Ids()
    pairs = [np.column_stack(ids.intern(batch.src, batch.dst)[:2]) for batch in open_edges(edges, **options)]
    return np.concatenate(pairs), ids.names(np.arange(len(ids)))


def _read_labels(labels: PathLike, known: set[str]) -> dict[str, str]:
    """The label of every vertex that has one, by its name as text: a file of labels cannot tell 1 from "1"."""
    from ripplevec.io.readers.edge_files import open_edges

    given: dict[str, str] = {}
    for batch in open_edges(labels, format="csv", ids="str", weight="none", time="none"):
        for vertex, label in zip(map(str, ids_to_list(batch.src)), map(str, ids_to_list(batch.dst)), strict=True):
            if not given and vertex.lower() in HEADERS and vertex not in known:
                continue
            if given.setdefault(vertex, label) != label:
                raise FormatError(
                    f"{labels}: expected one label per vertex, got {given[vertex]!r} and {label!r} for {vertex!r}"
                )
    return given


def _check(given: dict[str, str], names: list[Id], edges: PathLike, labels: PathLike) -> None:
    texts = set(map(str, names))
    if len(texts) < len(names):
        raise FormatError(f"{edges}: expected ids of one kind, got some both as text and as integers")
    if unknown := [vertex for vertex in given if vertex not in texts]:
        raise FormatError(
            f"{labels}: expected labels of vertices of {edges}, got {len(unknown):,} others, {shorten(unknown)}"
        )
    if missing := [vertex for vertex in names if str(vertex) not in given]:
        raise FormatError(
            f"{labels}: expected a label for every vertex of {edges}, got none for {len(missing):,}, {shorten(missing)}"
        )
