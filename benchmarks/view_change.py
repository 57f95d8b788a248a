"""Benchmark of a change of views in mid-stream: what it costs a classifier that was trained before it.

    python benchmarks/view_change.py [--graphs cora citeseer …] [--start 0.05] [--json FILE]

The edges of a labeled graph arrive in random order, so that its mean degree grows steadily. The model starts with few
of them and chooses its views again as the graph grows (`views="auto"`). Before and after every anchor, half of the
labeled vertices train a classifier and the others test it. *Loss* is the micro-F1 of the classifier from before the
anchor, before minus after it, in points: negative if the new vectors suit the old classifier better. For each change of
views it is shown beside the mean of the other anchors of the same stream, and at the end beside a model that starts
with all edges.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _report import write_record
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab.datasets.multilabel import LOCAL_GRAPHS, MultiLabelGraph, load_multilabel
from ripplevec.lab.datasets.published import PUBLISHED
from ripplevec.lab.evaluation.label_metrics import MultiLabelClassifier

DIM, BATCHES = 128, 200


class Half(NamedTuple):
    """Labeled vertices to train on, and to test on."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]

    def train_classifier(self, vectors: NDArray[Any], graph: MultiLabelGraph) -> MultiLabelClassifier:
        """Train on the first half."""
        return MultiLabelClassifier.train(vectors[self.train], graph.labels[self.train])

    def score(self, classifier: MultiLabelClassifier, vectors: NDArray[Any], graph: MultiLabelGraph) -> float:
        """Return the micro-F1 on the second half, in percent."""
        return 100 * classifier.score(vectors[self.test], graph.labels[self.test]).micro


def measure_graph(graph: MultiLabelGraph, start: float, seed: int = 0) -> dict[str, Any]:
    """Stream a graph edge by edge; return its changes of views with their losses, and the score at the end."""
    rng = np.random.default_rng(seed)
    edges, first = rng.permutation(graph.edges), round(start * len(graph.edges))
    half = Half(*np.array_split(rng.permutation(np.flatnonzero(graph.labels.any(axis=1))), 2))
    model = Embedder(dim=DIM, seed=seed).fit(edges[:first])
    anchors, views, losses, changes = 0, model.diagnostics()["views"], [], []
    for batch in np.array_split(edges[first:], BATCHES):
        before = read_vectors(model, graph)
        model.partial_fit(batch)
        report = model.diagnostics()
        if report["anchors"] == anchors:
            continue
        classifier, after = half.train_classifier(before, graph), read_vectors(model, graph)
        score_before = half.score(classifier, before, graph)
        loss = score_before - half.score(classifier, after, graph)
        if report["views"] == views:
            losses.append(loss)
        else:
            changes.append({"edges": model.engine.graph.adjacency.edge_count, "from": views, "to": report["views"]})
            changes[-1] |= {"loss": loss, "retrained_gain": score_trained(half, after, graph) - score_before}
        anchors, views = report["anchors"], report["views"]
    exact = Embedder(dim=DIM, seed=seed).fit(edges)
    return {
        "changes": changes,
        "loss_of_other_anchors": float(np.mean(losses or [0.0])),
        "largest_loss_of_other_anchors": float(np.max(losses or [0.0])),
        "views": views,
        "end": score_trained(half, read_vectors(model, graph), graph),
        "views_of_all_edges": exact.diagnostics()["views"],
        "start_with_all_edges": score_trained(half, read_vectors(exact, graph), graph),
    }


def read_vectors(model: Embedder, graph: MultiLabelGraph) -> NDArray[np.float32]:
    """Return the vectors of all vertices, zero for those that have not arrived."""
    arrived = np.array([vertex in model for vertex in range(graph.vertices)])
    vectors = np.zeros((graph.vertices, DIM), np.float32)
    vectors[arrived] = model.vectors(np.flatnonzero(arrived))
    return vectors


def score_trained(half: Half, vectors: NDArray[Any], graph: MultiLabelGraph) -> float:
    """Return the micro-F1 of a classifier that is trained on the same vectors."""
    return half.score(half.train_classifier(vectors, graph), vectors, graph)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=[*PUBLISHED, *LOCAL_GRAPHS])
    parser.add_argument("--start", type=float, default=0.05, help="share of the edges that the model starts with")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for name in options.graphs:
        results[name] = result = measure_graph(load_multilabel(name), options.start)
        print(f"{name}: {result['views']}, {result['end']:.1f} at the end; all edges at once: ", end="")
        print(f"{result['views_of_all_edges']}, {result['start_with_all_edges']:.1f}", flush=True)
        for change in result["changes"]:
            print("  at {edges:,} edges: {from} → {to}, loss {loss:.1f}".format(**change), end=", ")
            print(f"other anchors {result['loss_of_other_anchors']:.1f}", flush=True)
    if options.json:
        write_record(options.json, {"start": options.start, "graphs": results})


if __name__ == "__main__":
    main()
