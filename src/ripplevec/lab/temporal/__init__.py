"""Link prediction on timed streams, by the protocol of the Temporal Graph Benchmark (TGB)."""

from __future__ import annotations

from ripplevec.lab.temporal.protocol import Evaluation, evaluate, make_negatives, reciprocal_ranks
from ripplevec.lab.temporal.streams import TimedStream, load_stream

__all__ = ["Evaluation", "TimedStream", "evaluate", "load_stream", "make_negatives", "reciprocal_ranks"]
