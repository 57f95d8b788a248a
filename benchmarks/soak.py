"""A service under traffic for hours, killed again and again: does it stay as it was, in memory and in speed?

    python benchmarks/soak.py [--minutes 30] [--kills 10] [--vertices 20000] [--state DIR] [--json FILE]

One run is one part, added to the record; eight hours are as many parts as it takes. A part goes on with the state that
the one before left in the directory, and begins a new one where there is none; the record says which it was.

A graph grows to its size and then keeps it: with every batch of arrivals as many of the oldest vertices go. First as
fast as the service takes it, which gives the greatest rate; then for so many minutes at half of that, over HTTP, with
anchors, snapshots and compaction as they come by default, with reads of vectors, of the nearest and of the changes.
Now and then the service is killed with SIGKILL and started again on the same directory; what was not acknowledged is
sent again under the same key. In the end its digest has to be that of a model that took in the same batches in peace,
which is kept beside the state for the next part.

Flat is judged without the first sixth of the time, and without what comes right after a kill: until the stream is on
time again, and what the service keeps for those who follow changes is full again. That is said apart.
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
from _served import Served
from _soak_parts import Parts, bins, slope, thinned
from _soak_record import ON_TIME, Course, Kill, Sample, draw, sample
from _soak_traffic import Readers, Stream, sliding

from ripplevec import Session
from ripplevec.replay.pacing import ScheduledBatch, Report, play

GROUP = 64  # batches that the reference takes in with one flush


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done."""

    minutes: float
    kills: int
    vertices: int
    arrivals: int  # in a batch
    dim: int
    snapshot_every: int | None
    seed: int
    part: int  # how many there have been before

    @property
    def seconds(self) -> float:
        """Of the part that is judged."""
        return 60 * self.minutes

    @property
    def measuring(self) -> float:
        """Seconds at full speed."""
        return min(60.0, max(3.0, self.seconds / 10))

    @property
    def warming(self) -> float:
        """Seconds at the beginning that are not judged: the journal is not full before there are a few snapshots."""
        return self.seconds / 6

    @property
    def every(self) -> float:
        """Seconds between two samples."""
        return max(0.5, self.seconds / 360)

    def moments(self) -> list[float]:
        """When to kill, in seconds: at random, but each in its own part of the time."""
        share, chooser = self.seconds / max(self.kills, 1), random.Random(self.seed + self.part)
        return [share * (number + chooser.uniform(0.1, 0.7)) for number in range(self.kills)]


