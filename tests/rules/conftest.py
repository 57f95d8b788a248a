"""Engines over small graphs, and a reference implementation of rule `ripple` in plain Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.engine import correction_schedule
from ripplevec.engine.engine import Engine
from ripplevec.influence._kernels import derive_key, draw_uniform, sample_slot
from ripplevec.rules import correction_pace, gradual_correction
from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules._kernels import RESAMPLE, BatchContext
from ripplevec.rules.gradual_correction import GradualCorrection

UNLIMITED = 1 << 60


class Reference:
    """Rule `ripple` one row at a time in double precision; counts the reads beyond the edges of newcomers."""

    def __init__(self, state: KernelState, context: BatchContext) -> None:
        self.links, self.arrival, self.context = state.links, state.arrival, context
        self.coefficients = state.coefficients
        self.x, self.placed = state.vectors.astype(np.float64), state.placed.astype(bool)
        self.reads = 0

    def slots(self, row: int) -> list[int]:
        begin = int(self.links.begin[row])
        return list(range(begin, begin + int(self.links.degree[row])))

    def neighbors(self, row: int) -> list[int]:
        return [int(self.links.neighbor[slot]) for slot in self.slots(row)]

    def local_step(self, terms: list[tuple[float, NDArray[np.float64]]], scale: float = 1.0) -> NDArray[np.float64]:
        """Return z · μ'(1 + ρ/b) / (μ'² + ρ/b), z = (Σ a x − c) / ((d + τ) μ₁), view by view."""
        weights = np.array([a for a, _ in terms], np.float64)
        total, d = scale * sum(a * x for a, x in terms), scale * weights.sum()
        b = weights.sum() ** 2 / (weights**2).sum()
        mu, center = self.coefficients.per_column.astype(np.float64)
        row = np.empty_like(total)
        for (tau, top, ridge, bound, _), first, last in zip(
            self.coefficients.per_view, self.coefficients.bounds, self.coefficients.bounds[1:], strict=False
        ):
            part = slice(first, last)
            z = (total[part] - center[part]) / ((d + tau) * top)
            row[part] = z * mu[part] * (1 + ridge / b) / (mu[part] ** 2 + ridge / b)
            row[part] *= min(1.0, bound / max(np.linalg.norm(row[part]), 1e-300))
        return row

    def refresh(self, row: int, limit: int, key: int) -> NDArray[np.float64]:
        slots = self.slots(row)
        scale = 1.0
        if len(slots) > limit:
            first, count = slots[0], len(slots)
            slots = [first + sample_slot(np.uint64(key), int(self.arrival[row]), i, count) for i in range(limit)]
            scale = self.links.strength[row] / sum(float(self.links.weight[slot]) for slot in slots)
        if limit < UNLIMITED:
            self.reads += len(slots)
        return self.local_step([(float(self.links.weight[s]), self.x[self.links.neighbor[s]]) for s in slots], scale)

    def place_from(self, row: int, earlier: bool) -> NDArray[np.float64] | None:
        terms = []
        for slot in self.slots(row):
            other = self.links.neighbor[slot]
            if self.placed[other] and (not earlier or self.arrival[other] < self.arrival[row]):
                terms.append((float(self.links.weight[slot]), self.x[other]))
        return self.local_step(terms) if terms else None

    def write_rows(self, rows: Iterable[int], values: Iterable[NDArray[np.float64]]) -> None:
        for row, value in zip(rows, values, strict=True):
            self.x[row], self.placed[row] = value, True

    def place(self, arrived: list[int], touched: list[int]) -> list[int]:
        for row in arrived:
            value = self.place_from(row, earlier=True)
            if value is not None:
                self.write_rows([row], [value])
        newcomers = [row for row in arrived if self.placed[row]]
        candidates = dict.fromkeys([row for row in touched if any(self.placed[u] for u in self.neighbors(row))])
        candidates |= dict.fromkeys(u for row in newcomers for u in self.neighbors(row))
        frontier = [row for row in candidates if not self.placed[row]]
        while frontier:
            values = [self.place_from(row, earlier=False) for row in frontier]
            self.write_rows(frontier, values)
            newcomers += frontier
            reached = dict.fromkeys(u for row in frontier for u in self.neighbors(row))
            frontier = [u for u in reached if not self.placed[u]]
        return newcomers

    def spread(self, sources: list[int], seen: set[int], limit: int, depth: int) -> list[int]:
        key, reached = derive_key(self.context.seed, self.context.sequence, depth), []
        for source in sources:
            slots, number = self.slots(source), int(self.arrival[source])
            if len(slots) > limit:
                slots = [slots[0] + sample_slot(np.uint64(key), number, i, len(slots)) for i in range(limit)]
            if limit < UNLIMITED:
                self.reads += len(slots)
            for slot in slots:
                u = int(self.links.neighbor[slot])
                chance = draw_uniform(np.uint64(key), int(self.arrival[u]), number) * self.links.in_strength[u]
                if u not in seen and chance < self.links.outgoing[slot]:
                    reached.append(u)
        return reached

    def apply(self, delta: Any) -> set[int]:
        context, touched = self.context, delta.pairs.ravel().tolist()
        newcomers = self.place(delta.arrived.tolist(), touched)
        lost = {row for row in touched if self.placed[row] and not self.links.degree[row]}
        self.x[list(lost)], self.placed[list(lost)] = 0, False
        frontier = dict.fromkeys(self.sample_changed_endpoints(delta))
        seen = set(newcomers) | set(frontier)
        frontier = [row for row in frontier if row not in set(newcomers)]
        moved = set(newcomers) | lost | {row for row in delta.arrived.tolist() if not self.placed[row]}
        existing = sum(max(pair) < context.first_new for pair in delta.arrival_numbers.tolist())
        reads_left = context.max_reads * max(1, len(delta.arrived) + existing)
        sources, depth = newcomers, 0
        while True:
            limit = reads_left // (2 * max(1, len(frontier)))
            if limit == 0:
                break
            if frontier:
                key = derive_key(context.seed, context.sequence, depth + RESAMPLE)
                self.write_rows(frontier, [self.refresh(row, limit, key) for row in frontier])
                reads_left -= sum(min(int(self.links.degree[row]), limit) for row in frontier)
                moved |= set(frontier)
            if depth == context.depth:
                break
            depth += 1
            limit = max(1, reads_left // (2 * max(1, len(frontier))))
            reached = self.spread(sources, seen, UNLIMITED, depth) + self.spread(frontier, seen, limit, depth)
            reads_left -= sum(min(int(self.links.degree[row]), limit) for row in frontier)
            frontier, sources = list(dict.fromkeys(reached)), []
            seen |= set(frontier)
            if not frontier:
                break
        self.write_rows(newcomers, [self.refresh(row, UNLIMITED, 0) for row in newcomers])
        return moved

    def sample_changed_endpoints(self, delta: Any) -> list[int]:
        key, found = derive_key(self.context.seed, self.context.sequence, 0), []
        for (rows, numbers), chance in zip(
            zip(delta.pairs, delta.arrival_numbers, strict=True), delta.changed_share, strict=True
        ):
            if numbers.max() >= self.context.first_new:
                continue
            for end in range(2):
                row, number, other = int(rows[end]), int(numbers[end]), int(numbers[1 - end])
                alive = self.arrival[row] == number and self.placed[row]
                if alive and draw_uniform(np.uint64(key), number, other) < chance[end]:
                    found.append(row)
        return found


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
    return Reference


@pytest.fixture(scope="session")
def engine_of() -> Any:
    def build(edges: Any, **parameters: Any) -> Engine:
        return Embedder(**{"dim": 4, **parameters}).fit(edges).engine

    return build


def random_edges(seed: int, vertices: int = 40, edges: int = 90, weighted: bool = True) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    ends, weights = rng.integers(0, vertices, (edges, 2)), 2.0 ** rng.integers(-3, 4, edges)
    return [(u, v, w if weighted else 1.0) for (u, v), w in zip(ends.tolist(), weights.tolist(), strict=True) if u != v]


@pytest.fixture(scope="session")
def edges_of() -> Any:
    return random_edges


@pytest.fixture
def slow_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let corrections take many batches, as on a large graph, and visit every stage."""
    monkeypatch.setattr(correction_schedule, "SPREAD_VERTICES", 1)
    monkeypatch.setattr(correction_schedule, "MAX_SPREAD", 0.5)
    monkeypatch.setattr(gradual_correction, "SLICE_ROWS", 8)
    monkeypatch.setattr(correction_pace, "SLICE_ROWS", 8)
    monkeypatch.setattr(GradualCorrection, "min_credit", 0.0)
    monkeypatch.setitem(correction_pace.COST, "probe", 1.0)
    monkeypatch.setattr(gradual_correction, "REPEAT_RATIO", 2.0)  # every filter counts as too weak
    catch_up = GradualCorrection._catch_up
    monkeypatch.setattr(GradualCorrection, "_catch_up", lambda self, store, _: 30 * catch_up(self, store, 1.0))
