from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder
from ripplevec.engine import digest as digests
from ripplevec.engine.engine import Engine

EDGES = [(i, (i * k + 1) % 40) for i in range(40) for k in (1, 3, 7) if i != (i * k + 1) % 40]


def engine(edges: Any = EDGES, **parameters: Any) -> Engine:
    return Embedder(**{"dim": 4, **parameters}).fit(edges).engine


DIFFERENT: dict[str, Any] = {
    "a name": lambda e: e.apply(Batch.of([0, "heir"], [0, 1], op=[Op.REMOVE_VERTEX, Op.ADD])),
    "an edge": lambda e: e.graph.adjacency.apply(*_edge(0, 20, 1.0)),
    "a weight": lambda e: e.graph.adjacency.links.weight.__setitem__(e.graph.adjacency.links.begin[0], 5.0),
    "a coordinate": lambda e: e.store.vectors.__setitem__((3, 1), 9.0),
    "a flag": lambda e: e.store.placed.__setitem__(3, 0),
    "the sequence": lambda e: setattr(e, "sequence", 7),
    "an arrival number": lambda e: e.graph.arrival.__setitem__(39, 1000),
    "the next arrival number": lambda e: setattr(e.graph, "next_arrival", 1000),
    "an eigenvalue": lambda e: e.rule.coordinates.mu.__setitem__(0, 0.123),
    "the center": lambda e: e.rule.coordinates.center.__setitem__(0, 0.123),
    "tau": lambda e: e.rule.coordinates.tau.__setitem__(0, 0.123),
    "the turn": lambda e: e.rule.coordinates.set_rotation(np.eye(4)[::-1]),
    "growth so far": lambda e: setattr(e, "edge_events", 3),
}


def _edge(u: int, v: int, weight: float) -> tuple[Any, Any, Any]:
    return np.zeros(1, np.int8), np.array([[u, v]]), np.array([weight], np.float32)


@pytest.mark.parametrize("part", DIFFERENT)
def test_digest_depends_on_every_part_of_the_state(part: str) -> None:
    one, other = engine(), engine()
    assert one.digest() == other.digest()
    DIFFERENT[part](other)
    assert one.digest() != other.digest()


def test_digest_depends_on_where_ids_end() -> None:
    def digest(*names: Any) -> str:
        return engine([(names[0], names[1])]).digest()

    assert len({digest(*pair) for pair in [("ab", "c"), ("a", "bc"), (1, 2), ("1", "2"), (1, "2"), ("1", 2)]}) == 6


def test_digest_does_not_depend_on_the_memory_layout() -> None:
    one, other = engine(anchor_growth=0), engine(anchor_growth=0)
    other.graph.adjacency.ensure_rows(5_000)
    other.store.grow()
    assert one.digest() == other.digest()


@pytest.mark.parametrize("parameters", [{}, {"rule": "paper"}, {"directed": True, "duplicates": "replace"}])
def test_snapshot_has_the_sequence_digest_and_arrays_of_its_state(parameters: dict[str, Any]) -> None:
    one = engine(**parameters)
    one.apply(Batch.from_any([("a", 0), ("b", "a")]))
    copy, digest = one.snapshot(), one.digest()
    one.apply(Batch.from_any([("c", 0)]))
    assert (copy.sequence, copy.digest()) == (1, digest)
    other = engine([], **parameters)
    other.restore(copy.state())
    assert other.digest() == digest


def test_digest_does_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    one = engine(directed=True)
    expected = one.digest()
    for rows in (1, 7, 40):
        monkeypatch.setattr(digests, "HASH_BLOCK_ROWS", rows)
        assert one.digest() == expected
    assert engine([]).digest() != expected
