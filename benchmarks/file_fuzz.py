"""Damage whole files of sessions and saved models, and open them: all that was there, a part with a note, or a refusal.

    python benchmarks/file_fuzz.py [--cases 400] [--seed 0] [--json FILE]

Bits are flipped, bytes zeroed, files cut, pages exchanged, garbage appended, files emptied or removed: journal, log,
marker, lock, snapshots, labels, saved models. Opening must give the state after one of the batches, with a note where
acknowledged ones are missing; or an error of this package. Never another state, a key or a position that does not fit,
a raw error, a crash or a hang. Afterwards the session goes on, and no batch counts twice.
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
from power_cuts import beside

from ripplevec import Embedder
from ripplevec.durability.session import Session
from ripplevec.errors import FormatError, StateError
from ripplevec.service.vertex_labels import VertexLabels

LONGEST = 60  # seconds until a case counts as a hang
BATCHES = 60
PAGE = 4096


def flip_bits(data: bytearray, chooser: random.Random) -> None:
    """Flip one bit, or a few."""
    for _ in range(chooser.choice([1, 1, 1, 2, 8])):
        data[chooser.randrange(len(data))] ^= 1 << chooser.randrange(8)


def zero_bytes(data: bytearray, chooser: random.Random) -> None:
    """Zero a run of bytes, or a sector."""
    at, size = chooser.randrange(len(data)), chooser.choice([1, 16, 512, PAGE])
    at -= at % size if chooser.random() < 0.5 else 0
    size = min(size, len(data) - at)
    data[at : at + size] = bytes(size)


def cut_off(data: bytearray, chooser: random.Random) -> None:
    """Cut the end off: anywhere, at a page, or at a frame of a log."""
    at = chooser.randrange(len(data))
    unit = chooser.choice([1, 512, PAGE, PAGE + 24])
    del data[at - at % unit + (32 if unit == PAGE + 24 else 0) :]


def exchange_pages(data: bytearray, chooser: random.Random) -> None:
    """Exchange two pages, or two pieces of a smaller file."""
    size = PAGE if len(data) >= 2 * PAGE else max(len(data) // 4, 1)
    first, second = (chooser.randrange(max(len(data) // size, 1)) * size for _ in range(2))
    data[first : first + size], data[second : second + size] = data[second : second + size], data[first : first + size]


def append_garbage(data: bytearray, chooser: random.Random) -> None:
    """Have bytes behind the end."""
    data += chooser.randbytes(chooser.choice([1, 24, 512, PAGE, PAGE + 24]))


def overwrite(data: bytearray, chooser: random.Random) -> None:
    """Have random bytes somewhere, also ones that are not UTF-8."""
    at = chooser.randrange(len(data))
    piece = chooser.choice([b"\xff\xfe\xfd", b"\x80", chooser.randbytes(40)])
    data[at : at + len(piece)] = piece[: len(data) - at]


def empty(data: bytearray, _: random.Random) -> None:
    """Leave nothing of it."""
    del data[:]


DAMAGE: list[Callable[[bytearray, random.Random], None]] = [
    *[flip_bits] * 5,
    *[zero_bytes, cut_off, exchange_pages, overwrite] * 2,
    append_garbage,
    empty,
]


def prepare(place: Path) -> dict[str, int]:
    """A session that was closed, one that was killed with its log full, labels and saved models; what each holds."""
    told = {"acknowledged": 0}
    workload.run(place / "closed", BATCHES, lambda kind, number: told.update({kind: number}))
    killed = place / "closed" / "deep" / "state"
    with Session(killed, snapshot_every=10**9, **workload.PARAMETERS) as session:
        for number in range(BATCHES + 1, BATCHES + 16):
            session.apply_many([workload.entry(number)])
        shutil.copytree(killed, place / "killed" / "deep" / "state")
        shutil.rmtree(killed)
    shutil.copytree(place / "killed" / "deep" / "state", killed)
    with Session(killed, **workload.PARAMETERS):
        pass
    labels = VertexLabels(killed / "labels.sqlite")
    labels.put([(number, f"é{number}") for number in range(50)])
    labels.close()
    return {"closed": BATCHES + 15, "killed": BATCHES + 15}


def opened(state: Path, expected: int, digests: list[str]) -> tuple[str, list[str]]:
    """What opening a damaged session gives, and what is wrong with it."""
    try:
        session = Session(state, **workload.PARAMETERS)
    except (FormatError, StateError) as error:
        return "refused", [] if str(error).strip() else ["a refusal without words"]
    faults = []
    with session:
        sequence, notes = session.model.sequence, session.recovery.notes
        if sequence < expected and not notes:
            faults.append(f"only {sequence} of {expected} batches, without a note")
        if session.model.digest() != digests[sequence]:
            faults.append(f"another state than after batch {sequence}")
        faults += beside(session, sequence)
        for number in range(max(sequence - 3, 1), min(sequence + 4, len(digests) - 1) + 1):
            again = workload.entry(number)
            if number > sequence or again.key is not None:
                session.apply_many([again])
        if session.model.digest() != digests[session.model.sequence]:
            faults.append(f"goes on to another state after batch {session.model.sequence}")
    return "a part with a note" if sequence < expected else "all of it", faults


def one_case(
    place: Path, expected: dict[str, int], digests: list[str], chooser: random.Random
) -> tuple[str, str, list[str]]:
    """Damage one file, and open what it belongs to."""
    kind = chooser.choice(sorted(expected))
    image = place / "case"
    shutil.copytree(place / kind, image)
    files: dict[str, list[Path]] = {}
    for path in sorted(path for path in image.rglob("*") if path.is_file()):
        files.setdefault("an array" if path.suffix == ".npy" else path.name, []).append(path)
    target = chooser.choice(files[chooser.choice([*files, "journal.sqlite", "journal.sqlite"])])
    where = str(target.relative_to(image))
    if chooser.random() < 0.03:
        target.unlink()
        what = f"{kind}, {where}: removed"
    else:
        damage, data = chooser.choice(DAMAGE), bytearray(target.read_bytes())
        if data:
            damage(data, chooser)
        target.write_bytes(data)
        what = f"{kind}, {where}: {damage.__name__}"
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
        ending, faults = opened(image / "deep" / "state", expected[kind], digests)
    return what, ending, faults


def run(cases: int, seed: int, place: Path) -> dict[str, Any]:
    """Try so many cases; what came of them."""
    expected, endings, faults = prepare(place), Counter[str](), []
    digests = workload.reference(BATCHES + 20)
    for case in range(cases):
        chooser = random.Random(seed * 1_000_003 + case)
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        try:
            what, ending, found = one_case(place, expected, digests, chooser)
            endings[ending] += 1
            faults += [f"case {case}, {what}: {fault}" for fault in found]
        except Exception as error:
            faults.append(f"case {case}: {error!r}")
        finally:
            faulthandler.cancel_dump_traceback_later()
            shutil.rmtree(place / "case", ignore_errors=True)
    return {"cases": cases, "seed": seed, "endings": dict(endings), "faults": faults}


def main() -> None:
    """Run the cases that are asked for, and write down what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    logging.disable()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        record = run(options.cases, options.seed, Path(folder))
    record["seconds"] = round(time.monotonic() - began, 1)
    if options.json is not None:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({**record, "faults": len(record["faults"])}))
    for fault in record["faults"][:40]:
        print(fault[:600])
    if record["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
