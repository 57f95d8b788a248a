"""From a few shards on one machine to many machines: what a batch takes, piece by piece, and what that adds up to.

A batch of B arrivals on S shards takes, one after the other,

    calls      (a + d S + q S²) · (calls of such a batch / calls of a single arrival) + calls · LATENCY
    driver     B (s + t S)
    work       B (w + x (1 − 1/S)) / (shards that run at once · gain of their threads)
    networks   bytes between shards over their links, bytes of the driver over its own

a, d and q are fitted to batches of one arrival (`cluster.py`; an exchange makes S² parts, hence q); s and t to the
driver by itself (`driver.py`); w is what is left of the largest batches on one shard, x, the work of exchanging rows,
of those on two. Four shards are the check: nothing but a, d and q has seen them. All pieces wait for each other, so
that they are added up, never overlapped.
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

VERTICES, EDGES = 10**9, 10**10  # what is predicted for
MACHINES = (16, 64, 256)  # one shard each
BATCHES = (10**5, 10**6, 10**7)  # edges
EDGES_PER_ARRIVAL = 5  # as measured in cluster.py and driver.py
LARGEST = 20_000  # arrivals in the largest batches of cluster.py
CHECK = 4  # shards that the work is not fitted to

GAIN = 1.0  # of a shard's threads over one of them: assumed. One is what one thread does here.
LINK = 25e9 / 8  # bytes a second that a machine's link carries, assumed
LATENCY = 0.2e-3  # seconds more for a call to another machine, assumed
COLUMNS = 128  # as measured; kept and sent in HALF the bytes of float32
HALF = 0.5
GIB = 2**30


@dataclass(frozen=True)
class CostModel:
    """What was found out, in seconds and bytes; of an arrival where nothing else is said."""

    call: float  # a: of a batch
    shard: float  # d: of a batch, for every shard
    pair: float  # q: of a batch, for every pair of shards
    serial: float  # s: of the driver
    serial_per_shard: float  # t
    work: float  # w: of one thread
    exchange: float  # x: of one thread, were all neighbors elsewhere
    sent: float  # bytes from shard to shard, were all neighbors elsewhere
    needed: float  # of these, vectors that had to be read, in float32
    through_driver: float  # bytes
    through_driver_per_shard: float
    calls: float  # in a large batch
    calls_over_one: float  # over those of a single arrival
    check: float = 0.0  # seconds predicted for the largest batches on four shards, over those measured, less one
    traffic_check: float = 0.0  # the same for bytes

    def fixed(self, shards: int) -> float:
        """Seconds of the calls of a large batch, whatever is in it, on one machine."""
        return self.calls_over_one * (self.call + self.shard * shards + self.pair * shards**2)

    def driver(self, shards: int) -> float:
        """Seconds of the driver for an arrival."""
        return self.serial + self.serial_per_shard * shards

    def shared(self, shards: int) -> float:
        """Seconds of one thread for an arrival, on all shards together."""
        return self.work + self.exchange * remote_share(shards)

    @property
    def cautious(self) -> CostModel:
        """The same, with all that two shards did not speed up held to be the driver's."""
        return replace(self, serial=self.serial + self.exchange * remote_share(2) / 2, exchange=0.0)


class Prediction(NamedTuple):
    """What so many machines would do with batches of so many edges."""

    machines: int
    batch: int
    pieces: dict[str, float]  # seconds of a batch, by what takes them

    @property
    def seconds(self) -> float:
        """Of a batch."""
        return sum(self.pieces.values())

    @property
    def edges_per_second(self) -> float:
        """All machines together."""
        return self.batch / self.seconds

    @property
    def arrivals_per_second(self) -> float:
        """All machines together."""
        return self.edges_per_second / EDGES_PER_ARRIVAL

    @property
    def limit(self) -> str:
        """What takes longest."""
        return max(self.pieces, key=self.pieces.__getitem__)

    def share(self, *pieces: str) -> float:
        """How much of the time these take."""
        return sum(self.pieces[piece] for piece in pieces) / self.seconds


