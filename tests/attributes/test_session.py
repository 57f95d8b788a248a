"""Sessions with attributes: journal, snapshots and replay give the same bits; layers that cannot carry them refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ripplevec import Batch, Embedder, InvalidValueError, Session
from ripplevec.attributes.input import attach_attributes, read_attributes
from ripplevec.batch import select_rows
from ripplevec.durability.journal_schema import decode_batch, encode_batch
from ripplevec.durability.session import JournalEntry
from ripplevec.errors import StateError
from ripplevec.io.protocols import BadMessage
from ripplevec.io.rebatch import concatenate
from ripplevec.io.registry import stream_from

SPARSE: dict[Any, Any] = {"a": {"x": 1.5, 7: 2.0, "s7": 1.0}, "b": {}, "c": {"y": 0.1}}
DENSE: dict[Any, Any] = {1: [0.1, -2.0], 2**80: [3.0, 4.0]}


def attributed(attributes: Any) -> Batch:
    return attach_attributes(Batch.of(["a", "c"], ["b", "a"], [1.0, 2.0]), read_attributes(attributes))


@pytest.mark.parametrize("attributes", [SPARSE, DENSE])
def test_journal_encodes_and_decodes_attributes(attributes: dict[Any, Any]) -> None:
    batch = attributed(attributes)
    decoded = decode_batch(encode_batch(batch))
    assert decoded.attributes is not None
    assert batch.attributes is not None
    for name in ("values", "begin", "columns"):
        np.testing.assert_array_equal(getattr(decoded.attributes, name), getattr(batch.attributes, name))
    assert list(map(str, decoded.attributes.ids)) == list(map(str, batch.attributes.ids))
    assert decoded.attributes.labels == batch.attributes.labels


def run_stream(model: Any) -> None:
    """Apply arrivals with and without attributes, replacements and a removal."""
    random = np.random.default_rng(3)
    for vertex in range(120):
        neighbors = np.unique(random.integers(0, vertex, 3)).tolist() if vertex else []
        tags = {f"t{tag}": 1.0 for tag in random.integers(0, 30, 4)} if vertex % 4 else None
        model.add_vertex(vertex, neighbors, attributes=tags)
    model.partial_fit([(3, 9)], attributes={200: {"t1": 2}, 5: {"fresh": 1}})
    model.set_attributes([7], [{"t2": 1}])
    model.remove_vertex(11)


@pytest.mark.parametrize("snapshot", [False, True])
def test_session_recovers_the_bits_of_a_model_with_attributes(snapshot: bool, tmp_path: Path) -> None:
    parameters: dict[str, Any] = {"dim": 8, "attribute_dim": 4, "start_size": 20}
    model = Embedder(**parameters)
    run_stream(model)
    with Session(tmp_path, **parameters) as session:
        run_stream(session)
        assert session.model.digest() == model.digest()
        preview = session.preview([3], attributes={"t1": 1})
        found = session.nearest_by_attributes({"t1": 1}, 3)
        if snapshot:
            session.snapshot()
    with Session(tmp_path) as session:
        assert session.model.digest() == model.digest()
        np.testing.assert_array_equal(session.preview([3], attributes={"t1": 1}), preview)
        assert session.nearest_by_attributes({"t1": 1}, 3) == found


def test_session_refuses_attributes_of_another_kind_before_the_journal(tmp_path: Path) -> None:
    with Session(tmp_path, dim=8, attribute_dim=4) as session:
        entries = [JournalEntry(attributed(SPARSE)), JournalEntry(attributed(DENSE))]
        first, second = session.apply_many(entries)
        assert not isinstance(first, InvalidValueError)
        assert isinstance(second, InvalidValueError)
        assert session.sequence == 1
        with pytest.raises(InvalidValueError, match="sparse rows"):
            session.add_vertex("z", attributes=[1.0, 2.0])
    with Session(tmp_path) as session:
        assert session.sequence == 1


def test_session_without_dimensions_for_attributes_refuses_them(tmp_path: Path) -> None:
    with Session(tmp_path, dim=8) as session:
        with pytest.raises(InvalidValueError, match="attribute_dim"):
            session.add_vertex("z", attributes={"x": 1})
        assert session.sequence == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda batch: select_rows(batch, slice(1)),
        lambda batch: concatenate([batch, batch]),
    ],
)
def test_operations_that_would_lose_attributes_refuse_them(use: Callable[[Batch], Any]) -> None:
    with pytest.raises(InvalidValueError, match="a batch without attributes"):
        use(attributed(SPARSE))


def test_source_with_attributes_gives_the_bits_of_a_model_and_dead_letters(tmp_path: Path) -> None:
    lines = [
        {"arrivals": [{"id": f"v{n}", "neighbors": [f"v{n // 2}"], "attributes": {f"t{n % 5}": 1.0}}]}
        for n in range(1, 40)
    ]
    bad = [
        {"attributes": [{"id": "v3", "attributes": [1.0, 2.0]}]},
        {"attributes": [{"id": "v3", "attributes": {"x": -1}}]},
        {"remove_vertices": ["unknown"]},
    ]
    file = tmp_path / "stream.jsonl"
    file.write_text("\n".join(map(json.dumps, [*lines[:9], *bad, *lines[9:], {"remove_vertices": ["v9"]}])))
    letters = DeadLetters()
    with Session(tmp_path / "state", dim=8, attribute_dim=4, start_size=20) as session:
        with closing(stream_from(str(file))) as source:
            session.run(source, dead_letters=letters)
        digest = session.model.digest()
        nearest = session.nearest_by_attributes("v7", 5)
        assert "v9" not in session
    assert len(letters.reasons) == 3
    assert any("sparse rows, as the rows before, got 'dense rows'" in reason for reason in letters.reasons)
    with Session(tmp_path / "state") as session:
        assert session.model.digest() == digest
        assert session.nearest_by_attributes("v7", 5) == nearest
        assert {int(vertex[1:]) % 5 for vertex, _ in nearest} == {7 % 5}


def test_source_without_dead_letters_stops_before_attributes_that_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "stream.jsonl"
    file.write_text('{"arrivals": [{"id": "a", "attributes": {"x": 1}}]}')
    with Session(tmp_path / "state", dim=8) as session:
        with closing(stream_from(str(file))) as source, pytest.raises(StateError, match="attribute_dim"):
            session.run(source)
        assert session.sequence == 0


class DeadLetters:
    """Collects the reasons of bad messages."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def record(self, source: str, bad_message: BadMessage) -> None:
        self.reasons.append(bad_message.reason)

    def close(self) -> None:
        pass
