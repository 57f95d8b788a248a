"""Soak test: run a service under traffic for hours with repeated kills, and watch its memory, latency and state.

    python benchmarks/soak.py [--minutes 30] [--kills 10] [--load 0.5] [--vertices 20000] [--state DIR] [--json FILE]

Each run adds one part to the record; eight hours can be spread over any number of parts. A part continues with the
state that the previous one left in the directory, or starts a new one; the record says which.

The graph grows to its size and then keeps it: every batch of arrivals also removes as many of the oldest vertices. The
maximum rate is measured first. Then the stream runs for the given minutes at a share of that rate (`--load`), over
HTTP, with the default anchors, snapshots and compaction, and with reads of vectors, nearest neighbors and changes. Now
and then the service is killed with SIGKILL and restarted on the same directory; unacknowledged batches are sent again
with the same key. At the end, its digest must equal that of a session that applied the same batches undisturbed. That
session is kept next to the state for the next part.

Trends are evaluated without the first sixth of the time, and without the time after each kill until the stream is on
time again and the feed of changes is full again. Latencies after kills are reported separately. The memory of a process
still grows after that, until its allocator has found its size. It is therefore evaluated within each process, from its
1,000th batch on; a part with many kills and a low load may have no process that is old enough.

With `--shards`, the service keeps its model on this many shards: Ray actors, or with `--ray-address in-process` threads
of the service. The undisturbed session then has as many shards in its own process, since gradual anchors give the same
bits only for the same number of shards. Memory and processor time are those of the service, without the actors.

Beside other work (`nice -n 5 python benchmarks/soak.py --load 0.1`), absolute latencies mean little. The same clients
therefore also measure two probes that do not depend on the state: a health check of the service, and a constant amount
of work in the client. Trends are reported relative to the probes of the same period, and as processor time per batch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _service_process import ServiceProcess
from _soak_record import SoakRecord, count_by_bin, describe_memory, thin_out
from _soak_series import ON_TIME_SECONDS, PROBES, Kill, Sample, SoakSeries, draw, take_sample
from _soak_traffic import BatchSender, Readers, sliding_window

from ripplevec import Session
from ripplevec.cluster.sharded_embedder import IN_PROCESS, Sharded
from ripplevec.lab.experiments.record import describe_environment
from ripplevec.replay.pacing import Report, ScheduledBatch, play

REFERENCE_GROUP = 64  # batches per flush of the reference session


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of one part of the test."""

    minutes: float
    kills: int
    load: float  # share of the maximum rate
    vertices: int
    arrivals: int  # per batch
    dim: int
    snapshot_every: int | None
    seed: int
    shards: int | None  # None: a model without shards
    ray_address: str | None
    part: int  # number of earlier parts

    @property
    def seconds(self) -> float:
        """Length of the evaluated period."""
        return 60 * self.minutes

    @property
    def rate_seconds(self) -> float:
        """Time for measuring the maximum rate."""
        return min(60.0, max(3.0, self.seconds / 10))

    @property
    def warmup_seconds(self) -> float:
        """Time at the beginning that is not evaluated: the journal reaches its full size after a few snapshots."""
        return self.seconds / 6

    @property
    def sample_seconds(self) -> float:
        """Time between two samples."""
        return max(0.5, self.seconds / 360)

    def kill_times(self) -> list[float]:
        """Return random times of the kills in seconds, one in each equal share of the period."""
        share, chooser = self.seconds / max(self.kills, 1), random.Random(self.seed + self.part)
        return [share * (number + chooser.uniform(0.1, 0.7)) for number in range(self.kills)]


