"""Power-cut test: simulate power cuts at file operations; every acknowledged batch must survive exactly once.

    python benchmarks/power_cuts.py [--points 300] [--batches 90] [--seed 0] [--json FILE]

A preloaded library logs the file operations of a session, including those of SQLite. For points in that log, the disk
is reconstructed as a power cut may leave it, under several policies about unflushed data. The session is opened there:
no acknowledged batch may be missing, no batch may count twice, the digest must equal that of a run without files up to
the same sequence number, and the session must continue from there to the same digests.
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
from _io_shim import Operation, Shim, log_note, read_operations
from _report import write_record

from ripplevec import Embedder, RipplevecError
from ripplevec.durability.session import Session


@dataclass
class Findings:
    """Results of all power cuts."""

    points: Counter[str] = field(default_factory=Counter)
    snapshots: int = 0  # recoveries that started from a snapshot
    notes: int = 0
    faults: list[str] = field(default_factory=list)


def trace_session(directory: Path, batches: int) -> list[Operation]:
    """Return the file operations of an undisturbed session, with its acknowledgments in between."""
    log_path = directory / "log"
    log = os.open(log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    shim, root = Shim(), directory / "traced"
    root.mkdir()
    shim.watch(root, log)
    workload.run(root, batches, lambda kind, number: log_note(log, kind, str(number)))
    shim.stop()
    os.close(log)
    shutil.rmtree(root)
    return list(read_operations(log_path, root))


def check_recovery(
    image: Path, acknowledgments: dict[str, int], digests: list[str], additional: int
) -> tuple[list[str], Session | None]:
    """Open a session on a disk image, apply some more batches, and return all faults and the session."""
    faults = []
    acknowledged, saved = acknowledgments["acknowledged"], acknowledgments["saved"]
    try:
        session = Session(image / "deep" / "state", snapshot_every=workload.SNAPSHOT_EVERY, **workload.PARAMETERS)
    except BaseException as error:
        return [f"cannot be opened: {error!r}"], None
    with session:
        sequence = session.model.sequence
        if sequence < acknowledged:
            faults.append(f"batches: expected at least {acknowledged} acknowledged, got {sequence}")
        if session.model.digest() != digests[sequence]:
            faults.append(f"digest differs from that after batch {sequence}")
        faults += check_keys_and_position(session, sequence)
        for number in range(max(sequence - 2, 1), min(sequence + additional, len(digests) - 1) + 1):
            entry = workload.make_entry(number)
            if number > sequence or entry.key is not None:
                session.apply_many([entry])
        if session.model.digest() != digests[session.model.sequence]:
            faults.append(f"continued to another digest after batch {session.model.sequence}")
    if saved:
        try:
            size = len(Embedder.load(image / "saved"))
            if size < saved + 1:
                faults.append(f"saved model: expected at least {saved + 1} vertices, got {size}")
        except RipplevecError as error:
            faults.append(f"the saved model cannot be loaded: {error}")
    return faults, session


def check_keys_and_position(session: Session, sequence: int) -> list[str]:
    """Check that the keys and the source position match the batches; return all faults."""
    faults = []
    for number in range(1, sequence + 3):
        key = workload.make_entry(number).key
        expected = number if number <= sequence else None
        if key is not None and session.find_key(key) != expected:
            faults.append(f"{key}: expected {expected}, got {session.find_key(key)}")
    from_source = [number for number in range(1, sequence + 1) if workload.make_entry(number).source]
    expected_position = {"offset": from_source[-1]} if from_source else None
    if session.position(workload.SOURCE) != expected_position:
        faults.append(f"source position: expected {expected_position}, got {session.position(workload.SOURCE)}")
    return faults


def simulate_power_cuts(
    operations: list[Operation], points: int, digests: list[str], directory: Path, seed: int
) -> Findings:
    """Simulate power cuts at randomly chosen operations and policies, and recover from each."""
    findings, chooser = Findings(), random.Random(seed)
    moments = [
        at for at, operation in enumerate(operations) if operation.kind not in ("acknowledged", "saved", "not saved")
    ]
    pairs = [(at, policy) for at in moments for policy in POLICIES]
    chooser.shuffle(pairs)
    plan: dict[int, list[str]] = {}
    for at, policy in islice(cycle(pairs), points):  # pairs may repeat: random policies differ every time
        plan.setdefault(at, []).append(policy)
    disk, acknowledgments = Disk(), {"acknowledged": 0, "saved": 0}
    for at, operation in enumerate(operations):
        for policy in plan.get(at, ()):
            image = directory / "image"
            image.mkdir()
            POLICIES[policy](disk, operation, image, chooser)
            faults, session = check_recovery(image, acknowledgments, digests, additional=6)
            findings.points[policy] += 1
            if session is not None:
                findings.snapshots += session.recovery.snapshot > 0
                findings.notes += bool(session.recovery.notes)
            where = f"operation {at} ({operation.kind} {operation.path}), {policy}"
            findings.faults += [f"{where}: {fault}" for fault in faults]
            shutil.rmtree(image)
        if operation.kind in acknowledgments:
            acknowledgments[operation.kind] = int(operation.path)
        else:
            disk.apply(operation)
    return findings


def main() -> None:
    """Run the power-cut test from the command line and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--batches", type=int, default=90)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        directory = Path(folder)
        operations = trace_session(directory, options.batches)
        digests = workload.reference_digests(options.batches)
        findings = simulate_power_cuts(operations, options.points, digests, directory, options.seed)
    kinds = Counter(operation.kind for operation in operations)
    record: dict[str, Any] = {
        "points": sum(findings.points.values()),
        "by_policy": dict(findings.points),
        "batches": options.batches,
        "seed": options.seed,
        "operations": dict(kinds),
        "recovered_from_a_snapshot": findings.snapshots,
        "with_a_note": findings.notes,
        "faults": findings.faults,
        "seconds": round(time.monotonic() - started, 1),
    }
    if options.json is not None:
        write_record(options.json, record)
    print(json.dumps({**record, "faults": len(findings.faults)}))
    for fault in findings.faults[:30]:
        print(fault)
    if findings.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
