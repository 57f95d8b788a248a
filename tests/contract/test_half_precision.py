"""Rows in half precision: all features, half the memory, nearly the same vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ripplevec
from ripplevec.batch import Batch, Op
from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=4, size=60, inside=8, elsewhere=2, seed=1)
HALF = len(DATA.edges) // 2


def model(**parameters: Any) -> ripplevec.Embedder:
    return ripplevec.Embedder(**{"dim": 16, "storage": "float16", **parameters}).fit(DATA.edges[:HALF])


def stream(made: ripplevec.Embedder) -> ripplevec.Embedder:
    for first in range(HALF, len(DATA.edges), 50):
        made.partial_fit(DATA.edges[first : first + 50])
    made.add_vertex("new", [0, 1, 2])
    made.partial_fit(Batch.of([3, 0], [3, 1], op=[Op.REMOVE_VERTEX, Op.ADD]))
    return made


@pytest.mark.parametrize("pace", ["immediate", "gradual"])
def test_half_precision_vectors_are_close_to_single_precision(pace: str, tmp_path: Path) -> None:
    half, single = (stream(model(storage=storage, anchor_pace=pace)) for storage in ("float16", "float32"))
    cosines = (half.to_numpy() * single.to_numpy()).sum(axis=1)
    half.save(tmp_path / "model")
    assert np.load(tmp_path / "model" / "vectors.npy").dtype == np.float16
    assert half.diagnostics()["anchors"] == single.diagnostics()["anchors"] > 0
    assert cosines.min() > (0.99 if pace == "immediate" else 0.95)
    assert cosines.mean() > 0.99
    assert half.to_numpy().dtype == np.float32


def test_half_precision_rows_take_half_the_memory() -> None:
    half, single = model(dim=64), model(dim=64, storage="float32")
    saved = single.diagnostics()["bytes"] - half.diagnostics()["bytes"]
    assert saved == len(half) * 64 * 2


def test_half_precision_model_supports_all_reads() -> None:
    made = stream(model())
    found = made.nearest(0, 5)
    assert len(found) == 5
    assert 0.5 < found[0][1] <= 1.0 + 1e-6
    assert [name for name, _ in made.nearest(made[0], 1)] == [0]
    assert np.linalg.norm(made.preview([0, 1])) == pytest.approx(1, abs=1e-5)
    assert made.diagnostics(objective=True)["orthogonality_error"] < 1
    changes = made.partial_fit([(0, 7)])
    np.testing.assert_allclose(changes.vectors, made.vectors(changes.ids), atol=1e-6)
    made.check()


def test_half_precision_gives_the_same_bits_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from ripplevec.rules import ripple

    monkeypatch.setattr(ripple, "MIN_EDGES_FOR_THREADS", 1)
    assert len({stream(model(threads=threads)).digest() for threads in (1, 2, 3)}) == 1


def test_half_precision_model_continues_after_loading(tmp_path: Path) -> None:
    made = stream(model())
    made.save(tmp_path / "model")
    again = ripplevec.load(tmp_path / "model")
    assert again.storage == "float16"
    for each in (made, again):
        each.add_vertex("later", ["new", 5])
        each.anchor()
    assert again.digest() == made.digest()


def test_rule_paper_with_half_precision_raises() -> None:
    with pytest.raises(InvalidValueError, match="float64"):
        ripplevec.Embedder(rule="paper", storage="float16")


def test_half_precision_in_a_directory_gives_the_same_bits(tmp_path: Path) -> None:
    made, plain = stream(model(storage_dir=tmp_path)), stream(model())
    assert made.digest() == plain.digest()
    made.save(tmp_path / "model")
    assert ripplevec.load(tmp_path / "model", storage_dir=tmp_path).digest() == plain.digest()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
