"""Let one file operation of a session fail, each in its turn; what was acknowledged must be there, once.

    python benchmarks/io_errors.py [--calls 300] [--batches 40] [--seed 0] [--json FILE]

A preloaded library lets the k-th call under the session's directory fail: with EIO, with ENOSPC, or by writing half of
what was asked for; once, or from then on. The session goes on, or ends with an error of its own. Opened again without
failures it holds everything that was acknowledged, in the state of a run without files, and goes on from there.
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
from power_cuts import recovered

from ripplevec.errors import RipplevecError

KINDS: dict[str, dict[str, Any]] = {
    "EIO once": {"error": errno.EIO},
    "ENOSPC once": {"error": errno.ENOSPC},
    "half a write": {"short": True},
    "EIO from then on": {"error": errno.EIO, "sticky": True},
    "ENOSPC from then on": {"error": errno.ENOSPC, "sticky": True},
}


class Told:
    """What a workload has acknowledged."""

    def __init__(self) -> None:
        self.numbers = {"acknowledged": 0, "saved": 0}

    def __call__(self, kind: str, number: int) -> None:
        """Remember the last number of a kind."""
        self.numbers[kind] = number


def attempt(shim: Shim, place: Path, call: int, kind: str, batches: int) -> tuple[Told, str]:
    """Run the workload with one call failing; what it acknowledged, and how it ended."""
    told = Told()
    shim.watch(place)
    shim.fail(call, **KINDS[kind])
    try:
        workload.run(place, batches, told)
        return told, "went on"
    except RipplevecError:
        return told, "ended with an error of its own"
    except BaseException as error:
        return told, f"raw {error!r}"
    finally:
        shim.rest()


def main() -> None:
    """Fail calls one after the other, and write down what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    began, shim, digests = time.monotonic(), Shim(), workload.reference(options.batches)
    endings: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        place = Path(folder) / "place"
        place.mkdir()
        shim.watch(place)
        workload.run(place, options.batches, Told())
        total = shim.rest()
        pairs = [(call, kind) for call in range(1, total + 1) for kind in KINDS]
        random.Random(options.seed).shuffle(pairs)
        for call, kind in pairs[: options.calls]:
            shutil.rmtree(place)
            place.mkdir()
            told, ending = attempt(shim, place, call, kind, options.batches)
            endings[f"{kind}: {ending}"] += 1
            found, _ = recovered(place, told.numbers, digests, go_on=4)
            if ending.startswith("raw"):
                found.append(ending)
            faults += [f"call {call}, {kind}: {fault}" for fault in found]
    tried = min(options.calls, len(pairs))
    seconds = round(time.monotonic() - began, 1)
    record = {"calls": tried, "of": len(pairs), "batches": options.batches, "endings": dict(endings)}
    record |= {"faults": faults, "seconds": seconds}
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({**record, "faults": len(faults)}))
    for fault in faults[:30]:
        print(fault)
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