class Soak:
    """One run: the service, those who send and read, whoever kills, whoever looks on."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.state, self.reference = plan, folder / "state", folder / "reference"
        self.continued = self.state.exists()
        self.options = ["--dim", str(plan.dim), "--seed", str(plan.seed)]
        if plan.snapshot_every is not None:
            self.options += ["--set", f"snapshot_every={plan.snapshot_every}"]
        self.service = Served(self.state, *self.options)
        self.faults: list[str] = []
        self.kills: list[Kill] = []
        self.samples: list[Sample] = []
        self.snapshots: set[str] = set()
        self.behind = 0.0
        self.url = f"http://127.0.0.1:{self.service.port}"
        self.before = self.service.get("/v1/stats")[1]["sequence"]
        self.stream = Stream(self.url, self.faults, self.before)
        self.batches = sliding(plan.vertices, plan.arrivals, plan.seed, self.before)
        self._over = threading.Event()

    def known(self) -> range:
        """Vertices that are acknowledged, and will be there for a while."""
        newest = self.stream.sent * self.plan.arrivals
        return range(newest - self.plan.vertices // 2, newest)

    def run(self) -> dict[str, Any]:
        """All of it; the record."""
        plan = self.plan
        load = os.getloadavg()[0]
        for batch in islice(self.batches, max(0, plan.vertices // plan.arrivals - self.before)):
            self.stream.send(batch)
        readers = Readers(self.url, self.known, self.faults)
        most = self.greatest_rate()
        said(f"greatest rate: {most:,.0f} arrivals/s; half of it for {plan.minutes:g} minutes")
        self.began, first = time.monotonic(), self.stream.sent
        killing, *_ = beside = [
            threading.Thread(target=self.noting, args=(work,)) for work in (self.kill, self.look_on)
        ]
        for thread in beside:
            thread.start()
        try:
            report = play(self.beats(most / 2), self.stream.send, self.told)
            killing.join()  # done by now, unless the stream was so slow that it came to an end before its time
        finally:
            self._over.set()
            for thread in beside:
                thread.join()
            readers.stop()
        stats = self.service.get("/v1/stats?digest=true")[1]
        self.service.stop()
        readers.join()
        self.compare(stats)
        logs = {"write": self.stream.log, "read": readers.reads, "nearest": readers.searches}
        since = {name: [(at - self.began, took) for at, took in log] for name, log in logs.items()}
        course = Course(self.samples, since, plan.warming)
        loads = {"load_average": [round(each, 1) for each in (load, os.getloadavg()[0])]}
        return self.record(most, report, first, stats, readers, course) | loads | {"course": course}

    def greatest_rate(self) -> float:
        """Arrivals per second, one request after the other, anchors and reads included; of three tries the best."""
        return max(self.rate_for(self.plan.measuring / 3) for _ in range(3))

    def rate_for(self, seconds: float) -> float:
        """Arrivals per second for a while."""
        began, first = time.monotonic(), self.stream.sent
        while time.monotonic() - began < seconds:
            self.stream.send(next(self.batches))
        return (self.stream.sent - first) * self.plan.arrivals / (time.monotonic() - began)

    def beats(self, rate: float) -> Iterator[ScheduledBatch]:
        """The batches of the part that is judged, and when each is due."""
        step = self.plan.arrivals / rate
        for number in range(int(self.plan.seconds / step)):
            yield ScheduledBatch(number * step, next(self.batches))

    def told(self, report: Report) -> None:
        """Keep how late the stream is."""
        self.behind = report.behind_now

    def noting(self, work: Callable[[], None]) -> None:
        """Do work beside the stream; that it could not be done is a fault, too."""
        try:
            work()
        except Exception as error:
            self.faults.append(f"{work.__name__}: {error!r}")
            raise

    def kill(self) -> None:
        """Kill the service when it is time, and start it again."""
        for moment in self.plan.moments():
            if self._over.wait(max(0.0, self.began + moment - time.monotonic())):
                return
            at = time.monotonic()
            self.service.kill()
            try:
                self.service = Served(self.state, *self.options, port=self.service.port)
            except SystemExit as error:  # the stream gives up after a while, and this says why
                self.faults.append(f"not started again: {error}")
                said(self.faults[-1])
                return
            away, ready = time.monotonic() - at, self.service.ready_event()
            self.kills.append(Kill(at - self.began, away, ready["seconds"], ready["replayed"]))
            said(f"{at - self.began:7.1f} s: killed, back after {away:.1f} s")

    def look_on(self) -> None:
        """Take samples."""
        while not self._over.wait(self.plan.every):
            now = time.monotonic()
            calm = now - self.began > self.plan.warming and self.behind < ON_TIME
            self.snapshots |= {path.name for path in self.state.glob("snapshots/[0-9]*")}
            taken = sample(self.service, self.state, now - self.began, self.stream.sent, calm)
            if taken is not None:
                self.samples.append(taken)

    def compare(self, stats: dict[str, Any]) -> None:
        """The state has to be that of a model that took in the same batches and was left alone."""
        plan, sent = self.plan, self.stream.sent
        said(f"{sent - self.before:,} batches over HTTP; the same once more, without any of it")
        alone = in_peace(plan, self.reference, sent)
        for name, expected in {"sequence": sent, "vertices": plan.vertices, "digest": alone}.items():
            if stats[name] != expected:
                self.faults.append(f"{name}: expected {expected}, got {stats[name]}")

    def record(
        self, most: float, report: Report, first: int, stats: dict[str, Any], readers: Readers, course: Course
    ) -> dict[str, Any]:
        """Everything that is written down."""
        sent, arrivals = self.stream.sent, self.plan.arrivals
        rows = thinned(course.rows())
        return {
            **asdict(self.plan),
            "continued": self.continued,
            "batches_before": self.before,
            "faults": self.faults,
            "greatest_arrivals_per_second": round(most, 1),
            "arrivals_per_second": round((sent - first) * arrivals / report.seconds, 1),
            "batches": sent - self.before,
            "edges": stats["edges"],
            "anchors": self.stream.anchors,
            "snapshots": len(self.snapshots),
            "reads": len(readers.reads),
            "searches": len(readers.searches),
            "looks_at_changes": len(readers.followed),
            "killed": len(self.kills),
            "sent_again": self.stream.retried,
            "sent_again_and_there_already": self.stream.repeated,
            "away_seconds_median": round(median([kill.away for kill in self.kills] or [0.0]), 2),
            "away_seconds_longest": round(max([kill.away for kill in self.kills], default=0.0), 2),
            "recovery_seconds_median": round(median([kill.recovery for kill in self.kills] or [0.0]), 2),
            "recovery_seconds_longest": round(max([kill.recovery for kill in self.kills], default=0.0), 2),
            "latest_seconds": round(report.behind, 2),
            "settled": round(float(course.settled.mean()), 3),
            "flatness": course.flatness(),
            "memory_mb_per_hour": slope([{"minutes": self.plan.minutes, "samples": rows}]),
            "after_kills": course.after_kills(),
            "kills_at": [asdict(kill) for kill in self.kills],
            "latency_bins": {name: bins(np.concatenate(parts)) for name, parts in course.latencies.items()},
            "samples": rows,
        }


def in_peace(plan: Plan, directory: Path, batches: int) -> str:
    """The digest of a session that has taken in so many batches and was never killed; it goes on with every part."""
    with Session(directory, dim=plan.dim, seed=plan.seed) as session:
        stream = sliding(plan.vertices, plan.arrivals, plan.seed, session.model.sequence)
        while left := min(GROUP, batches - session.model.sequence):
            session.apply_many(islice(stream, left))
        return session.model.digest()


def said(line: str) -> None:
    """Tell how it goes."""
    print(line, flush=True)


def main() -> None:
    """Run it, print the figures, write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--vertices", type=int, default=20_000)
    parser.add_argument("--arrivals", type=int, default=50, help="in a batch")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--snapshot-every", type=int, help="events; the default of the service, if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="of all parts; one for this part alone, if left out")
    parser.add_argument("--json", type=Path, help="the record, to which this part is added")
    parser.add_argument("--picture", type=Path, help="of this part")
    given = vars(parser.parse_args())
    state, record, picture = given.pop("state"), given.pop("json"), given.pop("picture")
    parts = Parts(record, given)
    plan = Plan(**given, part=len(parts.found["parts"]))
    with tempfile.TemporaryDirectory(dir=os.environ.get("RIPPLEVEC_BENCH_DIR")) as folder:
        soak = Soak(plan, made(state or Path(folder)))
        try:
            found = soak.run()
        finally:
            soak.service.kill()
    course: Course = found.pop("course")
    parts.add(found)
    hidden = ("samples", "latency_bins", "kills_at")
    print(json.dumps({name: value for name, value in found.items() if name not in hidden}, indent=1))
    said(f"{parts.found['hours']:.2f} hours in {len(parts.found['parts'])} parts")
    print(json.dumps(parts.found["overall"], indent=1))
    if picture:
        draw(course, soak.kills, picture)
    if found["faults"] and state:
        said(f"state kept: directory={state}")
    raise SystemExit(1 if found["faults"] else 0)


def made(folder: Path) -> Path:
    """A folder that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    main()
