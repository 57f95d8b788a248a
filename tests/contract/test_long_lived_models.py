"""Long-lived models: emptied and grown again, copied, limited in reads, fed with repeated edges."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ripplevec import Batch, Embedder, InvalidValueError, Op, load
from ripplevec.batch import MIN_WEIGHT
from ripplevec.errors import FormatError

RING = [(i, (i + 1) % 40) for i in range(40)] + [(i, (i + 7) % 40) for i in range(40)]


@pytest.mark.parametrize("parameters", [{"anchor_growth": 0}, {}, {"rule": "paper"}])
def test_model_emptied_and_grown_again_places_its_vertices(parameters: dict[str, Any]) -> None:
    model = Embedder(dim=4, **parameters).fit(RING)
    model.partial_fit(Batch.vertices(model.ids, Op.REMOVE_VERTEX))
    assert len(model) == 0
    for u, v in RING:
        model.partial_fit([(f"again {u}", f"again {v}")])
    assert model.diagnostics()["unplaced"] == 0
    assert np.isfinite(model.to_numpy()).all()


@pytest.mark.parametrize("rule", ["ripple", "paper"])
@pytest.mark.parametrize(
    "edges", [[(0, leaf) for leaf in range(1, 1025)], [(u, 20 + v) for u in range(20) for v in range(500)]]
)
def test_start_of_a_low_rank_graph_is_deterministic(rule: str, edges: list[tuple[int, int]]) -> None:
    assert len({Embedder(dim=12, rule=rule).fit(edges).digest() for _ in range(3)}) == 1


def test_hub_that_has_shrunk_loses_no_edge() -> None:
    for fill in range(1_000, 3_000, 97):
        model = Embedder(dim=4, anchor_growth=0, threads=1).fit([(0, leaf) for leaf in range(1, 1025)] + [(1, 2)])
        model.remove_edges([(0, leaf) for leaf in range(258, 1025)])
        model.partial_fit([(f"left {i}", f"right {i}") for i in range(fill)])
        model.add_vertex("spare", [1])
        edges = model.diagnostics()["edges"]
        model.add_vertex(0, ["p", "q"])
        assert model.diagnostics()["edges"] == edges + 2
        model.check()


@pytest.mark.parametrize("parameters", [{}, {"rule": "paper", "depth": 2, "reuse_influence": True}])
def test_copies_of_a_model_are_independent(parameters: dict[str, Any]) -> None:
    model = Embedder(dim=4, **parameters).fit(RING)
    model.add_vertex("x", [0, 1])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.digest() == model.digest()
        other.add_vertex("y", ["x", 3])
        assert "y" not in model
    model.add_vertex("y", ["x", 3])
    assert other.digest() == model.digest()


def test_directed_strengths_have_no_residue_after_removal() -> None:
    model = Embedder(dim=2, directed=True).fit([("a", "b", 1.0), ("c", "b", 1e20), ("b", "d", 1.0)])
    model.remove_edges([("c", "b")])
    model.check()


def test_remove_edges_with_additions_raises() -> None:
    model = Embedder(dim=2).fit(RING)
    before = model.digest()
    with pytest.raises(InvalidValueError, match="removals only"):
        model.remove_edges(pd.DataFrame({"src": [0], "dst": [1], "op": [0]}))
    assert model.digest() == before
    model.remove_edges([(0, 1, 0.0)])  # weights are ignored
    model.remove_edges([])
    assert model.diagnostics()["edges"] == len(RING) - 1


def test_changes_contain_moved_vertices_only() -> None:
    model = Embedder(dim=4, max_reads=1, depth=3, anchor_growth=0).fit(RING)
    before = {name: model[name] for name in model.ids}
    changes = model.partial_fit([("x", 0), ("x", 1), ("x", 2)])
    unmoved = [name for name in changes.ids if name in before and np.array_equal(before[name], model[name])]
    assert unmoved == []


def test_anchor_counts_changed_edges_only() -> None:
    model = Embedder(dim=4, duplicates="ignore").fit(RING)
    for _ in range(10):
        model.partial_fit(RING)
    assert model.diagnostics()["anchors"] == 0
    hub = Embedder(dim=4, anchor_growth=0.2).fit([*RING, *((0, other) for other in range(50, 150))])
    hub.remove_vertex(0)
    assert hub.diagnostics()["anchors"] == 1


@pytest.mark.parametrize("half_life", [None, 10.0])
@pytest.mark.parametrize("duplicates", ["add", "ignore", "replace"])
def test_preview_merges_repeated_neighbors_like_an_arrival(duplicates: str, half_life: float | None) -> None:
    model = Embedder(dim=4, duplicates=duplicates, depth=0, anchor_growth=0, half_life=half_life).fit(RING)
    neighbors, weights = [0, 5, 0, 9], [1.0, 2.0, 4.0, 1.0]
    preview = model.preview(neighbors, weights)
    np.testing.assert_allclose(model.add_vertex("x", neighbors, weights), preview, atol=1e-5)


def test_saved_model_keeps_its_original_parameters(tmp_path: Path) -> None:
    model = Embedder(dim=4, seed=1).fit(RING)
    model.seed = 7
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.seed == 1
    model.add_vertex("x", [0, 1])
    again.add_vertex("x", [0, 1])
    assert again.digest() == model.digest()


def test_save_to_the_working_directory_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        FormatError, match="expected a directory that can be replaced, got the current working directory"
    ):
        Embedder(dim=2).fit(RING).save(".")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["\ud800", None, 1.5, True, b"a"])
def test_membership_of_an_invalid_id_is_false(name: Any) -> None:
    assert name not in Embedder(dim=2).fit(RING)


def test_reader_and_writer_both_make_progress() -> None:
    model, stop = Embedder(dim=4).fit(RING), threading.Event()
    reads: list[int] = []

    def read() -> None:
        while not stop.is_set():
            reads.append(len(model.vectors([0, 1])))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(100_000):
        model.add_vertex(f"new {number}", [number % 40])
        if number >= 300 and len(reads) > 10:
            break
    stop.set()
    reader.join(60)
    assert not reader.is_alive()
    assert len(reads) > 10


def test_smallest_weights_in_a_graph_without_spectrum_keep_zero_rows() -> None:
    """Two vertices have no positive eigenvalue; rows that became NaN once made every later anchor fail."""
    model = Embedder(dim=4, anchor_growth=0).fit([(0, 1, MIN_WEIGHT)])
    model.partial_fit([(2, 0, MIN_WEIGHT)])
    assert model.to_numpy().tolist() == [[0.0] * 4] * 3
    model.partial_fit([(2, 3), (3, 4), (4, 5)])
    model.anchor()
    assert np.isfinite(model.to_numpy()).all()
