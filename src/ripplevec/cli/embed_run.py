"""What `ripplevec embed` does: read edges, start, stream the rest, write vectors and changes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ripplevec.batch import Batch, select_rows
from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError
from ripplevec.io.readers.edge_files import DEFAULT_BATCH_SIZE, EdgeReader, open_edges
from ripplevec.io.rebatch import concatenate, split_batch, slice_batch
from ripplevec.io.vector_files import CHANGE_LOG_SUFFIXES, VECTOR_FILE_SUFFIXES, ChangeLog, check_output_path, write_vectors

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(slots=True)
class Job:
    """One run of `ripplevec embed`."""

    edges: str
    output: Path
    read: dict[str, Any]
    model: dict[str, Any]
    start: float = 0.3
    start_edges: str | None = None
    batch_size: int = 1000
    changes: Path | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    readers: list[EdgeReader] = field(default_factory=list)

    def run(self, bars: Progress) -> dict[str, Any]:
        """Do it, and tell what was done."""
        model = self._checked_model()
        first, rest, total = self._apart(bars)
        self._fit(model, first, bars)
        self._stream(model, rest, total, bars)
        vectors = model.to_numpy()
        write_vectors(self.output, model.ids, vectors)
        self.summary |= {
            "vertices": len(vectors),
            "dim": vectors.shape[1],
            "edges": self.summary["start_edges"] + self.summary["streamed_edges"],
            "skipped": sum(reader.skipped for reader in self.readers),
            "skipped_rows": [row for reader in self.readers for row in reader.skipped_rows],
            "output": str(self.output),
        }
        return self.summary

    def _checked_model(self) -> Embedder:
        """The model, once everything that can be wrong before the work is known to be right."""
        check_output_path("output", self.output, VECTOR_FILE_SUFFIXES)
        if self.changes is not None:
            check_output_path("changes", self.changes, CHANGE_LOG_SUFFIXES)
        self._check_apart()
        try:
            return Embedder(**self.model)
        except TypeError as error:
            raise InvalidValueError(f"--set: {error}") from error

    def _check_apart(self) -> None:
        """Refuse to write over what is read."""
        inputs = {Path(path).resolve() for path in (self.edges, self.start_edges) if path not in (None, "-")}
        for name, path in (("output", self.output), ("changes", self.changes)):
            if path is not None and path.resolve() in inputs:
                raise InvalidValueError.of(name, "another file than the edges are read from", str(path))

    def _open(self, path: str, batch_size: int) -> EdgeReader:
        reader = open_edges(path, batch_size=batch_size, **self.read)
        self.readers.append(reader)
        return reader

    def _apart(self, bars: Progress) -> tuple[Batch, Iterable[Batch], int | None]:
        """The edges of the start, the batches that follow, and how many edges those hold if that is known."""
        if self.start_edges is not None:
            return self._all(self.start_edges, bars), self._open(self.edges, self.batch_size), None
        edges = self._all(self.edges, bars)
        if edges.time is not None and "time" in self.read:
            edges = select_rows(edges, np.argsort(edges.time, kind="stable"))
        first = round(self.start * len(edges))
        return slice_batch(edges, 0, first), split_batch(slice_batch(edges, first, len(edges)), self.batch_size), len(edges) - first

    def _all(self, path: str, bars: Progress) -> Batch:
        task = bars.add_task("read", total=None, note="edges")
        batches = []
        for batch in self._open(path, DEFAULT_BATCH_SIZE):
            batches.append(batch)
            bars.advance(task, len(batch))
        return concatenate(batches)

    def _fit(self, model: Embedder, edges: Batch, bars: Progress) -> None:
        began = perf_counter()
        if len(edges):
            task = bars.add_task("start", total=100, note=f"{len(edges):,} edges")
            model.fit(edges, progress=lambda what, share: bars.update(task, completed=round(100 * share), note=what))
            bars.update(task, completed=100)
        self.summary |= {"start_edges": len(edges), "start_seconds": perf_counter() - began}

    def _stream(self, model: Embedder, batches: Iterable[Batch], total: int | None, bars: Progress) -> None:
        began, count, changed = perf_counter(), 0, 0
        task = bars.add_task("stream", total=total, note="")
        with ExitStack() as stack:
            log = stack.enter_context(ChangeLog(self.changes, model.dim)) if self.changes else None
            for batch in batches:
                changes = model.partial_fit(batch)
                if log:
                    log.write(changes)
                count, changed = count + len(batch), changed + len(changes) + len(changes.removed)
                bars.update(task, completed=count, note=f"{count / (perf_counter() - began):,.0f} edges/s")
        seconds = perf_counter() - began
        self.summary |= {"streamed_edges": count, "changes": changed, "stream_seconds": seconds}
