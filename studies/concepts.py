"""Record what an arrival does step by step on ten vertices, and draw it.

    python studies/concepts.py

Writes results/concepts.json and, from it, the pictures of docs/concepts.md. The vectors come from the real engine and
have two dimensions, so that they can be drawn.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from concept_pictures import draw_pictures
from numpy.typing import NDArray

from ripplevec import Batch, Embedder, SpectralView
from ripplevec.lab.experiments.record import describe_environment

ROOT = Path(__file__).resolve().parents[1]
RECORD, PICTURES = ROOT / "results/concepts.json", ROOT / "docs/images/concepts"
COMMUNITIES = [
    *[("a", "b"), ("b", "c"), ("a", "c")],
    *[("d", "e"), ("e", "f"), ("d", "f")],
    *[("g", "h"), ("h", "i"), ("g", "i")],
]
BRIDGES = [("c", "d", 0.8), ("f", "g"), ("i", "a")]
NEW_VERTEX, NEIGHBORS, OTHER_EDGE = "j", ["a", "b", "d"], ("e", "h")
SEED, SEEDS = 9, 1000  # with this seed the arrival influences one vertex; with many seeds it influences none
DIGITS = 4


def fit_start(seed: int = SEED) -> Embedder:
    """Embed the initial graph, without normalization and automatic anchors, which would clutter the pictures."""
    view = SpectralView(tau=0.25, diffusion=1)
    model = Embedder(dim=2, views=[view], normalize=False, anchor_growth=0, seed=seed)
    return model.fit([*COMMUNITIES, *BRIDGES])


def record_steps() -> dict[str, Any]:
    """Return everything that the pictures and the page show: start, arrival, influence, anchor and batch."""
    model, arrival = fit_start(), Batch.arrival(NEW_VERTEX, NEIGHBORS)
    record: dict[str, Any] = {"edges": [*COMMUNITIES, *BRIDGES], "newcomer": NEW_VERTEX, "its_edges": NEIGHBORS}
    record |= {"start": _returned_vectors(model), "preview": _round_row(model.preview(NEIGHBORS))}
    record["changed"] = model.partial_fit(arrival).ids
    strength = {u: sum(weight for _, weight in model.neighbors(u)) for u in NEIGHBORS}
    record |= {"after": _returned_vectors(model), "chances": {u: round(1 / strength[u], DIGITS) for u in NEIGHBORS}}
    return record | {
        "seeds": SEEDS,
        "influenced": _count_influenced(arrival),
        "anchor": _record_anchor(model),
        "batch": _record_batch(),
    }


def _count_influenced(arrival: Batch) -> dict[str, int]:
    """Count how often each neighbor is influenced, over many seeds."""
    times = Counter(vertex for seed in range(SEEDS) for vertex in fit_start(seed).partial_fit(arrival).ids)
    return {vertex: times[vertex] for vertex in NEIGHBORS}


def _record_anchor(model: Embedder) -> dict[str, Any]:
    """Record the internal and the returned vectors before and after an anchor."""
    internal, returned = _internal_rows(model), model.to_numpy()
    model.anchor()
    rotation = model.engine.rule.coordinates.rotation  # type: ignore[attr-defined]
    return {
        "inside": [_by_name(model, internal), _by_name(model, _internal_rows(model))],
        "served": [_by_name(model, returned), _returned_vectors(model)],
        "turn_degrees": round(float(np.degrees(np.arctan2(rotation[1, 0], rotation[0, 0])))),
        "mean_cosine_inside": round(_mean_cosine(internal, _internal_rows(model)), 2),
        "mean_cosine_served": round(_mean_cosine(returned, model.to_numpy()), 2),
    }


def _record_batch() -> dict[str, Any]:
    """Record the same edges applied as one batch and one by one."""
    together, apart = fit_start(), fit_start()
    edges = [(NEW_VERTEX, u) for u in NEIGHBORS] + [OTHER_EDGE]
    changes = together.partial_fit(edges)
    each = [apart.partial_fit([edge]).ids for edge in edges]
    return {
        "together": {"batches": together.sequence, "changed": changes.ids, "vectors": _returned_vectors(together)},
        "apart": {"batches": apart.sequence, "changed": each, "vectors": _returned_vectors(apart)},
        "mean_cosine": round(_mean_cosine(together.to_numpy(), apart.to_numpy()), 2),
    }


def _internal_rows(model: Embedder) -> NDArray[np.float64]:
    """Return the rows in the coordinates that anchors are computed in."""
    return np.array(model.engine.store.vectors[model.engine.rows_by_arrival()], np.float64)


def _returned_vectors(model: Embedder) -> dict[str, list[float]]:
    return _by_name(model, model.to_numpy())


def _by_name(model: Embedder, rows: NDArray[Any]) -> dict[str, list[float]]:
    return {str(name): _round_row(row) for name, row in zip(model.ids, rows, strict=True)}


def _round_row(row: NDArray[Any]) -> list[float]:
    return [round(float(value), DIGITS) for value in row]


def _mean_cosine(left: NDArray[Any], right: NDArray[Any]) -> float:
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return float(((left * right).sum(axis=1) / lengths).mean())


if __name__ == "__main__":
    record = json.loads(json.dumps(record_steps()))
    content = record | {"environment": describe_environment()}
    RECORD.write_text(json.dumps(content, indent=1) + "\n")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in draw_pictures(record).items():
        (PICTURES / f"{name}.svg").write_text(picture)
