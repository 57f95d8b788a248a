from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.embedder import Embedder
from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.rules import anchor
from ripplevec.rules.anchor import (
    align_coordinates,
    bases_from_scratch,
    correct_bases,
    orthogonality_error,
    write_bases,
)
from ripplevec.views import operators
from ripplevec.views.base import Basis
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.spectral import SpectralView

DATA = planted_partition(communities=4, size=50, inside=8, elsewhere=2, seed=3)


def grown(**parameters: Any) -> Embedder:
    """Return a model that got a third of its edges after the start."""
    model = Embedder(**{"dim": 6, "anchor_growth": 0, **parameters}).fit(DATA.edges[:700])
    model.partial_fit(DATA.edges[700:])
    return model


@pytest.mark.parametrize("normalize", [True, False])
def test_align_coordinates_undoes_a_known_rotation(engine_of: Any, edges_of: Any, normalize: bool) -> None:
    """If new coordinates are a rotation of the old ones, served vectors stay the same."""
    store = engine_of(edges_of(0, edges=200)).store
    old = Coordinates([SpectralView(tau=1.0)], 4, normalize)
    rows, rng = store.graph.row_count, np.random.default_rng(0)
    old.set_rotation(np.linalg.qr(rng.standard_normal((4, 4)))[0])
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    before = old.to_served(store.vectors[:rows])
    basis = Basis(store.vectors[:rows] @ rotation.astype(np.float32), np.full(4, 0.5), 1.0, np.zeros(4), 8.0, -1.0)
    new = old.new_like()
    align_coordinates(old, new, [basis], store.vectors[:rows], threads=1)
    write_bases(store, new, [basis])
    np.testing.assert_allclose(new.rotation @ new.rotation.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(new.to_served(store.vectors[:rows]), before, atol=1e-5)
    np.testing.assert_allclose(store.vectors[:rows], basis.rows)
    assert new.ready


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3])
def test_anchor_reports_vertices_that_moved_beyond_the_threshold(threshold: float) -> None:
    model = grown(change_threshold=threshold)
    before, ids = model.to_numpy(), model.ids
    changes = model.anchor()
    distance = np.linalg.norm(model.to_numpy() - before, axis=1)
    clear = np.abs(distance - threshold) > 1e-5
    reported = np.isin(ids, changes.ids)
    assert np.array_equal(reported[clear], (distance > threshold)[clear])
    assert changes.anchored
    np.testing.assert_allclose(changes.vectors, model.vectors(changes.ids), atol=1e-6)


def test_anchors_converge_to_the_exact_eigenvalues() -> None:
    model = grown(views="communities+strong-hubs")
    exact = Embedder(dim=6, views="communities+strong-hubs").fit(DATA.edges)
    mu = exact.engine.rule.coordinates.mu
    errors = [np.abs(model.engine.rule.coordinates.mu - mu).max()]
    for _ in range(6):
        model.anchor()
        errors.append(np.abs(model.engine.rule.coordinates.mu - mu).max())
    assert errors[1] < 0.5 * errors[0]
    assert errors[-1] < 2e-3


def test_anchor_of_an_exact_embedding_hardly_moves_vectors() -> None:
    model = Embedder(dim=3).fit(DATA.edges)  # three columns separate four communities; a spectral gap follows
    before = model.to_numpy()
    model.anchor()
    assert (before * model.to_numpy()).sum(axis=1).min() > 0.999


def test_anchor_after_growth_keeps_served_coordinates() -> None:
    model = grown()
    before = model.to_numpy()
    model.anchor()
    assert (before * model.to_numpy()).sum(axis=1).mean() > 0.85  # after half as many edges again


def test_anchor_gives_the_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "BLOCK_ROWS", 16)
    monkeypatch.setattr(anchor, "SUB_BLOCK_ROWS", 16)
    digests = set()
    for threads in (1, 2, 3):
        model = grown(threads=threads)
        model.anchor()
        digests.add(model.digest())
    assert len(digests) == 1


def test_bases_have_orthogonal_columns() -> None:
    engine = grown().engine
    coordinates, store = engine.rule.coordinates, engine.store
    drifted = orthogonality_error(coordinates, store, 1)
    bases = correct_bases(coordinates, store.graph.adjacency, store.vectors[: store.graph.row_count], 0, 1)
    assert [basis.rows.shape for basis in bases] == [
        (store.graph.row_count, part.stop - part.start) for part in coordinates.parts
    ]
    new = coordinates.new_like()
    bases = bases_from_scratch(new, store.graph.adjacency, store.graph.row_count, 1)
    new.adopt_bases(bases)
    write_bases(store, new, bases)
    assert orthogonality_error(new, store, 1) < 1e-5 < drifted
    assert new.ready
