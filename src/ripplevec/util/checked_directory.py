"""A directory of .npy files with a manifest: written whole or not at all, checked byte by byte when read.

A new directory is built under a temporary name (`.NAME.ripplevec-new`) and then renamed. A non-empty directory cannot
be replaced by a rename, so the old one is first renamed to `.NAME.ripplevec-old`. A reader between the two renames, or
after a crash at that point, reads the old directory, and the next write restores it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec._version import __version__
from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.install_hint import upgrade_advice

FORMAT = "ripplevec"
FORMAT_VERSION = 3  # 1: without what a model remembers of time; 2: without the longest row of each view
MANIFEST = "manifest.json"
RESTORE_HINT = "restore it from a copy, or build and save it again"
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def write_arrays(
    directory: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any],
    *,
    kind: str = "embedder",
    version: int = FORMAT_VERSION,
) -> None:
    """Write arrays and JSON values as one directory: after a crash the old one is there or the new one, never half.

    An earlier directory of ours is replaced; any other that is not empty is refused and left alone.
    """
    target = Path(directory).resolve()
    plain = _plain(meta)
    _check_replaceable(target)
    create_directory(target.parent)
    _settle(target)
    fresh = _beside(target, "new")
    try:
        fresh.mkdir()
        content = {"format": FORMAT, "kind": kind, "version": version, "ripplevec": __version__, "meta": plain}
        content["arrays"] = {name: _write_array(fresh, name, array) for name, array in arrays.items()}
        _write_durably(fresh / MANIFEST, lambda file: file.write(_manifest_bytes(content)))
        fsync_directory(fresh)
        _put_in_place(fresh, target)
    finally:
        _settle(target)


def read_meta(directory: str | os.PathLike[str], *, kind: str = "embedder") -> dict[str, Any]:
    """The JSON values of a directory alone, without a look at its arrays."""
    manifest = _manifest_of(_source(directory), kind)
    return {**manifest["meta"], "bytes": sum(entry["bytes"] for entry in manifest["arrays"].values())}


def read_arrays(
    directory: str | os.PathLike[str], *, kind: str = "embedder", mapped: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and JSON values of a directory, or a FormatError that says what is wrong with it.

    With `mapped` the arrays stay on the disk until they are looked at.
    """
    source = _source(directory)
    manifest = _manifest_of(source, kind)
    arrays = {name: _read_array(source, entry, mapped) for name, entry in manifest["arrays"].items()}
    return arrays, manifest["meta"]


def _source(directory: str | os.PathLike[str]) -> Path:
    """Where a directory lies: in its place, or aside if a write was interrupted between its two renames."""
    target = Path(directory).resolve()
    aside = _beside(target, "old")
    return aside if aside.is_dir() and not target.exists() else target


def _manifest_of(source: Path, kind: str) -> dict[str, Any]:
    manifest = _read_manifest(source)
    if manifest["kind"] != kind:
        raise _fault(source, f"a saved {kind}", f"a saved {manifest['kind']}", "check the path")
    return manifest


def _fault(path: Path, expected: str, found: str, remedy: str) -> FormatError:
    return FormatError(f"{path}: expected {expected}, found {found}; {remedy}")


