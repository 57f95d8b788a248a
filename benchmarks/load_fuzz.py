"""Load fuzzer: change saved models and snapshots with valid checksums; loading must raise or give a working model.

    python benchmarks/load_fuzz.py [--cases 500] [--seed 0] [--json FILE]

A directory from an untrusted source may contain anything, with matching checksums. Each case changes values, shapes,
types or manifest entries of a small saved model. Loading must raise `FormatError`, or give a model that passes its own
check and handles arrivals, removals, anchors and queries. A crash ends the process; the last case is printed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _fuzz_models import SESSION, save_all
from _report import write_record
from numpy.typing import NDArray

from ripplevec import Embedder, LinkScorer
from ripplevec.durability.recovery import load_snapshot
from ripplevec.durability.session_model import build_metadata, create_model
from ripplevec.durability.snapshot import SnapshotStore
from ripplevec.errors import FormatError
from ripplevec.util.checked_directory import MANIFEST, _checksum, _manifest_bytes

INTEGERS = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 7, 255, 2**15, 2**31 - 1, 2**31, 2**53, 2**62, 2**63 - 1]
REALS = [np.nan, np.inf, -np.inf, -1.0, -0.0, 0.0, 1e-45, 1e-30, 0.5, 1.0, 1e30, 3e38, 1e300]
JSON_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**70,
    1e308,
    -0.5,
    "",
    "x",
    "auto",
    "paper",
    "ripple",
    [],
    {},
    [1],
]
DTYPES = ["<i4", "<i8", "<u8", "<f4", "<f8", "<f2", "|b1", "|u1", "<U3", ">i4", "<c16", "|O", "|V5", "<M8[s]"]
Arrays = dict[str, NDArray[Any]]


def replace_values(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Replace some entries by values that no valid state contains, or that belong elsewhere."""
    changed = array.copy()
    flat = changed.reshape(-1)
    for index in random.integers(0, flat.size, int(random.choice([1, 1, 1, 2, 5]))) if flat.size else ():
        if flat.dtype.kind == "f":
            value = random.choice([*REALS, float(random.choice(flat))])
        elif flat.dtype.kind == "b":
            value = not flat[index]
        else:
            near = [flat.size, flat.size - 1, int(random.choice(flat)), int(flat[index]) + 1, int(flat[index]) - 1]
            limits = np.iinfo(flat.dtype)
            value = np.clip(int(random.choice(np.array(INTEGERS + near, dtype=object))), limits.min, limits.max)
        with np.errstate(all="ignore"):
            flat[index] = value
    return changed


