"""Measure properties of data sets and streams that explain the scores of rule `paper`.

    python studies/paper_facts.py [FILE]     # by default results/streams.json

These are how strongly the index order follows the classes, how many vertices an arrival influences, and the effect of
placing vertices late. The tables of docs/paper.md show them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Literal
from unittest.mock import patch

import numpy as np
from sklearn.metrics import normalized_mutual_info_score as nmi

from ripplevec import Embedder
from ripplevec.graph.adjacency import RowArray
from ripplevec.lab import datasets
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import score_at_end, score_on_arrival, stream
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.vector_store import VectorStore

ROOT = Path(__file__).resolve().parent.parent
START, SEED, SEEDS, DIM = 0.5, 0, (0, 1, 2), 90


def measure_index_order(dataset: Dataset) -> dict[str, float]:
    """Return how well the first half in index order represents the classes of the second half."""
    labels, half = dataset.labels, dataset.vertices // 2
    tenth = np.arange(len(labels)) * 10 // len(labels)
    sizes = np.unique(labels, return_counts=True)[1] / len(labels)
    shuffled = np.random.default_rng(SEED).permutation(labels)
    return {
        "classes": len(sizes),
        "entropy_of_classes_over_most": float(-(sizes @ np.log(sizes)) / np.log(len(sizes))),
        "classes_in_first_half": len(np.unique(labels[:half])),
        "second_half_of_unseen_class": float(np.mean(~np.isin(labels[half:], labels[:half]))),
        "nmi_of_tenth_and_class": float(nmi(tenth, labels)),
        "nmi_if_shuffled": float(nmi(tenth, shuffled)),
    }


def measure_influence(dataset: Dataset) -> dict[str, float]:
    """Return the sizes of influenced sets at depth 1, and the share of zero vectors at the end."""
    sizes = np.array(_influenced_set_sizes(dataset))
    model = _build_model("neighbors")
    final = stream(model, dataset, START, SEED).final_vectors
    return {
        "sets_drawn": len(sizes),
        "nobody_influenced": float(np.mean(sizes == 0)),
        "one_influenced": float(np.mean(sizes == 1)),
        "zero_at_the_end": float(np.mean(~final.any(axis=1))),
        "never_placed": model.diagnostics()["unplaced"] / dataset.vertices,
    }


def score_without_late_placement(dataset: Dataset) -> dict[str, float]:
    """Return the scores in percent if a vertex that arrives without a neighbor is never placed later."""
    draw_influenced = PaperRule._draw_influenced

    def influence_of_new_vertices(rule: PaperRule, store: VectorStore, row: int) -> RowArray | None:
        return draw_influenced(rule, store, row) if row == store.graph.row_count - 1 else None

    with patch.object(PaperRule, "_draw_influenced", influence_of_new_vertices):
        results = [stream(_build_model("neighbors", seed), dataset, START, seed) for seed in SEEDS]
    return {
        "arrival_micro": 100 * fmean(score_on_arrival(result).micro for result in results),
        "current_micro": 100 * fmean(score_at_end(result).micro for result in results),
    }


def _influenced_set_sizes(dataset: Dataset) -> list[int]:
    """Return the size of every influenced set drawn in a stream, including empty ones."""
    sizes: list[int] = []
    draw_influenced = PaperRule._draw_influenced

    def draw_and_record(rule: PaperRule, store: VectorStore, row: int) -> RowArray | None:
        influenced = draw_influenced(rule, store, row)
        if influenced is not None:  # an arrival without neighbors draws no set
            sizes.append(len(influenced))
        return influenced

    with patch.object(PaperRule, "_draw_influenced", draw_and_record):
        stream(_build_model("zero"), dataset, START, SEED)
    return sizes


def _build_model(on_empty: Literal["neighbors", "zero"], seed: int = SEED) -> Embedder:
    return Embedder(rule="paper", dim=DIM, seed=seed, on_empty=on_empty, threads=1)


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/streams.json"
    facts = {}
    for name in datasets.available():
        data = datasets.load(name)
        facts[name] = {
            "index": measure_index_order(data),
            "influence": measure_influence(data),
            "never_late": score_without_late_placement(data),
        }
    content = {
        "start": START,
        "seed": SEED,
        "seeds_of_scores": SEEDS,
        "dim": DIM,
        "environment": describe_environment(),
        "datasets": facts,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
