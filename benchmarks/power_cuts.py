"""Cut the power at every file operation of a session, on paper; whatever was acknowledged must be there, once.

    python benchmarks/power_cuts.py [--points 300] [--batches 90] [--seed 0] [--json FILE]

A session's file operations, those of SQLite included, are logged by a preloaded library. For points in that log the
disk is put together as a power cut may leave it, under several policies about what was not flushed. There the session
is opened: no acknowledged batch is missing, no batch counts twice, the state has the digest of a run without files up
to its sequence number, and it goes on from there to the same digest as if nothing had happened.
"""

from __future__ import annotations

import _io_shim

if __name__ == "__main__":
    _io_shim.preload()

import argparse
import json
import logging
import os
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import _durable_workload as workload
from _crash_images import POLICIES, Disk
from _io_shim import Operation, Shim, note, operations

from ripplevec import Embedder, RipplevecError
from ripplevec.durability.session import Session


@dataclass
class Findings:
    """What came of all power cuts."""

    points: Counter[str] = field(default_factory=Counter)
    snapshots: int = 0  # recoveries from one
    notes: int = 0
    faults: list[str] = field(default_factory=list)


def traced(place: Path, batches: int) -> list[Operation]:
    """The file operations of a session that is left alone, with what it acknowledged in between."""
    log_path = place / "log"
    log = os.open(log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    shim, root = Shim(), place / "traced"
    root.mkdir()
    shim.watch(root, log)
    workload.run(root, batches, lambda kind, number: note(log, kind, str(number)))
    shim.rest()
    os.close(log)
    shutil.rmtree(root)
    return list(operations(log_path, root))


def recovered(image: Path, told: dict[str, int], digests: list[str], go_on: int) -> tuple[list[str], Session | None]:
    """What is wrong with a disk after a power cut, given what had been acknowledged."""
    faults = []
    acknowledged, saved = told["acknowledged"], told["saved"]
    try:
        session = Session(image / "deep" / "state", snapshot_every=workload.SNAPSHOT_EVERY, **workload.PARAMETERS)
    except BaseException as error:
        return [f"cannot be opened: {error!r}"], None
    with session:
        sequence = session.model.sequence
        if sequence < acknowledged:
            faults.append(f"batch {acknowledged} was acknowledged, and only {sequence} are there")
        if session.model.digest() != digests[sequence]:
            faults.append(f"another state than after batch {sequence}")
        faults += beside(session, sequence)
        for number in range(max(sequence - 2, 1), min(sequence + go_on, len(digests) - 1) + 1):
            again = workload.entry(number)
            if number > sequence or again.key is not None:
                session.apply_many([again])
        if session.model.digest() != digests[session.model.sequence]:
            faults.append(f"goes on to another state after batch {session.model.sequence}")
    if saved:
        try:
            size = len(Embedder.load(image / "saved"))
            if size < saved + 1:
                faults.append(f"a model of {saved + 1} vertices was saved, and one of {size} is there")
        except RipplevecError as error:
            faults.append(f"the saved model is not there: {error}")
    return faults, session


def beside(session: Session, sequence: int) -> list[str]:
    """Whether keys and the position of the source are those of the batches that are there."""
    faults = []
    for number in range(1, sequence + 3):
        key = workload.entry(number).key
        expected = number if number <= sequence else None
        if key is not None and session.find_key(key) != expected:
            faults.append(f"{key}: expected {expected}, got {session.find_key(key)}")
    from_source = [number for number in range(1, sequence + 1) if workload.entry(number).source]
    expected_position = {"offset": from_source[-1]} if from_source else None
    if session.position(workload.SOURCE) != expected_position:
        faults.append(f"source at {session.position(workload.SOURCE)}, expected {expected_position}")
    return faults


def cut(done: list[Operation], points: int, digests: list[str], place: Path, seed: int) -> Findings:
    """Cut the power at so many points, under one policy after the other, and recover."""
    findings, chooser = Findings(), random.Random(seed)
    moments = [at for at, operation in enumerate(done) if operation.kind not in ("acknowledged", "saved", "not saved")]
    pairs = [(at, policy) for at in moments for policy in POLICIES]
    chooser.shuffle(pairs)
    plan: dict[int, list[str]] = {}
    for at, policy in islice(cycle(pairs), points):  # more than there are: the random ones differ every time
        plan.setdefault(at, []).append(policy)
    disk, told = Disk(), {"acknowledged": 0, "saved": 0}
    for at, operation in enumerate(done):
        for policy in plan.get(at, ()):
            image = place / "image"
            image.mkdir()
            POLICIES[policy](disk, operation, image, chooser)
            faults, session = recovered(image, told, digests, go_on=6)
            findings.points[policy] += 1
            if session is not None:
                findings.snapshots += session.recovery.snapshot > 0
                findings.notes += bool(session.recovery.notes)
            where = f"operation {at} ({operation.kind} {operation.path}), {policy}"
            findings.faults += [f"{where}: {fault}" for fault in faults]
            shutil.rmtree(image)
        if operation.kind in told:
            told[operation.kind] = int(operation.path)
        else:
            disk.apply(operation)
    return findings


def main() -> None:
    """Trace, cut, recover, and write down what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--batches", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        place = Path(folder)
        done = traced(place, options.batches)
        findings = cut(done, options.points, workload.reference(options.batches), place, options.seed)
    kinds = Counter(operation.kind for operation in done)
    record: dict[str, Any] = {
        "points": sum(findings.points.values()),
        "by_policy": dict(findings.points),
        "batches": options.batches,
        "seed": options.seed,
        "operations": dict(kinds),
        "recovered_from_a_snapshot": findings.snapshots,
        "with_a_note": findings.notes,
        "faults": findings.faults,
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({**record, "faults": len(findings.faults)}))
    for fault in findings.faults[:30]:
        print(fault)
    if findings.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