CALLS, DRIVER, WORK, NETWORK, DRIVER_NETWORK = "calls", "driver", "work", "network", "the driver's network"
DRIVER_COSTS = CALLS, DRIVER, DRIVER_NETWORK


def remote_share(shards: int) -> float:
    """The share of neighbors that are on another shard."""
    return 1 - 1 / shards


def calibrate(cluster: Record, driver: Record, two_threads: float = 1.0) -> CostModel:
    """The model of what was measured; `two_threads` is how much faster two threads of a shard are than one."""
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
    at_once, gain = local_parallelism(cluster["cores"], two_threads)
    one, two = (_left(model, cluster, shards) * at_once(shards) * gain(shards) for shards in (1, 2))
    model = replace(model, work=one, exchange=max(0.0, two - one) / remote_share(2))
    traffic = model.sent * remote_share(CHECK) / cluster[f"shards_{CHECK}_bytes_per_arrival"] - 1
    seconds = predict_local(model, CHECK, LARGEST, cluster["cores"], two_threads)
    return replace(model, check=seconds / cluster[f"shards_{CHECK}_seconds_{LARGEST}"] - 1, traffic_check=traffic)


def _left(model: CostModel, cluster: Record, shards: int) -> float:
    """Seconds of an arrival that neither the calls nor the driver account for."""
    whole = cluster[f"shards_{shards}_seconds_{LARGEST}"] - model.fixed(shards)
    return max(0.0, whole / LARGEST - model.driver(shards))


def local_parallelism(cores: int, two_threads: float) -> tuple[Callable[[int], int], Callable[[int], float]]:
    """On one machine: how many of so many shards run at once, and the gain of the threads that each then has."""
    return lambda shards: min(shards, cores), lambda shards: two_threads if cores >= 2 * shards else 1.0


def predict_local(model: CostModel, shards: int, arrivals: int, cores: int, two_threads: float = 1.0) -> float:
    """Seconds of a large batch on shards that are all on one machine."""
    at_once, gain = local_parallelism(cores, two_threads)
    work = model.shared(shards) / (at_once(shards) * gain(shards))
    return model.fixed(shards) + arrivals * (model.driver(shards) + work)


def predict(model: CostModel, machines: int, batch: int, gain: float = GAIN) -> Prediction:
    """What so many machines would do with batches of so many edges."""
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
    """Bytes that shards send each other for an arrival, with rows of float16."""
    return (model.sent - (1 - HALF) * model.needed) * remote_share(machines)


def network_rate(model: CostModel, found: Prediction) -> float:
    """Bytes a second that a machine sends to others."""
    return found.arrivals_per_second * bytes_between_shards(model, found.machines) / found.machines


def driver_limit(model: CostModel, machines: int) -> float:
    """Edges a second were there nothing but the driver's own work."""
    return EDGES_PER_ARRIVAL / model.driver(machines)


def state_bytes(memory: Record, ids: Record) -> float:
    """Bytes of the state, all machines together: rows of float16, names of text, ten edges a vertex as measured."""
    per_vertex = memory["resident_beyond_imports_mb"] * 2**20 / memory["vertices"]
    return VERTICES * (per_vertex - (1 - HALF) * 4 * COLUMNS - ids["int_bytes_per_id"] + ids["text_bytes_per_id"])


def machine_bytes(memory: Record, ids: Record, machines: int) -> float:
    """Bytes of a machine: its part of the state, and the process."""
    process = memory["resident_mb"] - memory["resident_beyond_imports_mb"]
    return state_bytes(memory, ids) / machines + process * 2**20


def select_by_shards(record: Record, figure: str) -> dict[int, float]:
    """A figure by the number of shards, for as many as were measured."""
    found = {name: re.fullmatch(rf"shards_(\d+)_{figure}", name) for name in record}
    return {int(match[1]): record[name] for name, match in found.items() if match}


def fit_terms(values: Mapping[int, float], terms: Callable[[int], list[float]]) -> NDArray[np.float64]:
    """How much of each term, none of them less than nothing, adds up to the values: by least squares of the ratio."""
    target = np.array(list(values.values()))
    return nnls(np.array([terms(shards) for shards in values]) / target[:, None], np.ones(target.size))[0]