def _beside(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.ripplevec-{role}")


def _check_array(name: str, array: NDArray[Any]) -> None:
    if not _SAFE_NAME.fullmatch(name):
        raise InvalidValueError.of("array name", "letters, digits, '_', '-' and '.', not first", name)
    if array.dtype.hasobject:
        raise InvalidValueError.of(f"array {name!r}", "numbers, flags or fixed-width text", f"dtype {array.dtype}")


def _plain(meta: Mapping[str, Any]) -> Any:
    """The values as they will be read back: tuples as lists, every key as text."""
    try:
        return json.loads(json.dumps(meta, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"meta: expected values that JSON can hold, got {shorten(meta)}: {error}") from error


def _check_replaceable(target: Path) -> None:
    """Refuse to replace what we did not write, down to the single file."""
    if not target.exists():
        return
    remedy = "choose another place, or remove what is there; nothing was changed"
    expected = "nothing, an empty directory or one written by Ripplevec"
    if not target.is_dir():
        raise _fault(target, expected, "a file", remedy)
    if target.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise _fault(target, "a directory to be replaced as a whole", "the one we are in", remedy)
    ours = _own_files(target)
    foreign = sorted(entry.name for entry in target.iterdir() if entry.name not in ours)
    if foreign:
        raise _fault(target, expected, f"{shorten(foreign[0])} in it", remedy)


def _own_files(target: Path) -> set[str]:
    """The names that the manifest of a directory accounts for, whether or not its arrays are sound."""
    try:
        manifest = json.loads((target / MANIFEST).read_bytes())
        if manifest["format"] == FORMAT:
            return {MANIFEST, *(entry["file"] for entry in manifest["arrays"].values())}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return set()


def _settle(target: Path) -> None:
    """Clear what an interrupted write left: bring the old directory back if no new one took its place."""
    fresh, aside = _beside(target, "new"), _beside(target, "old")
    if aside.exists() and not target.exists():
        os.replace(aside, target)
    for leftover in (fresh, aside):
        remove_path(leftover)


def remove_path(path: Path) -> None:
    """Remove a directory tree, a file or a link, whichever is there; a link is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _put_in_place(fresh: Path, target: Path) -> None:
    if target.exists():
        os.replace(target, _beside(target, "old"))
    os.replace(fresh, target)
    fsync_directory(target.parent)


def create_directory(directory: Path) -> None:
    """Create a directory and its missing parents, each with a durable entry in its own parent."""
    if directory.is_dir():
        return
    create_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    fsync_directory(directory.parent)


def fsync_directory(directory: Path) -> None:
    """Make the names in a directory durable, where the platform can open one."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    with open(path, "xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _write_array(directory: Path, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write one array for good and return its line in the manifest."""
    _check_array(name, array)
    path = directory / f"{name}.npy"
    _write_durably(path, lambda file: np.save(file, array, allow_pickle=False))
    return {
        "file": path.name,
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": path.stat().st_size,
        "checksum": _checksum(path),
    }


def _read_array(directory: Path, entry: dict[str, Any], mapped: bool) -> NDArray[Any]:
    """Load one array after its size, its checksum, its header and its manifest line agree."""
    path = directory / entry["file"]
    size = _size_of_plain_file(path)
    if size != entry["bytes"]:
        raise _fault(path, f"{entry['bytes']:,} bytes", f"{size:,}", RESTORE_HINT)
    checksum = _checksum(path)
    if checksum != entry["checksum"]:
        raise _fault(path, f"checksum {entry['checksum']}", checksum, f"the file is damaged: {RESTORE_HINT}")
    header = _read_header(path)
    if [header.dtype.str, list(header.shape)] != [entry["dtype"], entry["shape"]]:
        expected = f"dtype {entry['dtype']} and shape {tuple(entry['shape'])}"
        raise _fault(path, expected, f"dtype {header.dtype.str} and shape {header.shape}", RESTORE_HINT)
    if header.data_bytes != size - header.offset:
        raise _fault(path, f"{header.data_bytes:,} bytes after its header", f"{size - header.offset:,}", RESTORE_HINT)
    mode: Any = "r" if mapped and header.data_bytes else None  # an empty array cannot be mapped
    array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


class _Header(NamedTuple):
    """What the header of a .npy file claims."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int  # where the data begin

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _read_header(path: Path) -> _Header:
    """The header of a .npy file, read by itself: what it claims is compared with the file before memory is taken."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADER_READERS:
                raise ValueError(f"version {version}")
            shape, _, dtype = _HEADER_READERS[version](file)
            offset = file.tell()
    except (ValueError, TypeError, SyntaxError, EOFError, RecursionError, MemoryError) as error:
        raise _fault(path, "a .npy file", f"another ({shorten(error)})", RESTORE_HINT) from error
    if dtype.hasobject:
        raise _fault(path, "numbers, flags or fixed-width text", f"dtype {dtype}", RESTORE_HINT)
    return _Header(shape, dtype, offset)


_HEADER_READERS: dict[tuple[int, int], Callable[[BinaryIO], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _size_of_plain_file(path: Path) -> int:
    """The size of a file that lies where it says; a link could lead anywhere."""
    try:
        found = os.lstat(path)
    except OSError:
        raise _fault(path, "the array the manifest names", "no such file", RESTORE_HINT) from None
    if not stat.S_ISREG(found.st_mode):
        raise _fault(path, "a plain file", "a link or a special file", RESTORE_HINT)
    return found.st_size


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, _digest).hexdigest()


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)


def _manifest_bytes(content: Mapping[str, Any]) -> bytes:
    """The one way to write a manifest: any other text with this content was not written by us."""
    digest = _digest()
    digest.update(json.dumps(content, separators=(",", ":")).encode())
    return json.dumps({**content, "checksum": digest.hexdigest()}, indent=1).encode()


def _read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a directory, once it is known to be ours, readable here, and undamaged."""
    if not directory.is_dir():
        found = "a file" if directory.exists() else "nothing there"
        raise _fault(directory, "a directory written by Ripplevec", found, "check the path")
    path = directory / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise _fault(
            directory, f"a directory with a {MANIFEST}", "none", "check the path: Ripplevec did not write this"
        )
    text = path.read_bytes()
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _fault(path, "JSON", f"text that is not ({error})", f"the file is damaged: {RESTORE_HINT}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _fault(path, f"the manifest of a {FORMAT} directory", shorten(manifest), "check the path")
    version = manifest.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FormatError(
            f"{directory}: written by a newer Ripplevec (format {version}; this one reads up to {FORMAT_VERSION}): "
            f"upgrade: {upgrade_advice()}"
        )
    manifest.pop("checksum", None)
    if _manifest_bytes(manifest) != text:
        raise _fault(path, "the text its checksum was made of", "another", f"the file is damaged: {RESTORE_HINT}")
    _check_manifest(path, manifest)
    return manifest


def _check_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a manifest whose checksum is right but whose values are of the wrong kind."""
    version, meta, arrays = (manifest.get(name) for name in ("version", "meta", "arrays"))
    whole = isinstance(version, int) and not isinstance(version, bool) and version >= 1
    if not (whole and isinstance(manifest.get("kind"), str) and isinstance(meta, dict) and isinstance(arrays, dict)):
        raise _fault(path, "a version, a kind, values and arrays", "others", RESTORE_HINT)
    for name, entry in arrays.items():
        if not isinstance(entry, dict) or not _is_entry(entry):
            raise _fault(path, "arrays with a file, dtype, shape, bytes and checksum each", shorten(name), RESTORE_HINT)
        if not _SAFE_NAME.fullmatch(entry["file"]):
            raise _fault(path, "plain file names", shorten(entry["file"]), RESTORE_HINT)


def _is_entry(entry: dict[str, Any]) -> bool:
    """Whether a line of the manifest has all its values, each of the right kind."""
    shape = entry.get("shape")
    if not isinstance(shape, list) or not all(
        isinstance(entry.get(name), str) for name in ("file", "dtype", "checksum")
    ):
        return False
    numbers = (entry.get("bytes"), *shape)
    return all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
