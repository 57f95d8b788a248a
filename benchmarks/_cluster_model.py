"""Cost model of a batch on many machines, calibrated with measurements of a few shards on one machine.

The time of a batch with B arrivals on S shards is the sum of

    call       c: the driver sends the batch to the first shard, and waits for the summary
    driver     B d: the driver prepares the batch and its result
    exchanges  E (e + m (S − 1) + LATENCY): in each exchange, a shard sends and receives S − 1 messages
    work       B (w + x (1 − 1/S)) / (S · speedup by the threads of a shard)
    network    bytes of the shard that sends or receives most / bandwidth of its link
    input      bytes of the batch, from the driver to the first shard and from there to the others / bandwidth

The numbers of exchanges E and their bytes are counted for up to 64 shards (`cluster_messages.py`): for the batches that
were measured, on a small graph, and for batches in which as few edges connect new vertices as on the graph of the
predictions, where E is smaller. All other values are fitted to the processor time of the driver and of the shards
(`cluster.py`), not to elapsed time: the shards of one machine wait for its few processors most of the time, which
shards on machines of their own do not. e and m are fitted to batches of one arrival on 1, 2, 4 and 8 shards. w is the
remaining processor time of the largest batches on one shard; x, the work of exchanging rows, is that of two shards.
Only c is elapsed time: that of a batch of one arrival on one shard, without the processor time of the shard.

Two checks: the processor time of the largest batches on 4 and 8 shards, which is not fitted, and the elapsed time on
all numbers of shards, as processor time / cores. Phases are added, as if they never overlapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Record = Mapping[str, Any]

VERTICES, EDGES = 10**9, 10**10  # size of the graph in predictions
MACHINES = (4, 16, 64)  # with one shard each
BATCHES = (10**5, 10**6)  # edges
EDGES_PER_ARRIVAL = 5  # as measured in cluster.py and cluster_messages.py
LARGEST = 20_000  # arrivals in the largest batches of cluster.py
SHARDS = (1, 2, 4, 8)  # measured in cluster.py
CHECKS = (4, 8)  # numbers of shards to which the work is not fitted

LINK = 25e9 / 8  # assumed bandwidth of a machine's link, in bytes per second
LATENCY = 0.05e-3  # assumed additional seconds until a message arrives on another machine
INPUT_BYTES = 16  # per edge: two integer ids
COLUMNS = 128  # as measured
HALF = 0.5  # bytes of float16 relative to float32; predictions assume vectors in float16
GIB = 2**30


@dataclass(frozen=True)
class CostModel:
    """Calibrated costs in seconds."""

    call: float  # c: per batch
    driver: float  # d: per arrival
    exchange: float  # e: per exchange
    message: float  # m: per message
    work: float  # w: per arrival, one thread
    remote: float  # x: per arrival, one thread, if all neighbors were remote
    threads: float  # speedup by the two threads of a shard that has a machine of its own
    messages: Record  # counted exchanges and bytes
    processor_errors: tuple[float, ...] = ()  # of the predicted processor time of the largest batches, by `CHECKS`
    elapsed_errors: tuple[float, ...] = ()  # of their predicted elapsed time on one machine, by `SHARDS`

    def count_exchanges(self, shards: int, arrivals: int, *, large: bool = False) -> int:
        """Return the exchanges of a batch, as measured or on a `large` graph."""
        return int(self.messages[f"shards_{shards}_{'large_' * large}exchanges_{arrivals}"])

    def exchange_seconds(self, shards: int, arrivals: int, *, large: bool = False) -> float:
        """Return the processor time that the exchanges of a batch take each shard."""
        exchanges = self.count_exchanges(shards, arrivals, large=large)
        return exchanges * (self.exchange + self.message * (shards - 1))

    def work_seconds(self, shards: int, arrivals: int) -> float:
        """Return the processor time of a batch on all shards together, without exchanges."""
        return arrivals * (self.work + self.remote * remote_share(shards))

    def processor_seconds(self, shards: int, arrivals: int) -> float:
        """Return the processor time of a batch on all shards together."""
        return shards * self.exchange_seconds(shards, arrivals) + self.work_seconds(shards, arrivals)


class Prediction(NamedTuple):
    """Predicted time of a batch on a number of machines."""

    machines: int
    batch: int  # edges
    pieces: dict[str, float]  # seconds of a batch by phase

    @property
    def seconds(self) -> float:
        """Seconds of a batch."""
        return sum(self.pieces.values())

    @property
    def edges_per_second(self) -> float:
        """Edges per second on all machines together."""
        return self.batch / self.seconds

    @property
    def limit(self) -> str:
        """The phase that takes longest."""
        return max(self.pieces, key=self.pieces.__getitem__)

    def share(self, *pieces: str) -> float:
        """Return the share of these phases in the total time."""
        return sum(self.pieces[piece] for piece in pieces) / self.seconds


CALL, DRIVER, EXCHANGES, WORK, NETWORK, INPUT = "call", "driver", "exchanges", "work", "network", "input"


def remote_share(shards: int) -> float:
    """Return the share of neighbors that are on another shard."""
    return 1 - 1 / shards


def can_calibrate(cluster: Record | None, messages: Record | None) -> bool:
    """Return whether the records exist and have what the model needs; older ones lack some of it."""
    return "shards_1_processor_1" in (cluster or ()) and "shards_1_large_exchanges_1" in (messages or ())


def calibrate(cluster: Record, messages: Record, two_threads: float = 1.0) -> CostModel:
    """Fit the model to measurements; `two_threads` is the speedup of two threads of a shard over one."""

    def terms(shards: int) -> list[float]:
        exchanges = shards * messages[f"shards_{shards}_exchanges_1"]
        return [exchanges, exchanges * (shards - 1)]

    exchange, message = fit_terms(select_by_shards(cluster, "processor_1"), terms)
    call = max(0.0, cluster["shards_1_seconds_1"] - cluster["shards_1_processor_1"])
    driver = [cluster[f"shards_{shards}_driver_{LARGEST}"] - cluster[f"shards_{shards}_driver_1"] for shards in SHARDS]
    model = CostModel(
        call, max(0.0, float(np.median(driver))) / LARGEST, exchange, message, 0.0, 0.0, two_threads, messages
    )
    measured = select_by_shards(cluster, f"processor_{LARGEST}")
    one, two = (max(0.0, measured[shards] - model.processor_seconds(shards, LARGEST)) / LARGEST for shards in (1, 2))
    model = replace(model, work=one, remote=max(0.0, two - one) / remote_share(2))
    elapsed = select_by_shards(cluster, f"seconds_{LARGEST}")
    return replace(
        model,
        processor_errors=tuple(model.processor_seconds(shards, LARGEST) / measured[shards] - 1 for shards in CHECKS),
        elapsed_errors=tuple(predict_local(model, shards, cluster["cores"]) / elapsed[shards] - 1 for shards in SHARDS),
    )


def predict_local(model: CostModel, shards: int, cores: int) -> float:
    """Predict the elapsed seconds of the largest batches on shards that share the cores of one machine."""
    speed = min(shards, cores) * (model.threads if cores >= 2 * shards else 1.0)
    return model.call + LARGEST * model.driver + model.processor_seconds(shards, LARGEST) / speed


def predict(model: CostModel, machines: int, batch: int, *, large: bool = True) -> Prediction:
    """Predict the time of a batch of edges on a number of machines; see `CostModel.count_exchanges`."""
    arrivals = batch // EDGES_PER_ARRIVAL
    latency = model.count_exchanges(machines, arrivals, large=large) * LATENCY
    return Prediction(
        machines,
        batch,
        {
            CALL: model.call,
            DRIVER: arrivals * model.driver,
            EXCHANGES: model.exchange_seconds(machines, arrivals, large=large) + latency,
            WORK: model.work_seconds(machines, arrivals) / (machines * model.threads),
            NETWORK: arrivals * model.messages[f"shards_{machines}_{'large_' * large}bytes_{arrivals}"] / LINK,
            INPUT: 2 * batch * INPUT_BYTES / LINK,
        },
    )


def single_machine_rate(cluster: Record) -> float:
    """Return the edges per second of a model without shards, in the largest batches."""
    return float(LARGEST * EDGES_PER_ARRIVAL / cluster[f"single_seconds_{LARGEST}"])


def state_bytes(memory: Record, ids: Record) -> float:
    """Return the bytes of the state on all machines: float16 vectors, text ids, ten edges per vertex as measured."""
    per_vertex = memory["resident_beyond_imports_mb"] * 2**20 / memory["vertices"]
    return VERTICES * (per_vertex - (1 - HALF) * 4 * COLUMNS - ids["int_bytes_per_id"] + ids["text_bytes_per_id"])


def machine_bytes(memory: Record, ids: Record, machines: int) -> float:
    """Return the bytes of memory per machine: its part of the state, and the process."""
    process = memory["resident_mb"] - memory["resident_beyond_imports_mb"]
    return state_bytes(memory, ids) / machines + process * 2**20


def select_by_shards(record: Record, metric: str) -> dict[int, float]:
    """Return a metric of a record for each number of shards that was measured."""
    matches = {name: re.fullmatch(rf"shards_(\d+)_{metric}", name) for name in record}
    return {int(match[1]): record[name] for name, match in matches.items() if match}


def fit_terms(values: Mapping[int, float], terms: Callable[[int], list[float]]) -> NDArray[np.float64]:
    """Fit nonnegative coefficients of the terms to the values, by least squares of the relative error."""
    target = np.array(list(values.values()))
    return nnls(np.array([terms(shards) for shards in values]) / target[:, None], np.ones(target.size))[0]
