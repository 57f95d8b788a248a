"""Cost model of a batch on many machines, calibrated with measurements of a few shards on one machine.

The time of a batch with B arrivals on S shards is the sum of

    calls      (a + d S + q S²) · (calls of such a batch / calls of a single arrival) + calls · LATENCY
    driver     B (s + t S)
    work       B (w + x (1 − 1/S)) / (shards that run concurrently · speedup by their threads)
    network    bytes between shards / bandwidth of their links, bytes of the driver / bandwidth of its link

a, d and q are fitted to batches of one arrival (`cluster.py`; an exchange has S² parts, hence q); s and t are fitted to
the driver alone (`cluster_driver.py`). w is the remaining time of the largest batches on one shard; x, the work of
exchanging rows, is the remaining time of those on two. Four shards serve as the check: only a, d and q were fitted to
them. The phases wait for each other, so their times are added and never overlap.
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
MACHINES = (16, 64, 256)  # with one shard each
BATCHES = (10**5, 10**6, 10**7)  # edges
EDGES_PER_ARRIVAL = 5  # as measured in cluster.py and cluster_driver.py
LARGEST = 20_000  # arrivals in the largest batches of cluster.py
CHECK = 4  # number of shards for the check, to which the work is not fitted

GAIN = 1.0  # assumed speedup by the threads of a shard; 1 is the measured speed of one thread
LINK = 25e9 / 8  # assumed bandwidth of a machine's link, in bytes per second
LATENCY = 0.2e-3  # assumed additional seconds of a call to another machine
COLUMNS = 128  # as measured
HALF = 0.5  # bytes of float16 relative to float32; predictions assume vectors in float16
GIB = 2**30


@dataclass(frozen=True)
class CostModel:
    """Calibrated costs in seconds and bytes; per arrival unless stated otherwise."""

    call: float  # a: per batch
    shard: float  # d: per batch and shard
    pair: float  # q: per batch and pair of shards
    serial: float  # s: driver
    serial_per_shard: float  # t: driver, per shard
    work: float  # w: one thread
    exchange: float  # x: one thread, if all neighbors were remote
    sent: float  # bytes between shards, if all neighbors were remote
    needed: float  # bytes of these that are vectors which had to be read, in float32
    through_driver: float  # bytes through the driver
    through_driver_per_shard: float
    calls: float  # calls in a large batch
    calls_over_one: float  # these relative to the calls for a single arrival
    check: float = 0.0  # relative error of the predicted seconds for the largest batches on four shards
    traffic_check: float = 0.0  # relative error of the predicted bytes

    def fixed(self, shards: int) -> float:
        """Return the seconds for the calls of a large batch, independent of its size, on one machine."""
        return self.calls_over_one * (self.call + self.shard * shards + self.pair * shards**2)

    def driver(self, shards: int) -> float:
        """Return the seconds of the driver per arrival."""
        return self.serial + self.serial_per_shard * shards

    def shared(self, shards: int) -> float:
        """Return the seconds of one thread per arrival, summed over all shards."""
        return self.work + self.exchange * remote_share(shards)

    @property
    def cautious(self) -> CostModel:
        """The model with all time that a second shard did not save attributed to the driver."""
        return replace(self, serial=self.serial + self.exchange * remote_share(2) / 2, exchange=0.0)


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
    def arrivals_per_second(self) -> float:
        """Arrivals per second on all machines together."""
        return self.edges_per_second / EDGES_PER_ARRIVAL

    @property
    def limit(self) -> str:
        """The phase that takes longest."""
        return max(self.pieces, key=self.pieces.__getitem__)

    def share(self, *pieces: str) -> float:
        """Return the share of these phases in the total time."""
        return sum(self.pieces[piece] for piece in pieces) / self.seconds


CALLS, DRIVER, WORK, NETWORK, DRIVER_NETWORK = "calls", "driver", "work", "network", "the driver's network"
DRIVER_COSTS = CALLS, DRIVER, DRIVER_NETWORK


def remote_share(shards: int) -> float:
    """Return the share of neighbors that are on another shard."""
    return 1 - 1 / shards


def calibrate(cluster: Record, driver: Record, two_threads: float = 1.0) -> CostModel:
    """Fit the model to measurements; `two_threads` is the speedup of two threads of a shard over one."""
    call, shard, pair = fit_terms(select_by_shards(cluster, "seconds_1"), lambda s: [1, s, s**2])
    serial, serial_per_shard = fit_terms(select_by_shards(driver, "us_per_arrival"), lambda s: [1, s])
    through, through_per_shard = fit_terms(select_by_shards(driver, "bytes_per_arrival"), lambda s: [1, s])
    calls = driver[f"calls_{LARGEST}"]
    model = CostModel(
        *(call, shard, pair, serial / 1e6, serial_per_shard / 1e6),
        work=0.0,
        exchange=0.0,
        sent=cluster["shards_2_bytes_per_arrival"] / remote_share(2),
        needed=cluster["shards_2_needed_per_arrival"] / remote_share(2),
        through_driver=through,
        through_driver_per_shard=through_per_shard,
        calls=calls,
        calls_over_one=calls / driver["calls_1"],
    )
    concurrency, gain = local_parallelism(cluster["cores"], two_threads)
    one, two = (_unexplained_seconds(model, cluster, shards) * concurrency(shards) * gain(shards) for shards in (1, 2))
    model = replace(model, work=one, exchange=max(0.0, two - one) / remote_share(2))
    traffic = model.sent * remote_share(CHECK) / cluster[f"shards_{CHECK}_bytes_per_arrival"] - 1
    seconds = predict_local(model, CHECK, LARGEST, cluster["cores"], two_threads)
    return replace(model, check=seconds / cluster[f"shards_{CHECK}_seconds_{LARGEST}"] - 1, traffic_check=traffic)


def _unexplained_seconds(model: CostModel, cluster: Record, shards: int) -> float:
    """Return the seconds per arrival that neither the calls nor the driver account for."""
    seconds = cluster[f"shards_{shards}_seconds_{LARGEST}"] - model.fixed(shards)
    return max(0.0, seconds / LARGEST - model.driver(shards))


def local_parallelism(cores: int, two_threads: float) -> tuple[Callable[[int], int], Callable[[int], float]]:
    """Return two functions of the shard count on one machine: concurrent shards, and speedup by their threads."""
    return lambda shards: min(shards, cores), lambda shards: two_threads if cores >= 2 * shards else 1.0


def predict_local(model: CostModel, shards: int, arrivals: int, cores: int, two_threads: float = 1.0) -> float:
    """Predict the seconds of a large batch on shards of one machine."""
    concurrency, gain = local_parallelism(cores, two_threads)
    work = model.shared(shards) / (concurrency(shards) * gain(shards))
    return model.fixed(shards) + arrivals * (model.driver(shards) + work)


def predict(model: CostModel, machines: int, batch: int, gain: float = GAIN) -> Prediction:
    """Predict the time of a batch of edges on a number of machines."""
    arrivals = batch / EDGES_PER_ARRIVAL
    driver_bytes = model.through_driver + model.through_driver_per_shard * machines
    return Prediction(
        machines,
        batch,
        {
            CALLS: model.fixed(machines) + model.calls * LATENCY,
            DRIVER: arrivals * model.driver(machines),
            WORK: arrivals * model.shared(machines) / (machines * gain),
            NETWORK: arrivals * bytes_between_shards(model, machines) / (machines * LINK),
            DRIVER_NETWORK: arrivals * driver_bytes / LINK,
        },
    )


def bytes_between_shards(model: CostModel, machines: int) -> float:
    """Return the bytes sent between shards per arrival, with vectors in float16."""
    return (model.sent - (1 - HALF) * model.needed) * remote_share(machines)


def network_rate(model: CostModel, prediction: Prediction) -> float:
    """Return the bytes per second that a machine sends to others."""
    return prediction.arrivals_per_second * bytes_between_shards(model, prediction.machines) / prediction.machines


def driver_limit(model: CostModel, machines: int) -> float:
    """Return the edges per second if only the driver took time."""
    return EDGES_PER_ARRIVAL / model.driver(machines)


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
