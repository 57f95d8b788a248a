"""Random streams of every shape: after each batch vectors must be finite, bounded and close to a fresh fit.

    python benchmarks/stream_fuzz.py --minutes 10                  # streams with new seeds until the time is over
    python benchmarks/stream_fuzz.py --seed 1234 --streams 1       # one stream again

A stream is a pure function of its seed: a start graph, parameters, and batches that grow chains, ladders, trees, grids,
stars and cliques, add and repeat edges, and remove edges and vertices, with weights of one order or of sixty. A failure
prints the seed and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from _report import write
from numpy.typing import NDArray

from ripplevec import Batch, Embedder, Op

COMMUNITIES = 4
NEIGHBORS = 10
LEAST_OVERLAP = 0.25
"""Share of a vertex's nearest neighbors that a fresh fit must agree with, on average, right after a correction.

On these graphs it is 0.7 on average; vectors that have lost their way share what chance gives, a few hundredths.
"""


@dataclass
class Stream:
    """Parameters, a start, and batches; `structured` where the graph has communities that a fit is sure to find."""

    seed: int
    parameters: dict[str, Any]
    start: list[tuple[int, int, float]]
    structured: bool
    batches: int
    rng: np.random.Generator
    edges: dict[tuple[int, int], float] = field(default_factory=dict)
    vertices: int = 0
    clock: float = 0.0
    favorite: str = "community"  # the shape of most batches
    tip: int | None = None  # the newest vertex, which the next shape may grow from

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.batches):
            yield self._batch()

    def _batch(self) -> Batch:
        shape = self.favorite if self.rng.random() < 0.7 else str(self.rng.choice(SHAPES))
        size = int(self.rng.choice([1, 2, 10, 40]))
        rows = [(u, v, self.weight(), int(Op.ADD)) for u, v in self._grown(shape, size)]
        rows += self._removals(size) if self.rng.random() < 0.3 else []
        for u, v, weight, op in rows:
            self._note(u, v, weight, op)
        src, dst, weights, ops = (list(column) for column in zip(*rows, strict=True))
        self.clock += float(self.rng.exponential(1.0))
        timed = {"half_life", "expire_after"} & set(self.parameters)
        return Batch.of(src, dst, weights, ops, np.full(len(rows), self.clock) if timed else None)

    def weight(self) -> float:
        """The weight of the next edge."""
        return float(10.0 ** self.rng.uniform(-self.spread, self.spread)) if self.spread else 1.0

    @property
    def spread(self) -> float:
        """Powers of ten by which weights differ from one, up or down."""
        return 0.0 if self.structured else (0.0, 3.0, 30.0)[self.seed % 3]

    def _grown(self, shape: str, size: int) -> list[tuple[int, int]]:
        """New edges: `size` newcomers in a shape that hangs on a known vertex, or edges between known vertices."""
        anchor = self._known() if self.tip is None or self.rng.random() < 0.2 else self.tip
        first = max(self.vertices, anchor + 1)
        new = [first + number for number in range(size)]
        self.tip = new[-1]
        if shape == "between":
            pairs = [(self._known(), self._known()) for _ in range(size)]
            return [pair for pair in pairs if pair[0] != pair[1]] + [(new[-1], anchor)]
        if shape == "community":
            return [(v, u) for v in new for u in self._members(v % COMMUNITIES, 3)]
        if shape in ("chain", "ladder"):
            back = 1 if shape == "chain" else 2
            return [(v, v - step if v - step >= first else anchor) for v in new for step in range(1, back + 1)]
        if shape == "tree":
            return [(v, anchor if number == 0 else first + (number - 1) // 2) for number, v in enumerate(new)]
        if shape == "grid":
            width = max(int(size**0.5), 1)
            return [(v, v - step if v - step >= first else anchor) for v in new for step in (1, width)]
        if shape == "star":
            return [(v, anchor) for v in new]
        return [(v, u) for v in new for u in new[: v - first]] + [(first, anchor)]  # a clique

    def _removals(self, size: int) -> list[tuple[int, int, float, int]]:
        known = list(self.edges)
        chosen = self.rng.choice(len(known), min(size, len(known) // 4), replace=False) if known else []
        rows = [(*known[place], 1.0, int(Op.REMOVE)) for place in chosen]
        if self.rng.random() < 0.3 and not {"half_life", "expire_after"} & set(self.parameters):
            gone = {end for row in rows for end in row[:2]}
            vertex = self._known()
            rows += [] if vertex in gone else [(vertex, vertex, 1.0, int(Op.REMOVE_VERTEX))]
        return rows if "expire_after" not in self.parameters else []  # what has expired cannot be removed

    def _note(self, u: int, v: int, weight: float, op: int) -> None:
        pair = (u, v) if self.parameters.get("directed") else (min(u, v), max(u, v))
        self.vertices = max(self.vertices, u + 1, v + 1)
        if op == Op.REMOVE_VERTEX:
            self.tip = None
            self.edges = {pair: weight for pair, weight in self.edges.items() if u not in pair}
        elif op == Op.REMOVE:
            self.edges.pop(pair, None)
        else:
            self.edges[pair] = self.edges.get(pair, 0.0) + weight

    def _known(self) -> int:
        """A vertex that has an edge; a new one where none has."""
        pairs = list(self.edges)
        if not pairs:
            return self.vertices
        return int(pairs[int(self.rng.integers(len(pairs)))][int(self.rng.integers(2))])

    def _members(self, community: int, count: int) -> list[int]:
        known = sorted({end for pair in self.edges for end in pair if end % COMMUNITIES == community})
        return self.rng.choice(known, min(count, len(known)), replace=False).tolist() if known else [0]


SHAPES = ("chain", "ladder", "tree", "grid", "star", "clique", "between", "community")
STARTS = ("communities", "attachment", "grid", "star", "pairs", "nothing")


def stream_of(seed: int, batches: int = 20) -> Stream:
    """The stream of a seed."""
    rng = np.random.default_rng(seed)
    structured = bool(rng.random() < 0.5)
    kind = "communities" if structured else str(rng.choice(STARTS))
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
        forgetting = int(rng.integers(4))
        parameters |= [{}, {}, {"half_life": 3.0}, {"expire_after": 8.0}][forgetting]
    stream = Stream(seed, parameters, [], structured, batches, rng)
    stream.favorite = str(rng.choice(SHAPES))
    for u, v in _start(kind, rng):
        weight = stream.weight()
        stream.start.append((u, v, weight))
        stream._note(u, v, weight, Op.ADD)
    return stream


def _start(kind: str, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The edges of a start graph, each once."""
    size = 120
    if kind == "communities":
        own = [
            (v, u) for v in range(size) for u in rng.choice(size // COMMUNITIES, 5, replace=False) * COMMUNITIES + v % 4
        ]
        far = [(v, int(rng.integers(size))) for v in range(0, size, 3)]
        pairs = [(v, int(u)) for v, u in own + far]
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


class Fault(AssertionError):
    """A stream has led to vectors that no stream may lead to."""


def run(stream: Stream, fresh_every: int = 5) -> dict[str, float]:
    """Apply a stream and check the model after every batch; figures, or a Fault."""
    model = Embedder(**stream.parameters)
    if stream.start:
        model.fit(stream.start)
    overlaps: list[float] = []
    applied = 0
    for batch in stream:
        changes = model.partial_fit(batch)
        applied += 1
        check_vectors(model, f"seed {stream.seed}, batch {applied}")
        if stream.structured and (changes.anchored or applied % fresh_every == 0):
            overlaps.append(check_overlap(model, stream, f"seed {stream.seed}, batch {applied}", changes.anchored))
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
    """Rows are finite and bounded view by view; vectors are finite, and of length one or zero."""
    engine = model.engine
    rows = engine.store.vectors[: engine.graph.row_count].astype(np.float64)
    if not np.isfinite(rows).all():
        raise Fault(f"{where}: a row is not finite")
    space = engine.rule.coordinates
    if space.ready:
        for part, bound in zip(space.parts, space.length_bounds, strict=True):
            longest = float(np.linalg.norm(rows[:, part], axis=1).max(initial=0.0))
            if longest > bound * 1.01:  # half precision rounds
                raise Fault(f"{where}: a row is {longest} long, expected at most {bound}")
    served = model.to_numpy()
    lengths = np.linalg.norm(served, axis=1)
    if not np.isfinite(served).all() or not ((lengths == 0) | (np.abs(lengths - 1) < 1e-3)).all():
        raise Fault(f"{where}: a vector is not finite, or not of length one")


def check_overlap(model: Embedder, stream: Stream, where: str, anchored: bool) -> float:
    """The share of nearest neighbors that a fresh fit agrees with; too little is a Fault once it was corrected."""
    edges = [(u, v, weight) for (u, v), weight in stream.edges.items()]
    fresh = Embedder(**stream.parameters).fit(edges)
    names = fresh.ids
    overlap = shared_neighbors(model.vectors(names), fresh.to_numpy())
    if anchored and overlap < LEAST_OVERLAP:
        raise Fault(
            f"{where}: {overlap:.2f} of the nearest neighbors are those of a fresh fit, expected {LEAST_OVERLAP}"
        )
    return overlap


def shared_neighbors(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Of each row's nearest neighbors by cosine in one matrix, the share that are nearest in the other, on average."""
    near = []
    for vectors in (left, right):
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -2.0)
        near.append(np.argpartition(-cosines, NEIGHBORS, axis=1)[:, :NEIGHBORS])
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(*near, strict=True)]))


def main() -> None:
    """Run streams until the time is over, and report what they had in common."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--streams", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    until, done, figures = time.monotonic() + 60 * options.minutes, 0, []
    while done < options.streams and time.monotonic() < until:
        try:
            figures.append(run(stream_of(options.seed + done, options.batches), fresh_every=1))
        except Fault as fault:
            raise SystemExit(f"fault: {fault}") from fault
        done += 1
    overlaps = [each["overlap"] for each in figures if each["overlap"] == each["overlap"]]
    least = [each["least_overlap"] for each in figures if each["overlap"] == each["overlap"]]
    report = {
        "streams": done,
        "first_seed": options.seed,
        "batches": sum(each["batches"] for each in figures),
        "anchors": sum(each["anchors"] for each in figures),
        "anchors_refused": sum(each["refused"] for each in figures),
        "faults": 0,
        "overlap_mean": float(np.mean(overlaps)) if overlaps else None,
        "overlap_least": float(np.min(least)) if least else None,
    }
    for name, value in report.items():
        print(f"{name:16} {value}")
    if options.json:
        write(options.json, report)


if __name__ == "__main__":
    main()
