"""Measures what explains the paper's rule besides its parameters: how far the order by index follows the classes, how
many vertices an arrival influences, and what it costs to place vertices late.

python studies/streams.py [FILE]     results/streams.json unless told otherwise
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

import numpy as np
from sklearn.metrics import normalized_mutual_info_score as nmi

from ripplevec import Embedder
from ripplevec.graph.adjacency import Rows
from ripplevec.lab import datasets
from ripplevec.lab.datasets import Dataset
from ripplevec.lab.evaluation import score_at_end, score_on_arrival, stream
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.rules.paper import PaperRule
from ripplevec.rules.vector_store import Field

ROOT = Path(__file__).resolve().parent.parent
START, SEED, SEEDS, DIM = 0.5, 0, (0, 1, 2), 90


def index_order(dataset: Dataset) -> dict[str, float]:
    """How much the first half by index says about the classes of the second."""
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


def influence(dataset: Dataset) -> dict[str, float]:
    """How many an arrival influences at depth 1, and how many vertices end with the zero vector."""
    sizes = np.array(_sizes_of_sets(dataset))
    model = _model("neighbors")
    final = stream(model, dataset, START, SEED).final_vectors
    return {
        "sets_drawn": len(sizes),
        "nobody_influenced": float(np.mean(sizes == 0)),
        "one_influenced": float(np.mean(sizes == 1)),
        "zero_at_the_end": float(np.mean(~final.any(axis=1))),
        "never_placed": model.diagnostics()["unplaced"] / dataset.vertices,
    }


def never_late(dataset: Dataset) -> dict[str, float]:
    """Scores in % when a vertex that came without a neighbor is not placed later either, and so takes from nobody."""
    drawn = PaperRule._influenced

    def only_newcomers(rule: PaperRule, field: Field, row: int) -> Rows | None:
        return drawn(rule, field, row) if row == field.graph.row_count - 1 else None

    with patch.object(PaperRule, "_influenced", only_newcomers):
        found = [stream(_model("neighbors", seed), dataset, START, seed) for seed in SEEDS]
    return {
        "arrival_micro": 100 * fmean(score_on_arrival(result).micro for result in found),
        "current_micro": 100 * fmean(score_at_end(result).micro for result in found),
    }


def _sizes_of_sets(dataset: Dataset) -> list[int]:
    """The size of every influenced set that is drawn in a stream, empty ones left as they are."""
    sizes, drawn = [], PaperRule._influenced

    def noted(rule: PaperRule, field: Field, row: int) -> Rows | None:
        found = drawn(rule, field, row)
        if found is not None:  # an arrival without a neighbor draws nothing
            sizes.append(len(found))
        return found

    with patch.object(PaperRule, "_influenced", noted):
        stream(_model("zero"), dataset, START, SEED)
    return sizes


def _model(on_empty: str, seed: int = SEED) -> Embedder:
    return Embedder(rule="paper", dim=DIM, seed=seed, on_empty=on_empty, threads=1)


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results/streams.json"
    found = {}
    for name in datasets.available():
        data = datasets.load(name)
        found[name] = {"index": index_order(data), "influence": influence(data), "never_late": never_late(data)}
    content = {
        "start": START,
        "seed": SEED,
        "seeds_of_scores": SEEDS,
        "dim": DIM,
        "environment": describe_environment(),
        "datasets": found,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
