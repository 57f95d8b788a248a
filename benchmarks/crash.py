"""Crash test: kill sessions with SIGKILL; every acknowledged batch must survive exactly once, bit for bit.

    python benchmarks/crash.py [--kills 200] [--sources calls,file,folder,redis,kafka] [--batches 200] [--json FILE]

A worker process applies a stream; it is killed and restarted until the stream ends. Each new process reports the
sequence number and the digest of the state that it recovered, which must equal those of a process that is never killed.
Some kills come at a random time (also during recovery), the others at a chosen moment: before or after a commit, or
within a snapshot, a compaction or an anchor. With `--json`, the kills are added to the record in that file, and the
streams continue with the next seed, so that 10,000 kills can be spread over any number of runs.

All processes are forked from this one, which has loaded the kernels and runs no threads. That makes kills cheap.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # processes are forked, so there must be no threads

import argparse
import gc
import json
import random
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _crash_process import (
    MOMENTS,
    Report,
    kill_self_at,
    process_stream,
    silence_warnings,
    slow_down_anchors,
    start_process,
    use_shards,
    warm_up,
)
from _crash_record import Record, StreamResult
from _crash_reference import Reference
from _crash_sources import BATCH_SIZE, KINDS, generate_events, prepare_source, running_brokers

MAX_KILLS_BY_SOURCE = {"redis": 30, "kafka": 10}  # per stream; their clients take longer to start
DEFAULT_MAX_KILLS = 60
MAX_DELAY_SECONDS = 0.04  # until a kill at a random time
FROM_FORK_SHARE = 0.25  # share of random times counted from the fork; many of them fall into recovery


class Worker:
    """One worker process, and what it reported until its end."""

    def __init__(self, work: Callable[[Report], None], prepare: Callable[[], None] | None) -> None:
        self.recovered: tuple[int, str, int] | None = None  # sequence number, digest, snapshot
        self.final: list[Any] | None = None  # sequence number and digest at the end of the stream
        self.acknowledged = 0
        self.faults: list[str] = []
        self._child, self._reading = start_process(work, prepare)

    def wait(self, delay: float | None, delay_from_fork: bool) -> bool:
        """Read the reports until the process ends, kill it after the delay; return whether it was killed."""
        deadline = time.monotonic() + delay if delay is not None and delay_from_fork else None
        for kind, *words in self._read_reports(deadline, delay):
            if kind == "recovered":
                self.recovered = words[0], words[1], words[2]
            elif kind == "acknowledged":
                self.acknowledged = max(self.acknowledged, words[0])
            elif kind == "final":
                self.final = words
            else:
                self.faults += map(str, words)
        os.close(self._reading)
        _, status = os.waitpid(self._child, 0)
        return os.WIFSIGNALED(status)

    def _read_reports(self, deadline: float | None, delay: float | None) -> Iterator[list[Any]]:
        partial = b""
        while True:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._reading], [], [], wait)[0]:
                os.kill(self._child, signal.SIGKILL)
                deadline = delay = None
                continue
            data = os.read(self._reading, 1 << 16)
            if not data:
                return
            *lines, partial = (partial + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message[0] == "recovered" and delay is not None and deadline is None:
                    deadline = time.monotonic() + delay
                yield message


class StreamRunner:
    """Runs streams in workers that are killed, and compares their states with the reference."""

    def __init__(self, reference: Reference, batches: int, brokers: dict[str, str]) -> None:
        self._reference, self._batches, self._brokers = reference, batches, brokers

    def run(self, kind: str, seed: int, kills: int, directory: Path) -> StreamResult:
        """Run one stream with at most `kills` kills; it may end before that."""
        started, chooser, result = time.monotonic(), random.Random(seed), StreamResult(kind, seed)
        rows = generate_events(self._batches * BATCH_SIZE, seed)
        make_source = None if kind == "calls" else prepare_source(kind, rows, directory, self._brokers)
        ended = False
        while not ended and not result.faults:
            moment, prepare_kill, delay = "none", None, None
            if sum(result.kills.values()) < kills:
                moment, prepare_kill, delay = choose_kill(chooser, kind)
            worker = Worker(lambda report: process_stream(directory, make_source, rows, report), prepare_kill)
            if worker.wait(delay, moment == RECOVERY):
                result.kills[moment] += 1
            ended = worker.final is not None
            self._compare(result, worker)
        if kind != "calls" and not result.faults:
            result.faults += find_unpublished(directory / "changes.jsonl", self._batches)
        result.seconds = time.monotonic() - started
        return result

    def _compare(self, result: StreamResult, worker: Worker) -> None:
        """Compare the recovered and the final state of a worker with the reference."""
        result.faults += worker.faults
        if worker.recovered is not None:
            sequence, digest, snapshot = worker.recovered
            result.opened, result.from_snapshot = result.opened + 1, result.from_snapshot + (snapshot > 0)
            if sequence < result.acknowledged:
                result.faults.append(f"batches: expected at least {result.acknowledged} acknowledged, got {sequence}")
            self._compare_digest(result, sequence, digest)
        result.acknowledged = max(result.acknowledged, worker.acknowledged)
        if worker.final is not None:
            result.batches = worker.final[0]
            self._compare_digest(result, *worker.final)
            if result.batches != self._batches:
                result.faults.append(f"batches: expected all {self._batches}, got {result.batches}")

    def _compare_digest(self, result: StreamResult, sequence: int, digest: str) -> None:
        expected = self._reference.digest(result.seed, self._batches, sequence)
        if digest != expected:
            result.faults.append(f"digest after batch {sequence}: expected {expected}, got {digest}")


RECOVERY, RANDOM = "a random time from the fork on", "a random time"


def choose_kill(chooser: random.Random, kind: str) -> tuple[str, Callable[[], None] | None, float | None]:
    """Choose the next kill: a random delay, or a moment, which the stream may not reach before its end."""
    if chooser.random() < 0.5:
        moment = RECOVERY if chooser.random() < FROM_FORK_SHARE else RANDOM
        return moment, None, chooser.random() * MAX_DELAY_SECONDS
    moments = [moment for moment in MOMENTS if kind != "calls" or "passed on" not in moment]
    moment = chooser.choice(moments)
    call = chooser.randint(1, MOMENTS[moment][-1])
    return moment, lambda: kill_self_at(moment, call), None


def find_unpublished(path: Path, batches: int) -> list[str]:
    """Report batches whose changes never reached the sink; a kill may leave a partial last line."""
    seen = set()
    for line in path.read_bytes().splitlines():
        try:
            seen.add(json.loads(line)["sequence"])
        except ValueError:
            continue
    missing = set(range(1, batches + 1)) - seen
    return [f"changes of batches {sorted(missing)} were never published"] if missing else []


def run_streams(record: Record, kinds: tuple[str, ...], kills: int, batches: int) -> None:
    """Run streams over all kinds of sources until the given number of additional kills, or a fault."""
    target = record.totals["kills"] + kills
    with tempfile.TemporaryDirectory() as folder, running_brokers(kinds, Path(folder)) as brokers:
        warm_up(generate_events(40 * BATCH_SIZE, 0), Path(folder) / "warm")
        gc.freeze()  # garbage collection in the forked processes would copy every page
        reference = Reference()
        runner = StreamRunner(reference, batches, brokers)
        while (left := target - record.totals["kills"]) > 0 and not record.totals["faults"]:
            number = record.totals["streams"]
            kind, directory = kinds[number % len(kinds)], Path(folder) / f"{number}"
            directory.mkdir()
            max_kills = min(left, MAX_KILLS_BY_SOURCE.get(kind, DEFAULT_MAX_KILLS), -(-kills // len(kinds)))
            result = runner.run(kind, record.totals["next_seed"], max_kills, directory)
            record.add(result)
            count = sum(result.kills.values())
            print(f"{kind:8} {count:3} kills, {result.seconds:5.1f} s, {len(result.faults)} faults", flush=True)
            if result.faults:
                preserve_state(directory)
            shutil.rmtree(directory)
        reference.close()


def preserve_state(directory: Path) -> None:
    """Copy a state with a fault, so that it can be examined."""
    copy = shutil.copytree(directory, Path(tempfile.mkdtemp(prefix="crash-")) / "kept")
    print(f"state preserved: directory={copy}")


def main() -> None:
    """Run the crash test from the command line and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="kills in this run, added to those of the record")
    parser.add_argument("--sources", default=",".join(KINDS), help="kinds of sources, separated by commas")
    parser.add_argument("--batches", type=int, default=200, help="batches per stream")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first stream in a new record")
    parser.add_argument("--shards", type=int, help="number of shards, in the killed process; without anchors")
    parser.add_argument("--json", type=Path, help="record file; an existing one is continued")
    options = parser.parse_args()
    if options.shards:
        use_shards(options.shards)
    slow_down_anchors()
    silence_warnings()
    record = Record(options.json, options.seed)
    run_streams(record, tuple(options.sources.split(",")), options.kills, options.batches)
    print(json.dumps(record.totals, indent=1))
    raise SystemExit(1 if record.totals["faults"] else 0)


if __name__ == "__main__":
    main()
