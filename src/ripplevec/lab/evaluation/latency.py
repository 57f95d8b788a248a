"""How long an arrival takes: the usual, the slow, the slowest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ripplevec.lab.evaluation.protocols import StreamResult


@dataclass(frozen=True, slots=True)
class Latency:
    """Microseconds per step of a stream: half of the steps take no longer than `p50`, 99 % no longer than `p99`."""

    p50: float
    p99: float
    maximum: float


def latency(result: StreamResult) -> Latency:
    """The latencies of a stream that has been timed; a step is one arrival unless it was streamed in batches."""
    p50, p99, maximum = 1e6 * np.percentile(result.arrival_seconds, [50, 99, 100])
    return Latency(float(p50), float(p99), float(maximum))
