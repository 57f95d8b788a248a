"""Fuzz test of random streams: after each batch, vectors must be finite, bounded and close to a fresh fit.

    python benchmarks/stream_fuzz.py --minutes 10                  # streams with new seeds until the time is over
    python benchmarks/stream_fuzz.py --seed 1234 --streams 1       # repeat one stream

A stream is a pure function of its seed: a start graph, parameters, and batches that grow chains, ladders, trees, grids,
stars and cliques, add and repeat edges, and remove edges and vertices, with weights that span up to sixty orders of
magnitude. A failure prints the seed and exits with status 1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _report import write_record
from numpy.typing import NDArray

from ripplevec import Batch, Embedder, Op

COMMUNITIES = 4
COMPARED_NEIGHBORS = 10
MIN_OVERLAP = 0.25
"""Minimum share of nearest neighbors, averaged over vertices, that agree with a fresh fit right after an anchor.

On these graphs it is 0.7 on average. Unrelated vectors share a few hundredths by chance.
"""


@dataclass
class RandomStream:
    """Parameters, a start graph, and an iterable of batches.

    A `structured` stream has communities that a fit always finds, so that its vectors can be compared with a fresh fit.
    """

    seed: int
    parameters: dict[str, Any]
    start: list[tuple[int, int, float]]
    structured: bool
    batches: int
    rng: np.random.Generator
    edges: dict[tuple[int, int], float] = field(default_factory=dict)
    vertices: int = 0
    clock: float = 0.0
    favorite: str = "community"  # shape of most batches
    newest: int | None = None  # vertex that the next shape may grow from

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.batches):
            yield self._create_batch()

    def _create_batch(self) -> Batch:
        shape = self.favorite if self.rng.random() < 0.7 else str(self.rng.choice(SHAPES))
        size = int(self.rng.choice([1, 2, 10, 40]))
        rows = [(u, v, self.draw_weight(), int(Op.ADD)) for u, v in self._create_edges(shape, size)]
        rows += self._create_removals(size) if self.rng.random() < 0.3 else []
        for u, v, weight, op in rows:
            self.record_event(u, v, weight, op)
        src, dst, weights, ops = (list(column) for column in zip(*rows, strict=True))
        self.clock += float(self.rng.exponential(1.0))
        time_parameters = {"half_life", "expire_after"} & set(self.parameters)
        return Batch.of(src, dst, weights, ops, np.full(len(rows), self.clock) if time_parameters else None)

    def draw_weight(self) -> float:
        """Draw the weight of the next edge."""
        limit = self.weight_exponent
        return float(10.0 ** self.rng.uniform(-limit, limit)) if limit else 1.0

    @property
    def weight_exponent(self) -> float:
        """Largest absolute power of ten of a weight."""
        return 0.0 if self.structured else (0.0, 3.0, 30.0)[self.seed % 3]

    def _create_edges(self, shape: str, size: int) -> list[tuple[int, int]]:
        """Create `size` new vertices in a shape attached to an existing vertex, or edges between existing vertices."""
        root = self._pick_vertex() if self.newest is None or self.rng.random() < 0.2 else self.newest
        first = max(self.vertices, root + 1)
        new = [first + number for number in range(size)]
        self.newest = new[-1]
        if shape == "between":
            pairs = [(self._pick_vertex(), self._pick_vertex()) for _ in range(size)]
            return [pair for pair in pairs if pair[0] != pair[1]] + [(new[-1], root)]
        if shape == "community":
            return [(v, u) for v in new for u in self._pick_members(v % COMMUNITIES, 3)]
        if shape in ("chain", "ladder"):
            steps = 1 if shape == "chain" else 2
            return [(v, v - step if v - step >= first else root) for v in new for step in range(1, steps + 1)]
        if shape == "tree":
            return [(v, root if number == 0 else first + (number - 1) // 2) for number, v in enumerate(new)]
        if shape == "grid":
            width = max(int(size**0.5), 1)
            return [(v, v - step if v - step >= first else root) for v in new for step in (1, width)]
        if shape == "star":
            return [(v, root) for v in new]
        return [(v, u) for v in new for u in new[: v - first]] + [(first, root)]  # a clique

    def _create_removals(self, size: int) -> list[tuple[int, int, float, int]]:
        pairs = list(self.edges)
        count = min(size, len(pairs) // 4)
        chosen = self.rng.choice(len(pairs), count, replace=False).tolist() if pairs else []
        rows = [(*pairs[index], 1.0, int(Op.REMOVE)) for index in chosen]
        if self.rng.random() < 0.3 and not {"half_life", "expire_after"} & set(self.parameters):
            removed_ends = {end for row in rows for end in row[:2]}
            vertex = self._pick_vertex()
            rows += [] if vertex in removed_ends else [(vertex, vertex, 1.0, int(Op.REMOVE_VERTEX))]
        return rows if "expire_after" not in self.parameters else []  # expired edges cannot be removed

    def record_event(self, u: int, v: int, weight: float, op: int) -> None:
        """Update the expected graph with one event."""
        pair = (u, v) if self.parameters.get("directed") else (min(u, v), max(u, v))
        self.vertices = max(self.vertices, u + 1, v + 1)
        if op == Op.REMOVE_VERTEX:
            self.newest = None
            self.edges = {pair: weight for pair, weight in self.edges.items() if u not in pair}
        elif op == Op.REMOVE:
            self.edges.pop(pair, None)
        else:
            self.edges[pair] = self.edges.get(pair, 0.0) + weight

    def _pick_vertex(self) -> int:
        """Pick a random vertex with an edge; return a new vertex if there is none."""
        pairs = list(self.edges)
        if not pairs:
            return self.vertices
        return int(pairs[int(self.rng.integers(len(pairs)))][int(self.rng.integers(2))])

    def _pick_members(self, community: int, count: int) -> list[int]:
        members = sorted({end for pair in self.edges for end in pair if end % COMMUNITIES == community})
        return self.rng.choice(members, min(count, len(members)), replace=False).tolist() if members else [0]


SHAPES = ("chain", "ladder", "tree", "grid", "star", "clique", "between", "community")
START_KINDS = ("communities", "attachment", "grid", "star", "pairs", "nothing")


def create_stream(seed: int, batches: int = 20) -> RandomStream:
    """Create the stream of a seed."""
    rng = np.random.default_rng(seed)
    structured = bool(rng.random() < 0.5)
    kind = "communities" if structured else str(rng.choice(START_KINDS))
    parameters: dict[str, Any] = {
        "dim": int(rng.choice([2, 8, 24])),
        "storage": str(rng.choice(["float32", "float16"])),
        "seed": int(seed % 2**31),
        "depth": [1, 2, None][int(rng.integers(3))],
        "threads": int(rng.choice([1, 2])),
    }
    if structured:
        parameters |= {"dim": 8}
    else:
        parameters["directed"] = bool(rng.random() < 0.2)
        parameters["anchor_growth"] = ["auto", 0, 0.3][int(rng.integers(3))]
        parameters |= [{}, {}, {"half_life": 3.0}, {"expire_after": 8.0}][int(rng.integers(4))]
    stream = RandomStream(seed, parameters, [], structured, batches, rng)
    stream.favorite = str(rng.choice(SHAPES))
    for u, v in _create_start(kind, rng):
        weight = stream.draw_weight()
        stream.start.append((u, v, weight))
        stream.record_event(u, v, weight, Op.ADD)
    return stream


def _create_start(kind: str, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Create the distinct edges of a start graph."""
    size = 120
    if kind == "communities":
        internal = [
            (v, u) for v in range(size) for u in rng.choice(size // COMMUNITIES, 5, replace=False) * COMMUNITIES + v % 4
        ]
        external = [(v, int(rng.integers(size))) for v in range(0, size, 3)]
        pairs = [(v, int(u)) for v, u in internal + external]
    elif kind == "attachment":
        pairs = [(v, int(u)) for v in range(1, size) for u in rng.random(3) ** 2 * v]
    elif kind == "grid":
        pairs = [(v, v - step) for v in range(size) for step in (1, 12) if v >= step]
    elif kind == "star":
        pairs = [(0, v) for v in range(1, size)]
    elif kind == "pairs":
        pairs = [(v, v + 1) for v in range(0, size, 2)]
    else:
        pairs = []
    return list({(min(pair), max(pair)): pair for pair in pairs if pair[0] != pair[1]}.values())


class StreamFault(AssertionError):
    """Vectors after a batch of a stream violate an invariant."""


def run_stream(stream: RandomStream, fresh_every: int = 5) -> dict[str, float]:
    """Apply a stream, check the model after every batch, and return statistics; raise StreamFault if a check fails.

    Vectors of structured streams are compared with a fresh fit after every anchor and every `fresh_every` batches.
    """
    model = Embedder(**stream.parameters)
    if stream.start:
        model.fit(stream.start)
    overlaps: list[float] = []
    applied = 0
    for batch in stream:
        anchors = model.engine.announced_anchors
        model.partial_fit(batch)
        applied, anchored = applied + 1, model.engine.announced_anchors > anchors
        check_vectors(model, f"seed {stream.seed}, batch {applied}")
        if stream.structured and (anchored or applied % fresh_every == 0):
            overlaps.append(check_overlap(model, stream, f"seed {stream.seed}, batch {applied}", anchored))
    model.check()
    report = model.diagnostics()
    return {
        "batches": applied,
        "anchors": report["anchors"],
        "refused": report["anchors_refused"],
        "overlap": float(np.mean(overlaps)) if overlaps else float("nan"),
        "least_overlap": float(np.min(overlaps)) if overlaps else float("nan"),
    }


def check_vectors(model: Embedder, where: str) -> None:
    """Check that rows are finite and bounded in each view, and that vectors are finite and of length one or zero."""
    engine = model.engine
    rows = engine.store.vectors[: engine.graph.row_count].astype(np.float64)
    if not np.isfinite(rows).all():
        raise StreamFault(f"{where}: a row is not finite")
    coordinates = engine.rule.coordinates  # type: ignore[attr-defined]
    if coordinates.ready:
        for part, bound in zip(coordinates.parts, coordinates.length_bounds, strict=True):
            longest = float(np.linalg.norm(rows[:, part], axis=1).max(initial=0.0))
            if longest > bound * 1.01:  # allows for rounding in half precision
                raise StreamFault(f"{where}: a row is too long: expected at most {bound}, got {longest}")
    vectors = model.to_numpy()
    lengths = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(vectors).all() or not ((lengths == 0) | (np.abs(lengths - 1) < 1e-3)).all():
        raise StreamFault(f"{where}: a vector is not finite, or its length is neither zero nor one")


def check_overlap(model: Embedder, stream: RandomStream, where: str, anchored: bool) -> float:
    """Return the share of nearest neighbors that agree with a fresh fit; too few right after an anchor are a fault.

    The fresh fit has the views that the model has chosen: other ones may describe the graph as well, but differently.
    """
    edges = [(u, v, weight) for (u, v), weight in stream.edges.items()]
    views = model.diagnostics().get("views", "auto")
    fresh = Embedder(**stream.parameters, views=views).fit(edges)
    ids = fresh.ids
    overlap = neighbor_overlap(model.vectors(ids), fresh.to_numpy())
    if anchored and overlap < MIN_OVERLAP:
        raise StreamFault(
            f"{where}: too few nearest neighbors agree with a fresh fit: expected {MIN_OVERLAP}, got {overlap:.2f}"
        )
    return overlap


def neighbor_overlap(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Return the average share of common nearest neighbors, by cosine, of the same row in two matrices."""
    neighbors = []
    for vectors in (left, right):
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -2.0)
        neighbors.append(np.argpartition(-cosines, COMPARED_NEIGHBORS, axis=1)[:, :COMPARED_NEIGHBORS])
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(*neighbors, strict=True)]))


def main() -> None:
    """Run streams until the time is over, and report total statistics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--streams", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    until, done, all_statistics = time.monotonic() + 60 * options.minutes, 0, []
    while done < options.streams and time.monotonic() < until:
        try:
            all_statistics.append(run_stream(create_stream(options.seed + done, options.batches), fresh_every=1))
        except StreamFault as fault:
            raise SystemExit(f"fault: {fault}") from fault
        done += 1
    compared = [statistics for statistics in all_statistics if not np.isnan(statistics["overlap"])]
    overlaps = [statistics["overlap"] for statistics in compared]
    minima = [statistics["least_overlap"] for statistics in compared]
    report = {
        "streams": done,
        "first_seed": options.seed,
        "batches": sum(statistics["batches"] for statistics in all_statistics),
        "anchors": sum(statistics["anchors"] for statistics in all_statistics),
        "anchors_refused": sum(statistics["refused"] for statistics in all_statistics),
        "faults": 0,
        "overlap_mean": float(np.mean(overlaps)) if overlaps else None,
        "overlap_least": float(np.min(minima)) if minima else None,
    }
    for name, value in report.items():
        print(f"{name:16} {value}")
    if options.json:
        write_record(options.json, report)


if __name__ == "__main__":
    main()
