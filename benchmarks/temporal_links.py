"""Benchmark of link prediction on timed streams, by the protocol of the Temporal Graph Benchmark (TGB).

    python benchmarks/temporal_links.py --json results/temporal_links.json

Every method is measured twice: its state is updated after every batch of 200 events, or after every event (vectors
still after every batch). Weights are learned in the training part only. `--part val` measures the validation part, on
which all choices were made. Processor time is that of one thread and includes everything: the model, the scorer, and in
the evaluated part the scores of all candidates.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ripplevec.lab.experiments.record import describe_environment
from ripplevec.lab.temporal import TimedStream, evaluate, load_stream, make_negatives
from ripplevec.lab.temporal.predictors import CosinePredictor, EdgeBank, Popularity, Recency, ScorerPredictor
from ripplevec.lab.temporal.protocol import BATCH_SIZE, Evaluation, LinkPredictor
from ripplevec.lab.temporal.streams import Ids
from ripplevec.lab.temporal.streamwalk import StreamWalkPredictor

NEGATIVES = {"tgbl-wiki": 999}
"""Negatives per event; in tgbl-wiki these are all other pages. 100 in other streams."""

METHODS: dict[str, Callable[[int], LinkPredictor]] = {
    "LinkScorer": lambda seed: ScorerPredictor(dim=64, threads=1, seed=seed),
    "LinkScorer, 128 dimensions": lambda seed: ScorerPredictor(threads=1, seed=seed),
    "cosine": lambda seed: CosinePredictor(threads=1, seed=seed),
    "EdgeBank, unlimited": lambda seed: EdgeBank(),
    "EdgeBank, window": lambda seed: EdgeBank(window=True),
    "popularity": lambda seed: Popularity(),
    "recent popularity": lambda seed: Popularity(half_life=1000),
    "recency": lambda seed: Recency(),
    "StreamWalk": lambda seed: StreamWalkPredictor(seed=seed),
}
SEEDED = ("LinkScorer", "LinkScorer, 128 dimensions", "cosine", "StreamWalk")
BATCHED_ONLY = ("cosine", "StreamWalk")
"""Methods whose whole state is vectors, which are updated batch by batch."""

SERIES_POINTS, FIRST_EVENTS = 20, 20


def measure_method(name: str, stream: TimedStream, part: str, negatives: list[Ids], seeds: int) -> dict[str, Any]:
    """Measure one method on one stream, updated by batch and by event."""
    results = {}
    for update in ("batch",) if name in BATCHED_ONLY else ("batch", "event"):
        runs = [
            run_method(METHODS[name](seed), stream, part, negatives, update == "event")
            for seed in range(seeds if name in SEEDED else 1)
        ]
        results[update] = summarize(runs)
        print(f"{stream.name}, {name}, by {update}: MRR {results[update]['mrr']:.4f}", flush=True)
    return results


def run_method(
    predictor: LinkPredictor, stream: TimedStream, part: str, negatives: list[Ids], one_by_one: bool
) -> dict[str, Any]:
    """Measure one method with one seed."""
    evaluation = evaluate(predictor, stream, part, negatives, one_by_one=one_by_one)
    ranks = evaluation.reciprocal_ranks
    return {
        "mrr": evaluation.mrr,
        "hits_at_10": evaluation.hits_at_10,
        "us_per_event": evaluation.update_seconds / evaluation.updated * 1e6,
        "us_per_scored_event": evaluation.scored_seconds / len(ranks) * 1e6,
        "series": [float(chunk.mean()) for chunk in np.array_split(ranks, SERIES_POINTS)],
        "by_experience": mrr_by_experience(stream, part, evaluation),
    }


def mrr_by_experience(stream: TimedStream, part: str, evaluation: Evaluation) -> list[float | None]:
    """Return the mean reciprocal rank of the first, second, … event of a source; None where there are few."""
    count: dict[int, int] = {}
    experience = np.empty(len(stream.src), np.int64)
    for i, source in enumerate(stream.src.tolist()):
        experience[i] = count[source] = count.get(source, -1) + 1
    validation, test = stream.bounds()
    evaluated = experience[validation:test] if part == "val" else experience[test:]
    chosen = [evaluation.reciprocal_ranks[evaluated == number] for number in range(FIRST_EVENTS)]
    return [float(ranks.mean()) if len(ranks) >= 20 else None for ranks in chosen]


def summarize(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over the seeds, and the largest deviation of a mean reciprocal rank from its mean."""
    mean = float(np.mean([run["mrr"] for run in runs]))
    summary: dict[str, Any] = {
        name: float(np.mean([run[name] for run in runs]))
        for name in ("mrr", "hits_at_10", "us_per_event", "us_per_scored_event")
    }
    deviation = max(abs(run["mrr"] - mean) for run in runs)
    return summary | {
        "seeds": len(runs),
        "mrr_deviation": deviation,
        "series": runs[0]["series"],
        "by_experience": runs[0]["by_experience"],
    }


def warm_up(names: list[str]) -> None:
    """Compile all kernels on a small stream, so that nothing is compiled while it is timed."""
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 400, 3000), rng.integers(400, 800, 3000)
    stream = TimedStream("warm-up", src, dst, np.arange(3000))
    negatives = make_negatives(stream, "test", 20)
    for name in names:
        for one_by_one in (False, True):
            evaluate(METHODS[name](0), stream, "test", negatives, one_by_one=one_by_one)


def update_record(path: Path | None, part: str, stream: TimedStream, name: str, result: dict[str, Any]) -> None:
    """Add the result of a method to the record; results of other methods and streams in it are kept."""
    if path is None:
        return
    record: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"batch_size": BATCH_SIZE}
    entry = record.setdefault(part, {}).setdefault(stream.name, {"events": len(stream.src), "methods": {}})
    entry["methods"][name] = result
    record["environment"] = describe_environment()
    path.write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    """Parse the options, measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", default=["tgbl-wiki", "collegemsg"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--part", choices=["val", "test"], default="test")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="record; results of other streams, parts and methods in it are kept")
    options = parser.parse_args()
    warm_up(options.methods)
    for stream in map(load_stream, options.streams):
        negatives = make_negatives(stream, options.part, NEGATIVES.get(stream.name, 100))
        for name in options.methods:
            result = measure_method(name, stream, options.part, negatives, options.seeds)
            update_record(options.json, options.part, stream, name, result)


if __name__ == "__main__":
    main()
