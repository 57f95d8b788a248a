"""I/O-error test: let one file operation of a session fail; every acknowledged batch must survive exactly once.

    python benchmarks/io_errors.py [--calls 300] [--batches 40] [--seed 0] [--json FILE]

A preloaded library lets the k-th call in the session's directory fail with EIO or ENOSPC, or write only half of the
data; once, or from that call on. The session must continue, or end with an error of this package. When opened again
without failures, it must contain everything acknowledged, with the digest of a run without files, and continue.
"""

from __future__ import annotations

import _io_shim

if __name__ == "__main__":
    _io_shim.preload()

import argparse
import errno
import json
import logging
import os
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import _durable_workload as workload
from _io_shim import Shim
from _report import write_record
from power_cuts import check_recovery

from ripplevec.errors import RipplevecError

KINDS: dict[str, dict[str, Any]] = {
    "EIO once": {"error": errno.EIO},
    "ENOSPC once": {"error": errno.ENOSPC},
    "half a write": {"short": True},
    "EIO from then on": {"error": errno.EIO, "sticky": True},
    "ENOSPC from then on": {"error": errno.ENOSPC, "sticky": True},
}


class Acknowledgments:
    """Last batch and last saved model that a workload acknowledged."""

    def __init__(self) -> None:
        self.numbers = {"acknowledged": 0, "saved": 0}

    def __call__(self, kind: str, number: int) -> None:
        """Record the last number of a kind."""
        self.numbers[kind] = number


def run_with_failure(shim: Shim, directory: Path, call: int, kind: str, batches: int) -> tuple[Acknowledgments, str]:
    """Run the workload with one failing call; return its acknowledgments and how it ended."""
    acknowledgments = Acknowledgments()
    shim.watch(directory)
    shim.fail(call, **KINDS[kind])
    try:
        workload.run(directory, batches, acknowledgments)
        return acknowledgments, "went on"
    except RipplevecError:
        return acknowledgments, "ended with an error of its own"
    except BaseException as error:
        return acknowledgments, f"raw {error!r}"
    finally:
        shim.stop()


def main() -> None:
    """Run the I/O-error test from the command line and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    started, shim, digests = time.monotonic(), Shim(), workload.reference_digests(options.batches)
    endings: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        directory = Path(folder) / "state"
        directory.mkdir()
        shim.watch(directory)
        workload.run(directory, options.batches, Acknowledgments())
        total = shim.stop()
        pairs = [(call, kind) for call in range(1, total + 1) for kind in KINDS]
        random.Random(options.seed).shuffle(pairs)
        for call, kind in pairs[: options.calls]:
            shutil.rmtree(directory)
            directory.mkdir()
            acknowledgments, ending = run_with_failure(shim, directory, call, kind, options.batches)
            endings[f"{kind}: {ending}"] += 1
            case_faults, _ = check_recovery(directory, acknowledgments.numbers, digests, additional=4)
            if ending.startswith("raw"):
                case_faults.append(ending)
            faults += [f"call {call}, {kind}: {fault}" for fault in case_faults]
    attempts = min(options.calls, len(pairs))
    seconds = round(time.monotonic() - started, 1)
    record = {"calls": attempts, "of": len(pairs), "batches": options.batches, "endings": dict(endings)}
    record |= {"faults": faults, "seconds": seconds}
    if options.json is not None:
        write_record(options.json, record)
    print(json.dumps({**record, "faults": len(faults)}))
    for fault in faults[:30]:
        print(fault)
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
