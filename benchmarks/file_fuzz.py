"""File fuzzer: damage files of sessions and saved models; opening must restore the state or report the damage.

    python benchmarks/file_fuzz.py [--cases 400] [--seed 0] [--json FILE]

Bits are flipped, bytes zeroed, files truncated, pages exchanged, garbage appended, files emptied or removed: journal,
log, marker, lock, snapshots, labels, saved models. Opening must give the state after one of the batches, with a note if
acknowledged ones are missing, or raise an error of this package. It must never give another state, a wrong key or
position, another error, a crash or a hang. Afterward the session must continue, and no batch may count twice.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _durable_workload as workload
from _report import write_record
from power_cuts import check_keys_and_position

from ripplevec import Embedder
from ripplevec.durability.session import Session
from ripplevec.errors import FormatError, StateError
from ripplevec.service.vertex_labels import VertexLabels

HANG_SECONDS = 60  # after which a case counts as a hang
BATCHES = 60
PAGE = 4096


def flip_bits(data: bytearray, chooser: random.Random) -> None:
    """Flip between one and eight bits."""
    for _ in range(chooser.choice([1, 1, 1, 2, 8])):
        data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)


def zero_bytes(data: bytearray, chooser: random.Random) -> None:
    """Zero a run of bytes, or a sector."""
    at, size = chooser.randrange(len(data)), chooser.choice([1, 16, 512, PAGE])
    at -= at % size if chooser.random() < 0.5 else 0
    size = min(size, len(data) - at)
    data[at : at + size] = bytes(size)


def truncate(data: bytearray, chooser: random.Random) -> None:
    """Truncate the file anywhere, at a page boundary, or at a frame of a write-ahead log."""
    at = chooser.randrange(len(data))
    unit = chooser.choice([1, 512, PAGE, PAGE + 24])
    del data[at - at % unit + (32 if unit == PAGE + 24 else 0) :]


def exchange_pages(data: bytearray, chooser: random.Random) -> None:
    """Exchange two pages, or two pieces of a smaller file."""
    size = PAGE if len(data) >= 2 * PAGE else max(len(data) // 4, 1)
    first, second = (chooser.randrange(max(len(data) // size, 1)) * size for _ in range(2))
    data[first : first + size], data[second : second + size] = data[second : second + size], data[first : first + size]


def append_garbage(data: bytearray, chooser: random.Random) -> None:
    """Append random bytes."""
    data += chooser.randbytes(chooser.choice([1, 24, 512, PAGE, PAGE + 24]))


def overwrite(data: bytearray, chooser: random.Random) -> None:
    """Overwrite some bytes with random ones, including invalid UTF-8."""
    at = chooser.randrange(len(data))
    piece = chooser.choice([b"\xff\xfe\xfd", b"\x80", chooser.randbytes(40)])
    data[at : at + len(piece)] = piece[: len(data) - at]


def empty(data: bytearray, _: random.Random) -> None:
    """Empty the file."""
    del data[:]


DAMAGE: list[Callable[[bytearray, random.Random], None]] = [
    *[flip_bits] * 5,
    *[zero_bytes, truncate, exchange_pages, overwrite] * 2,
    append_garbage,
    empty,
]


def prepare(directory: Path) -> dict[str, int]:
    """Create a closed session with labels and saved models, and a killed one; return the batches of each."""
    workload.run(directory / "closed", BATCHES, lambda kind, number: None)
    state = directory / "closed" / "deep" / "state"
    with Session(state, snapshot_every=10**9, **workload.PARAMETERS) as session:
        for number in range(BATCHES + 1, BATCHES + 16):
            session.apply_many([workload.make_entry(number)])
        shutil.copytree(state, directory / "killed" / "deep" / "state")
        shutil.rmtree(state)
    shutil.copytree(directory / "killed" / "deep" / "state", state)
    with Session(state, **workload.PARAMETERS):
        pass
    labels = VertexLabels(state / "labels.sqlite")
    labels.put([(number, f"é{number}") for number in range(50)])
    labels.close()
    return {"closed": BATCHES + 15, "killed": BATCHES + 15}


def open_damaged(state: Path, expected: int, digests: list[str]) -> tuple[str, list[str]]:
    """Open a damaged session; return how that ended, and all faults."""
    try:
        session = Session(state, **workload.PARAMETERS)
    except (FormatError, StateError) as error:
        return "refused", [] if str(error).strip() else ["an error without a message"]
    faults = []
    with session:
        sequence, notes = session.model.sequence, session.recovery.notes
        if sequence < expected and not notes:
            faults.append(f"batches: expected {expected} or a note, got {sequence} without one")
        if session.model.digest() != digests[sequence]:
            faults.append(f"digest differs from that after batch {sequence}")
        faults += check_keys_and_position(session, sequence)
        for number in range(max(sequence - 3, 1), min(sequence + 4, len(digests) - 1) + 1):
            entry = workload.make_entry(number)
            if number > sequence or entry.key is not None:
                session.apply_many([entry])
        if session.model.digest() != digests[session.model.sequence]:
            faults.append(f"continued to another digest after batch {session.model.sequence}")
    return "a part with a note" if sequence < expected else "all of it", faults


def run_case(
    directory: Path, expected: dict[str, int], digests: list[str], chooser: random.Random
) -> tuple[str, str, list[str]]:
    """Damage one file and open the session, labels or model that it belongs to."""
    kind = chooser.choice(sorted(expected))
    image = directory / "case"
    shutil.copytree(directory / kind, image)
    files: dict[str, list[Path]] = {}
    for path in sorted(path for path in image.rglob("*") if path.is_file()):
        files.setdefault("an array" if path.suffix == ".npy" else path.name, []).append(path)
    target = chooser.choice(files[chooser.choice([*files, "journal.sqlite", "journal.sqlite"])])
    where = str(target.relative_to(image))
    if chooser.random() < 0.03:
        target.unlink()
        description = f"{kind}, {where}: removed"
    else:
        damage, data = chooser.choice(DAMAGE), bytearray(target.read_bytes())
        if data:
            damage(data, chooser)
        target.write_bytes(data)
        description = f"{kind}, {where}: {damage.__name__}"
    faults: list[str] = []
    if "saved" in where.split("/"):
        try:
            Embedder.load(image / "saved").check()
            ending = "all of it"
        except FormatError:
            ending = "refused"
    elif target.name.startswith("labels"):
        labels = VertexLabels(image / "deep" / "state" / "labels.sqlite")
        labels.put([("a", "b")])
        labels.close()
        ending = "labels opened"
    else:
        ending, faults = open_damaged(image / "deep" / "state", expected[kind], digests)
    return description, ending, faults


def run(cases: int, seed: int, directory: Path) -> dict[str, Any]:
    """Run a number of cases and return the record."""
    expected, endings, faults = prepare(directory), Counter[str](), []
    digests = workload.reference_digests(BATCHES + 20)
    for case in range(cases):
        chooser = random.Random(seed * 1_000_003 + case)
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        try:
            description, ending, case_faults = run_case(directory, expected, digests, chooser)
            endings[ending] += 1
            faults += [f"case {case}, {description}: {fault}" for fault in case_faults]
        except Exception as error:
            faults.append(f"case {case}: {error!r}")
        finally:
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(directory / "case", ignore_errors=True)
    return {"cases": cases, "seed": seed, "endings": dict(endings), "faults": faults}


def main() -> None:
    """Run the fuzzer from the command line and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.disable()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        record = run(options.cases, options.seed, Path(folder))
    record["seconds"] = round(time.monotonic() - started, 1)
    if options.json is not None:
        write_record(options.json, record)
    print(json.dumps({**record, "faults": len(record["faults"])}))
    for fault in record["faults"][:40]:
        print(fault[:600])
    if record["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
