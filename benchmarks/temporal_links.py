"""Benchmark of link prediction on timed streams, by the protocol of the Temporal Graph Benchmark (TGB).

    python benchmarks/temporal_links.py --json results/temporal_links.json

Every method is measured twice: its state is updated after every batch of 200 events, or after every event (vectors
still after every batch). Results are means over seeds, of the method and of the negatives. Weights are learned in the
training part only. `--part val` measures the validation part, on which all choices were made. Processor time is that of
one thread and includes everything: the model, the scorer, and in the evaluated part the scores of all candidates.

    python benchmarks/temporal_links.py --methods TGN --seeds 1 --json results/temporal_links.json

adds TGN, trained for up to 50 epochs or `--tgn-seconds`. It needs the extra `torch`.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
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

FIRST_SEED = 42
"""Seed of the first set of negatives, that of the benchmark."""

METHODS: dict[str, Callable[[TimedStream, int], LinkPredictor]] = {
    "LinkScorer": lambda stream, seed: ScorerPredictor(dim=64, threads=1, seed=seed),
    "LinkScorer, 128 dimensions": lambda stream, seed: ScorerPredictor(threads=1, seed=seed),
    "cosine": lambda stream, seed: CosinePredictor(threads=1, seed=seed),
    "EdgeBank, unlimited": lambda stream, seed: EdgeBank(),
    "EdgeBank, window": lambda stream, seed: EdgeBank(window=True),
    "popularity": lambda stream, seed: Popularity(),
    "recent popularity": lambda stream, seed: Popularity(half_life=1000),
    "recency": lambda stream, seed: Recency(),
    "StreamWalk": lambda stream, seed: StreamWalkPredictor(seed=seed),
}
SEEDED = ("LinkScorer", "LinkScorer, 128 dimensions", "cosine", "StreamWalk")
TGN = "TGN"
"""Name of the TGN of PyTorch Geometric, which needs the extra `torch` and is trained for minutes."""

BATCHED_ONLY = ("cosine", "StreamWalk", TGN)
"""Methods that are updated batch by batch only."""

SERIES_POINTS, FIRST_EVENTS = 20, 20
GOOD = 0.9
"""Share of the overall MRR from which predictions for a new source count as good."""


def create_method(name: str, stream: TimedStream, seed: int, tgn_seconds: float) -> LinkPredictor:
    """Return a predictor of this name; training of TGN ends after a number of seconds."""
    if name != TGN:
        return METHODS[name](stream, seed)
    from ripplevec.lab.temporal.tgn import TgnPredictor  # imports torch

    return TgnPredictor(int(max(stream.src.max(), stream.dst.max())) + 1, seconds=tgn_seconds, seed=seed)


def measure_method(name: str, stream: TimedStream, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one method on one stream, updated by batch and by event; each seed has its own negatives."""
    count = NEGATIVES.get(stream.name, 100)
    is_random = name in (*SEEDED, TGN) or count < len(stream.targets) - 1
    results = {}
    for update in ("batch",) if name in BATCHED_ONLY else ("batch", "event"):
        runs = []
        for seed in range(options.seeds if is_random else 1):
            negatives = get_negatives(stream, options.part, count, FIRST_SEED + seed)
            predictor = create_method(name, stream, seed, options.tgn_seconds)
            runs.append(run_method(predictor, stream, options.part, negatives, update == "event"))
        results[update] = summarize(runs)
        print(
            f"{stream.name}, {name}, by {update}: MRR {results[update]['mrr']:.4f}, "
            f"{results[update]['us_per_event']:.0f} µs per event",
            flush=True,
        )
    return results


@cache
def get_negatives(stream: TimedStream, part: str, count: int, seed: int) -> list[Ids]:
    """Return the negatives of a stream, made once per seed."""
    return make_negatives(stream, part, count, seed)


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
        "state_mb": measure_state(predictor) / 1e6,
        "series": [float(chunk.mean()) for chunk in np.array_split(ranks, SERIES_POINTS)],
        "by_experience": mrr_by_experience(stream, part, evaluation),
        "epochs": getattr(predictor, "epochs_done", None),
    }


def measure_state(predictor: LinkPredictor) -> int:
    """Return the bytes of the saved state of a method at the end of the stream."""
    if isinstance(predictor, ScorerPredictor):
        with tempfile.TemporaryDirectory() as parent:
            predictor.scorer.save(f"{parent}/scorer")
            return sum(file.stat().st_size for file in Path(parent).rglob("*") if file.is_file())
    return len(pickle.dumps(predictor))


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
    """Return the means over the seeds, the standard deviation of the MRR, and when predictions become good."""
    summary: dict[str, Any] = {
        name: float(np.mean([run[name] for run in runs]))
        for name in ("mrr", "hits_at_10", "us_per_event", "us_per_scored_event", "state_mb")
    }
    by_experience = [
        None if None in ranks else float(np.mean(ranks))
        for ranks in zip(*(run["by_experience"] for run in runs), strict=True)
    ]
    good = [number for number, mrr in enumerate(by_experience) if mrr is not None and mrr >= GOOD * summary["mrr"]]
    return summary | {
        "seeds": len(runs),
        "mrr_deviation": float(np.std([run["mrr"] for run in runs])),
        "series": np.mean([run["series"] for run in runs], axis=0).tolist(),
        "by_experience": by_experience,
        "events_until_good": good[0] if good else None,
        "epochs": runs[0]["epochs"],
    }


def warm_up(names: list[str]) -> None:
    """Compile all kernels on a small stream, so that nothing is compiled while it is timed."""
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 400, 3000), rng.integers(400, 800, 3000)
    stream = TimedStream("warm-up", src, dst, np.arange(3000))
    negatives = make_negatives(stream, "test", 20)
    for name in names:
        for one_by_one in (False,) if name in BATCHED_ONLY else (False, True):
            evaluate(create_method(name, stream, 0, 0.0), stream, "test", negatives, one_by_one=one_by_one)


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
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, TGN], default=list(METHODS))
    parser.add_argument("--tgn-seconds", type=float, default=600, help="processor time of training TGN per stream")
    parser.add_argument("--part", choices=["val", "test"], default="test")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="record; results of other streams, parts and methods in it are kept")
    options = parser.parse_args()
    warm_up(options.methods)
    for stream in map(load_stream, options.streams):
        for name in options.methods:
            result = measure_method(name, stream, options)
            update_record(options.json, options.part, stream, name, result)


if __name__ == "__main__":
    main()
