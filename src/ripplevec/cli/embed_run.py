"""The work of `ripplevec embed`: read edges, fit the initial graph, stream the rest, write vectors and changes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ripplevec.batch import AttributeRows, Batch, select_rows
from ripplevec.cli.console import STANDARD_OUTPUT
from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, ZeroVectorsWarning
from ripplevec.io.readers.attribute_files import PendingAttributes, read_attribute_file
from ripplevec.io.readers.edge_files import DEFAULT_BATCH_SIZE, EdgeReader, open_edges
from ripplevec.io.readers.option_syntax import as_flags
from ripplevec.io.rebatch import concatenate, slice_batch, split_batch
from ripplevec.io.vector_files import (
    CHANGE_LOG_SUFFIXES,
    VECTOR_FILE_SUFFIXES,
    ChangeLog,
    check_output_path,
    write_vectors,
    write_vectors_csv,
)
from ripplevec.util.checked_directory import check_replaceable
from ripplevec.util.compilation import working_clock

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(slots=True)
class EmbedJob:
    """One run of `ripplevec embed`; `read_options` go to `open_edges`, `parameters` to `Embedder`."""

    edges: str
    output: Path | None
    read_options: dict[str, Any]
    parameters: dict[str, Any]
    start: float = 0.3
    start_edges: str | None = None
    batch_size: int = 1000
    changes: Path | None = None
    save: Path | None = None
    attributes: Path | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    readers: list[EdgeReader] = field(default_factory=list)
    _pending: PendingAttributes | None = None  # attributes of vertices that have not arrived

    def run(self, bars: Progress) -> dict[str, Any]:
        """Compute and write the vectors, and return the summary."""
        self._check_paths()
        model = Embedder(**self.parameters)
        if self.attributes is not None:
            self._pending = PendingAttributes(read_attribute_file(self.attributes))
            if model.attribute_dim == "auto":
                model.set_params(attribute_dim=min(model.dim // 2, self._pending.rows.width or model.dim))
        first, rest, total = self._split_edges(bars)
        self._fit(model, first, bars)
        self._stream(model, rest, total, bars)
        self._write(model)
        engine = model.engine
        self.summary |= {
            "vertices": len(engine),
            "edges": engine.edges,
            "dim": model.dim,
            "started": engine.ready,
            "all_zero": not any(model[vertex].any() for vertex in model.ids),
            "connected": engine.count_connected(),
            "start_size": engine.start_size,
            **engine.describe_views(),
            "skipped": sum(reader.skipped for reader in self.readers),
            "skipped_rows": [row for reader in self.readers for row in reader.skipped_rows],
            "output": None if self.output is None else str(self.output),
            "model": None if self.save is None else str(self.save),
        }
        return self.summary

    def _write(self, model: Embedder) -> None:
        if self.save is not None:
            model.save(self.save)
        if self.output is None:
            return
        if str(self.output) == STANDARD_OUTPUT:
            write_vectors_csv(sys.stdout.buffer, model.ids, model.to_numpy())
        else:
            write_vectors(self.output, model.ids, model.to_numpy())

    def _check_paths(self) -> None:
        """Check that the output files can be written and are not input files, before any work is done."""
        if self.output is not None and str(self.output) != STANDARD_OUTPUT:
            check_output_path("output", self.output, VECTOR_FILE_SUFFIXES)
        if self.save is not None:
            check_replaceable(self.save)
        if self.changes is not None:
            check_output_path("changes", self.changes, CHANGE_LOG_SUFFIXES)
        inputs = {Path(path).resolve() for path in (self.edges, self.start_edges) if path not in (None, "-")}
        for name, path in (("output", self.output), ("changes", self.changes)):
            if path is not None and path.resolve() in inputs:
                raise InvalidValueError.of(name, "a file other than the input files", str(path))

    def _open_reader(self, path: str, batch_size: int) -> EdgeReader:
        reader = open_edges(path, batch_size=batch_size, syntax=as_flags, **self.read_options)
        self.readers.append(reader)
        return reader

    def _split_edges(self, bars: Progress) -> tuple[Batch, Iterable[Batch], int | None]:
        """Return the edges of the initial graph, the batches that follow, and the number of their edges if known."""
        if self.start_edges is not None:
            return self._read_all(self.start_edges, bars), self._open_reader(self.edges, self.batch_size), None
        edges = self._read_all(self.edges, bars)
        if edges.time is not None and "time" in self.read_options:
            edges = select_rows(edges, np.argsort(edges.time, kind="stable"))
        start_count = round(self.start * len(edges))
        rest = slice_batch(edges, start_count, len(edges))
        return slice_batch(edges, 0, start_count), split_batch(rest, self.batch_size), len(rest)

    def _read_all(self, path: str, bars: Progress) -> Batch:
        task = bars.add_task("read", total=None, note="edges")
        batches = []
        for batch in self._open_reader(path, DEFAULT_BATCH_SIZE):
            batches.append(batch)
            bars.advance(task, len(batch))
        return concatenate(batches)

    def _fit(self, model: Embedder, edges: Batch, bars: Progress) -> None:
        began = working_clock()
        if len(edges):
            task = bars.add_task("start", total=100, note=f"{len(edges):,} edges")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ZeroVectorsWarning)  # the summary tells whether vectors stayed zero
                model.fit(
                    edges,
                    attributes=self._take_attributes(edges),
                    progress=lambda stage, share: bars.update(task, completed=round(100 * share), note=stage),
                )
            bars.update(task, completed=100)
        self.summary |= {"start_rows": len(edges), "start_seconds": working_clock() - began}

    def _take_attributes(self, batch: Batch) -> AttributeRows | None:
        return None if self._pending is None else self._pending.take(batch)

    def _stream(self, model: Embedder, batches: Iterable[Batch], total: int | None, bars: Progress) -> None:
        began, row_count, change_count = working_clock(), 0, 0
        task = bars.add_task("stream", total=total, note="")
        with ExitStack() as stack:
            log = stack.enter_context(ChangeLog(self.changes, model.dim)) if self.changes else None
            for batch in batches:
                changes = model.partial_fit(batch, attributes=self._take_attributes(batch))
                if log:
                    log.write(changes)
                row_count += len(batch)
                change_count += len(changes) + len(changes.removed)
                bars.update(task, completed=row_count, note=f"{row_count / (working_clock() - began):,.0f} edges/s")
            if self._pending is not None and (rest := self._pending.take_rest()) is not None:
                changes = model.partial_fit([], attributes=rest)  # vertices without edges
                change_count += len(changes)
                if log:
                    log.write(changes)
        seconds = working_clock() - began
        self.summary |= {"streamed_rows": row_count, "changes": change_count, "stream_seconds": seconds}