def flip_bits(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Flip bits anywhere in the values."""
    data = bytearray(array.tobytes())
    for _ in range(int(random.choice([1, 2, 20])) if data else 0):
        data[random.integers(len(data))] ^= 1 << int(random.integers(8))
    return np.frombuffer(bytes(data), array.dtype).reshape(array.shape).copy()


def change_shape(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Remove or repeat rows, or change the dimensions."""
    kind = random.integers(6)
    if kind == 0 or array.ndim == 0:
        return array.reshape(-1)[: int(random.integers(2))].copy()
    if kind == 1:
        return array[: int(random.integers(len(array) + 1))].copy()
    if kind == 2:
        return np.concatenate([array, array[-int(random.integers(1, 4)) :]])
    if kind == 3:
        return array.reshape(1, *array.shape)
    if kind == 4:
        return array.T.copy()
    return array.reshape(-1).copy()


def change_type(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Convert the values to another type or byte order."""
    if random.integers(2):
        return array.astype(array.dtype.newbyteorder())
    with np.errstate(all="ignore"):
        return array.astype(str(random.choice(["i1", "i4", "i8", "u8", "f2", "f4", "f8", "?", "U6", "c16"])))


def change_order(random: np.random.Generator, array: NDArray[Any]) -> NDArray[Any]:
    """Shuffle the values, or swap two of them."""
    changed = array.copy()
    if array.ndim and len(array) > 1:
        if random.integers(2):
            random.shuffle(changed)
        else:
            first, second = random.integers(0, len(array), 2)
            changed[[first, second]] = changed[[second, first]]
    return changed


CHANGES = [replace_values, replace_values, replace_values, flip_bits, change_shape, change_type, change_order]


def tamper_with_arrays(random: np.random.Generator, directory: Path) -> str:
    """Change, drop or exchange one or two arrays, and update the manifest."""
    manifest = json.loads((directory / MANIFEST).read_bytes())
    names, done = sorted(manifest["arrays"]), []
    arrays = {name: np.load(directory / f"{name}.npy") for name in names}
    for _ in range(int(random.choice([1, 1, 2]))):
        name = str(random.choice(names))
        choice = random.integers(20)
        if choice == 0:
            arrays.pop(name, None)
            done.append(f"drop {name}")
        elif choice == 1 and name in arrays:
            other = str(random.choice(names))
            arrays[name] = arrays.get(other, arrays[name])
            done.append(f"{name} = {other}")
        elif name in arrays:
            change: Callable[..., NDArray[Any]] = CHANGES[random.integers(len(CHANGES))]
            arrays[name] = change(random, arrays[name])
            done.append(f"{change.__name__} {name}")
    write(directory, manifest, arrays)
    return ", ".join(done)


def tamper_with_parameters(random: np.random.Generator, directory: Path) -> str:
    """Change or remove a parameter or another metadata value."""
    manifest = json.loads((directory / MANIFEST).read_bytes())
    values = manifest["meta"]
    if "parameters" in values and random.integers(8):
        values = values["parameters"]
    name = str(random.choice(sorted(values)))
    value = JSON_VALUES[random.integers(len(JSON_VALUES))]
    if random.integers(10) == 0:
        del values[name]
    else:
        values[name] = value
    (directory / MANIFEST).write_bytes(_manifest_bytes({n: v for n, v in manifest.items() if n != "checksum"}))
    return f"parameter {name} = {value!r}"


def tamper_with_manifest(random: np.random.Generator, directory: Path) -> str:
    """Change an entry of the manifest: a name, a type, a shape, a size."""
    manifest = json.loads((directory / MANIFEST).read_bytes())
    del manifest["checksum"]
    where = random.integers(3)
    if where == 0:
        name = str(random.choice(["format", "kind", "version", "meta", "arrays", "ripplevec"]))
        manifest[name] = JSON_VALUES[random.integers(len(JSON_VALUES))]
    else:
        array = str(random.choice(sorted(manifest["arrays"])))
        entry = manifest["arrays"][array]
        name = str(random.choice(sorted(entry)))
        replacements: list[Any] = [
            *JSON_VALUES,
            "../../etc/passwd",
            "/etc/passwd",
            "manifest.json",
            *DTYPES,
            [2**62],
            [2**40, 2**40],
        ]
        entry[name] = replacements[random.integers(len(replacements))]
        name = f"{array}.{name}"
    (directory / MANIFEST).write_bytes(_manifest_bytes(manifest))
    return f"manifest {name}"


def tamper_with_files(random: np.random.Generator, directory: Path) -> str:
    """Change the header of a file or replace it by a link, an archive or a pickle, with matching size and checksum."""
    manifest = json.loads((directory / MANIFEST).read_bytes())
    del manifest["checksum"]
    name = str(random.choice(sorted(manifest["arrays"])))
    entry, path = manifest["arrays"][name], directory / f"{name}.npy"
    kind = random.integers(4)
    if kind == 0:
        shape, dtype = [[2**50], [2**31, 2**31], [-1], [3]][random.integers(4)], str(random.choice(DTYPES))
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
        text = header.encode().ljust(117) + b"\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + path.read_bytes()[128:])
        entry["shape"], entry["dtype"] = shape, dtype
    elif kind == 1:
        path.unlink()
        with open(path, "wb") as file:
            np.savez(file, a=np.arange(3))
    elif kind == 2:
        path.rename(directory / "elsewhere.npy")
        path.symlink_to(directory / "elsewhere.npy")
    else:
        path.unlink()
        with open(path, "wb") as file:
            np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
        entry["dtype"], entry["shape"] = "|O", [1]
    entry["bytes"], entry["checksum"] = path.stat().st_size, _checksum(path)
    (directory / MANIFEST).write_bytes(_manifest_bytes(manifest))
    return f"file {kind} of {name}"


TAMPERINGS = [tamper_with_arrays] * 7 + [tamper_with_parameters, tamper_with_manifest, tamper_with_files]


def write(directory: Path, manifest: dict[str, Any], arrays: Arrays) -> None:
    """Write arrays with a matching manifest, as if they had been saved."""
    lines = {}
    for name, array in arrays.items():
        path = directory / f"{name}.npy"
        with open(path, "wb") as file:
            np.save(file, array, allow_pickle=False)
        lines[name] = {
            "file": path.name,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "bytes": path.stat().st_size,
            "checksum": _checksum(path),
        }
    content = {name: value for name, value in manifest.items() if name != "checksum"} | {"arrays": lines}
    (directory / MANIFEST).write_bytes(_manifest_bytes(content))


def open_model(directory: Path) -> Embedder | LinkScorer:
    """Load what was saved; the digest of a snapshot is not compared, because it could be forged too."""
    if directory.name == "scorer":
        return LinkScorer.load(directory)
    if directory.parent.name != "snapshots":
        return Embedder.load(directory)
    meta = build_metadata(SESSION)
    model = create_model(meta, threads=1)
    snapshots = SnapshotStore(directory.parent)
    try:
        return load_snapshot(snapshots, int(directory.name), lambda: model)
    except FormatError as error:
        if "expected digest" not in str(error):
            raise
    return model


def exercise(model: Embedder | LinkScorer) -> None:
    """Read from a loaded model, and apply arrivals, removals and an anchor."""
    if isinstance(model, LinkScorer):
        exercise_scorer(model)
        model = model.model
    model.check()
    model.digest()
    ids = model.ids
    model.vectors(ids)
    model.diagnostics()
    for vertex in ids[:3]:
        model.nearest(vertex, 5)
        model.neighbors(vertex)
    engine = model.engine
    from ripplevec import Batch
    from ripplevec.batch import Op

    time_now = engine.aging.time if engine.aging is not None else None
    later = None if time_now is None else [time_now + 1.0] * 2
    for number in range(8):
        engine.apply(Batch.of(["new", f"newer{number}"], [ids[0] if ids else "old", "new"], time=later))
    for vertex in ids[:2]:
        engine.apply(Batch.vertices([vertex], Op.REMOVE_VERTEX))
    if engine.attribute_dim and ids[2:]:
        size = engine.attributes.projection.size  # type: ignore[attr-defined]
        dense = engine.attributes.projection.kind == "dense"  # type: ignore[attr-defined]
        attributes = [1.0] * size if dense else {"tag 1": 1.0, "unseen": 2.0}
        model.preview([], attributes=attributes)
        for vertex in ids[2:5]:
            model.set_attributes([vertex], [attributes])
        model.nearest_by_attributes(ids[2])
    if model.rule != "paper" and engine.edges:
        engine.anchor()
    model.check()
    model.digest()
    if not np.isfinite(model.to_numpy()).all():
        raise ArithmeticError("vectors are not finite")


def exercise_scorer(scorer: LinkScorer) -> None:
    """Read from a loaded scorer, and let it learn."""
    for _ in range(2):
        scores = scorer.score([(0, 1), ("v1é", "unknown")])
        if not ((scores >= 0) & (scores <= 1)).all():  # false for NaN too
            raise ArithmeticError(f"not probabilities: {scores}")
        scorer.recommend(0, 5)
        scorer.partial_fit([(0, 1), ("v1é", "newcomer")])


def run(cases: int, seed: int, log: Callable[[str], None]) -> dict[str, Any]:
    """Run a number of cases and return the record."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        saved = save_all(directory)
        for case in range(cases):
            random = np.random.default_rng([seed, case])
            source = saved[random.integers(len(saved))]
            target = directory / "case" / ("snapshots" if source.parent.name == "snapshots" else "models") / source.name
            shutil.copytree(source, target, symlinks=True)
            description = f"case {case}, {source.name}: {TAMPERINGS[random.integers(len(TAMPERINGS))](random, target)}"
            log(description)
            try:
                model = open_model(target)
            except FormatError:
                outcomes["refused"] += 1
            except BaseException as error:
                faults.append(f"{description}: loading: {error!r}")
            else:
                try:
                    exercise(model)
                    outcomes["loaded and used"] += 1
                except BaseException as error:
                    faults.append(f"{description}: using: {error!r}")
            shutil.rmtree(directory / "case")
    return {"cases": cases, "seed": seed, "outcomes": dict(outcomes), "faults": faults}


def main() -> None:
    """Run the fuzzer from the command line and write its record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    started = time.monotonic()
    with open(os.devnull if options.json is None else options.json.with_suffix(".last"), "w") as trace:

        def log(description: str) -> None:  # after a crash, the file names the case
            if options.json is not None:
                trace.seek(0)
                trace.truncate()
                trace.write(description)
                trace.flush()

        record = run(options.cases, options.seed, log) | {"seconds": round(time.monotonic() - started, 1)}
    if options.json is not None:
        options.json.with_suffix(".last").unlink()
        write_record(options.json, record)
    for fault in record["faults"][:40]:
        print(fault)
    print({name: record[name] for name in ("cases", "outcomes", "seconds")}, len(record["faults"]), "faults")
    if record["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