class SoakTest:
    """One part of the test: the service, its clients, and the threads that kill and sample it."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.state, self.reference = plan, folder / "state", folder / "reference"
        self.continued = self.state.exists()
        self.options = ["--dim", str(plan.dim), "--seed", str(plan.seed)]
        if plan.snapshot_every is not None:
            self.options += ["--snapshot-every", str(plan.snapshot_every)]
        for name, value in {"shards": plan.shards, "ray-address": plan.ray_address}.items():
            self.options += [f"--{name}", str(value)] * (value is not None)
        self.service = ServiceProcess(self.state, *self.options)
        self.faults: list[str] = []
        self.kills: list[Kill] = []
        self.samples: list[Sample] = []
        self.snapshots: set[str] = set()
        self.delay = 0.0  # seconds by which the stream is late
        self.url = f"http://127.0.0.1:{self.service.port}"
        self.batches_before = self.service.get("/v1/stats")[1]["sequence"]
        self.sender = BatchSender(self.url, self.faults, self.batches_before)
        self.batches = sliding_window(plan.vertices, plan.arrivals, plan.seed, self.batches_before)
        self._stopped = threading.Event()

    def readable_vertices(self) -> range:
        """Return acknowledged vertices that will not be removed soon."""
        newest = self.sender.sent * self.plan.arrivals
        return range(newest - self.plan.vertices // 2, newest)

    def run(self) -> dict[str, Any]:
        """Run the part and return its record."""
        plan = self.plan
        environment = describe_environment()
        for batch in islice(self.batches, max(0, plan.vertices // plan.arrivals - self.batches_before)):
            self.sender.send(batch)
        readers = Readers(self.url, self.readable_vertices, self.faults)
        max_rate = self.measure_max_rate()
        log(f"maximum rate: {max_rate:,.0f} arrivals/s; running at {plan.load:.0%} of it for {plan.minutes:g} minutes")
        self.started, first = time.monotonic(), self.sender.sent
        killing, *_ = threads = [
            threading.Thread(target=self.run_reporting_errors, args=(work,))
            for work in (self.kill_repeatedly, self.sample_repeatedly)
        ]
        for thread in threads:
            thread.start()
        try:
            report = play(self.schedule(max_rate * plan.load), self.sender.send, self.note_delay)
            killing.join()  # usually done by now; a stream that is late may end before the last kill
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()
            readers.stop()
        stats = self.service.get("/v1/stats?digest=true")[1]
        self.service.stop()
        readers.join()
        self.compare_with_reference(stats)
        logs = {"write": self.sender.log, **readers.logs}
        relative = {
            name: [(at - self.started, seconds) for at, seconds in logs[name]]
            for name in dict.fromkeys([*PROBES, *PROBES.values()])
        }
        series = SoakSeries(self.samples, relative, plan.warmup_seconds, self.kills)
        record = self.make_record(max_rate, report, first, stats, readers, series)
        return record | {"environment": environment, "series": series}

    def measure_max_rate(self) -> float:
        """Return the best of three rates in arrivals per second, one request after another, with anchors and reads."""
        return max(self.measure_rate(self.plan.rate_seconds / 3) for _ in range(3))

    def measure_rate(self, seconds: float) -> float:
        """Send batches for some seconds; return the arrivals per second."""
        started, first = time.monotonic(), self.sender.sent
        while time.monotonic() - started < seconds:
            self.sender.send(next(self.batches))
        return (self.sender.sent - first) * self.plan.arrivals / (time.monotonic() - started)

    def schedule(self, rate: float) -> Iterator[ScheduledBatch]:
        """Generate the batches of the evaluated period with their due times."""
        step = self.plan.arrivals / rate
        for number in range(int(self.plan.seconds / step)):
            yield ScheduledBatch(number * step, next(self.batches))

    def note_delay(self, report: Report) -> None:
        """Store by how much the stream is late."""
        self.delay = report.behind_now

    def run_reporting_errors(self, work: Callable[[], None]) -> None:
        """Run a function in its thread; an error counts as a fault."""
        try:
            work()
        except Exception as error:
            self.faults.append(f"{work.__name__}: {error!r}")
            raise

    def kill_repeatedly(self) -> None:
        """Kill the service at each kill time and restart it."""
        for kill_time in self.plan.kill_times():
            if self._stopped.wait(max(0.0, self.started + kill_time - time.monotonic())):
                return
            at = time.monotonic()
            self.service.kill()
            try:
                self.service = ServiceProcess(self.state, *self.options, port=self.service.port)
            except SystemExit as error:  # the sender will time out later, and this is the reason
                self.faults.append(f"restart failed: {error}")
                log(self.faults[-1])
                return
            downtime, ready = time.monotonic() - at, self.service.ready_event()
            self.kills.append(Kill(at - self.started, downtime, ready["seconds"], ready["replayed"]))
            log(f"{at - self.started:7.1f} s: killed, ready again after {downtime:.1f} s")

    def sample_repeatedly(self) -> None:
        """Take samples until the part ends."""
        while not self._stopped.wait(self.plan.sample_seconds):
            now = time.monotonic()
            calm = now - self.started > self.plan.warmup_seconds and self.delay < ON_TIME_SECONDS
            self.snapshots |= {path.name for path in self.state.glob("snapshots/[0-9]*")}
            sample = take_sample(self.service, self.state, now - self.started, self.sender.sent, calm)
            if sample is not None:
                self.samples.append(sample)

    def compare_with_reference(self, stats: dict[str, Any]) -> None:
        """Compare the state with that of an undisturbed session that applied the same batches."""
        plan, sent = self.plan, self.sender.sent
        log(f"{sent - self.batches_before:,} batches sent over HTTP; applying them to the reference session")
        digest = reference_digest(plan, self.reference, sent)
        for name, expected in {"sequence": sent, "vertices": plan.vertices, "digest": digest}.items():
            if stats[name] != expected:
                self.faults.append(f"{name}: expected {expected}, got {stats[name]}")

    def make_record(
        self, max_rate: float, report: Report, first: int, stats: dict[str, Any], readers: Readers, series: SoakSeries
    ) -> dict[str, Any]:
        """Return the record of this part."""
        sent, arrivals = self.sender.sent, self.plan.arrivals
        rows, kills = thin_out(series.rows()), [asdict(kill) for kill in self.kills]
        return {
            **asdict(self.plan),
            "continued": self.continued,
            "batches_before": self.batches_before,
            "faults": self.faults,
            "greatest_arrivals_per_second": round(max_rate, 1),
            "arrivals_per_second": round((sent - first) * arrivals / report.seconds, 1),
            "batches": sent - self.batches_before,
            "edges": stats["edges"],
            "anchors": self.sender.anchors,
            "snapshots": len(self.snapshots),
            "reads": len(readers.logs["read"]),
            "searches": len(readers.logs["nearest"]),
            "looks_at_changes": len(readers.logs["changes"]),
            "killed": len(self.kills),
            "sent_again": self.sender.retried,
            "sent_again_and_there_already": self.sender.repeated,
            "away_seconds_median": round(median([kill.away for kill in self.kills] or [0.0]), 2),
            "away_seconds_longest": round(max([kill.away for kill in self.kills], default=0.0), 2),
            "recovery_seconds_median": round(median([kill.recovery for kill in self.kills] or [0.0]), 2),
            "recovery_seconds_longest": round(max([kill.recovery for kill in self.kills], default=0.0), 2),
            "latest_seconds": round(report.behind, 2),
            "settled": round(float(series.settled.mean()), 3),
            "load_average_median": round(float(np.median(series.column("load_average"))), 1),
            "flatness": series.flatness(),
            **describe_memory([{"samples": rows, "kills_at": kills}]),
            "after_kills": series.after_kills(),
            "kills_at": kills,
            "latency_bins": {name: count_by_bin(np.concatenate(parts)) for name, parts in series.latencies.items()},
            "samples": rows,
        }


def reference_digest(plan: Plan, directory: Path, batches: int) -> str:
    """Continue the undisturbed reference session up to a number of batches; return its digest."""
    model: Any = {} if plan.shards is None else {"model": Sharded(plan.shards, IN_PROCESS)}
    with Session(directory, dim=plan.dim, seed=plan.seed, **model) as session:
        stream = sliding_window(plan.vertices, plan.arrivals, plan.seed, session.model.sequence)
        while left := min(REFERENCE_GROUP, batches - session.model.sequence):
            session.apply_many(islice(stream, left))
        return session.model.digest()


def log(line: str) -> None:
    """Print a line of progress."""
    print(line, flush=True)


def main() -> None:
    """Run one part from the command line, and print and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--load", type=float, default=0.5, help="share of the maximum rate")
    parser.add_argument("--vertices", type=int, default=20_000)
    parser.add_argument("--arrivals", type=int, default=50, help="arrivals per batch")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--snapshot-every", type=int, help="events between snapshots; by default that of the service")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, help="number of shards; by default a model without shards")
    parser.add_argument("--ray-address", help="of the shards, as in `ripplevec serve`")
    parser.add_argument("--state", type=Path, help="state directory of all parts; by default a temporary one")
    parser.add_argument("--json", type=Path, help="record file, to which this part is added")
    parser.add_argument("--picture", type=Path, help="SVG file for a figure of this part")
    options = vars(parser.parse_args())
    state, record_path, picture = options.pop("state"), options.pop("json"), options.pop("picture")
    record = SoakRecord(record_path, options)
    plan = Plan(**options, part=len(record.content["parts"]))
    with tempfile.TemporaryDirectory(dir=os.environ.get("RIPPLEVEC_BENCH_DIR")) as folder:
        directory = state or Path(folder)
        directory.mkdir(parents=True, exist_ok=True)
        soak = SoakTest(plan, directory)
        try:
            part = soak.run()
        finally:
            soak.service.kill()
    series: SoakSeries = part.pop("series")
    record.add(part)
    hidden = ("samples", "latency_bins", "kills_at")
    print(json.dumps({name: value for name, value in part.items() if name not in hidden}, indent=1))
    log(f"{record.content['hours']:.2f} hours in {len(record.content['parts'])} parts")
    print(json.dumps(record.content["overall"], indent=1))
    if picture:
        draw(series, soak.kills, plan.load, picture)
    if part["faults"] and state:
        log(f"state preserved: directory={state}")
    raise SystemExit(1 if part["faults"] else 0)


if __name__ == "__main__":
    main()
