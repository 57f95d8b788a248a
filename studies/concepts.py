"""What an arrival does, step by step, on ten vertices: the real engine, in two columns so that vectors can be drawn.

python studies/concepts.py

Writes results/concepts.json, and from it the pictures of docs/concepts.md.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from concept_pictures import draw
from numpy.typing import NDArray

from ripplevec import Batch, Embedder, SpectralView

ROOT = Path(__file__).resolve().parents[1]
RECORD, PICTURES = ROOT / "results/concepts.json", ROOT / "docs/images/concepts"
CIRCLES = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "e"), ("e", "f"), ("d", "f"), ("g", "h"), ("h", "i"), ("g", "i")]
BRIDGES = [("c", "d", 0.8), ("f", "g"), ("i", "a")]
NEWCOMER, ITS_EDGES, ALSO = "j", ["a", "b", "d"], ("e", "h")
SEED, SEEDS = 9, 1000  # with this seed the arrival influences one vertex; with many it influences none
DIGITS = 4


def begun(seed: int = SEED) -> Embedder:
    """The start. Lengths are left as they are, and anchors are run by hand: both for the pictures."""
    view = SpectralView(tau=0.25, diffusion=1)
    return Embedder(dim=2, views=[view], normalize=False, anchor_growth=0, seed=seed).fit([*CIRCLES, *BRIDGES])


def steps() -> dict[str, Any]:
    """All that is drawn and said: the start, an arrival, whom it influences, an anchor, a batch."""
    model, arrival = begun(), Batch.arrival(NEWCOMER, ITS_EDGES)
    record: dict[str, Any] = {"edges": [*CIRCLES, *BRIDGES], "newcomer": NEWCOMER, "its_edges": ITS_EDGES}
    record |= {"start": _placed(model), "preview": _rounded(model.preview(ITS_EDGES))}
    record["changed"] = model.partial_fit(arrival).ids
    strength = {u: sum(weight for _, weight in model.neighbors(u)) for u in ITS_EDGES}
    record |= {"after": _placed(model), "chances": {u: round(1 / strength[u], DIGITS) for u in ITS_EDGES}}
    return record | {"seeds": SEEDS, "influenced": _influenced(arrival), "anchor": _anchor(model), "batch": _batch()}


def _influenced(arrival: Batch) -> dict[str, int]:
    """How often each neighbor is influenced, over many seeds."""
    times = Counter(vertex for seed in range(SEEDS) for vertex in begun(seed).partial_fit(arrival).ids)
    return {vertex: times[vertex] for vertex in ITS_EDGES}


def _anchor(model: Embedder) -> dict[str, Any]:
    """Rows inside and as they are served, before an anchor and after it."""
    inside, served = _inside(model), model.to_numpy()
    model.anchor()
    turn = model.engine.rule.coordinates.rotation  # type: ignore[attr-defined]
    return {
        "inside": [_named(model, inside), _named(model, _inside(model))],
        "served": [_named(model, served), _placed(model)],
        "turn_degrees": round(float(np.degrees(np.arctan2(turn[1, 0], turn[0, 0])))),
        "mean_cosine_inside": round(_mean_cosine(inside, _inside(model)), 2),
        "mean_cosine_served": round(_mean_cosine(served, model.to_numpy()), 2),
    }


def _batch() -> dict[str, Any]:
    """The same edges as one batch and as several."""
    together, apart = begun(), begun()
    edges = [(NEWCOMER, u) for u in ITS_EDGES] + [ALSO]
    changes = together.partial_fit(edges)
    each = [apart.partial_fit([edge]).ids for edge in edges]
    return {
        "together": {"batches": together.sequence, "changed": changes.ids, "vectors": _placed(together)},
        "apart": {"batches": apart.sequence, "changed": each, "vectors": _placed(apart)},
        "mean_cosine": round(_mean_cosine(together.to_numpy(), apart.to_numpy()), 2),
    }


def _inside(model: Embedder) -> NDArray[np.float64]:
    """Rows in the coordinates that corrections are worked out in."""
    return np.array(model.engine.store.vectors[model.engine.rows_by_arrival()], np.float64)


def _placed(model: Embedder) -> dict[str, list[float]]:
    return _named(model, model.to_numpy())


def _named(model: Embedder, rows: NDArray[Any]) -> dict[str, list[float]]:
    return {str(name): _rounded(row) for name, row in zip(model.ids, rows, strict=True)}


def _rounded(row: NDArray[Any]) -> list[float]:
    return [round(float(value), DIGITS) for value in row]


def _mean_cosine(some: NDArray[Any], others: NDArray[Any]) -> float:
    lengths = np.linalg.norm(some, axis=1) * np.linalg.norm(others, axis=1)
    return float(((some * others).sum(axis=1) / lengths).mean())


if __name__ == "__main__":
    found = json.loads(json.dumps(steps()))
    RECORD.write_text(json.dumps(found, indent=1) + "\n")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in draw(found).items():
        (PICTURES / f"{name}.svg").write_text(picture)
