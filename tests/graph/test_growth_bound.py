from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.batch import Batch, Op
from ripplevec.embedder import Embedder

EDGES = [(i, (i * k + 1) % 20) for i in range(20) for k in (1, 3) if i != (i * k + 1) % 20]


def engine(**parameters: Any) -> Any:
    return Embedder(dim=3, threads=1, **parameters).fit(EDGES).engine


@pytest.mark.filterwarnings("ignore::ripplevec.errors.SelfLoopWarning")
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.sampled_from([Op.ADD, Op.VERTEX])), max_size=12),
    st.lists(st.integers(0, 19), max_size=3, unique=True),
    st.sampled_from(["add", "ignore", "replace"]),
)
def test_a_batch_never_makes_a_graph_grow_by_more_than_was_foreseen(
    added: list[tuple[int, int, Op]], removed: list[int], duplicates: str
) -> None:
    one = engine(anchor_growth=0, duplicates=duplicates)
    rows = added + [(name, name, Op.REMOVE_VERTEX) for name in removed]
    if not rows:
        return
    src, _, op = zip(*rows, strict=True)
    batch = Batch.of(list(src), [target if what == Op.ADD else name for name, target, what in rows], op=list(op))
    vertices, edge_events = len(one), one.edge_events
    one.anchor_growth = 1e-12
    due = one.may_trigger_anchor(batch)
    one.anchor_growth = 0
    one.apply(batch)
    grown = len(one) > vertices or one.edge_events > edge_events
    assert due or not grown


@pytest.mark.parametrize("growth", [0.05, 0.2, 0.5])
def test_a_correction_is_foreseen_for_the_batch_that_makes_it_due_and_rarely_before(growth: float) -> None:
    one = engine(anchor_growth=growth)
    foreseen, due = [], []
    for number in range(60):
        batch = Batch.arrival(f"v{number}", [number % 20, (number + 3) % 20, (number + 7) % 20])
        foreseen.append(one.may_trigger_anchor(batch))
        due.append(one.apply(batch).anchored)
    assert foreseen == due
    assert any(due)


def test_edges_that_expire_are_foreseen() -> None:
    model = Embedder(dim=3, threads=1, expire_after=10.0, anchor_growth=0.1)
    model.fit(Batch.of(*zip(*EDGES, strict=True), time=np.linspace(0, 5, len(EDGES))))
    late, soon = (Batch.of(["x"], [0], time=[time]) for time in (13.0, 6.0))
    assert model.engine.may_trigger_anchor(late)
    assert not model.engine.may_trigger_anchor(soon)
    assert model.partial_fit(late).anchored
