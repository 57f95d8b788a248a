"""Directories of .npy files with a manifest, written atomically and verified by checksums; atomic writing of files.

A new directory is built under a temporary name (`.NAME.ripplevec-new`) and then renamed. A rename cannot replace a
non-empty directory, so the old one is first renamed to `.NAME.ripplevec-old`. Between the two renames, and after a
crash at that point, readers read the old directory; the next write restores it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ripplevec._version import __version__
from ripplevec.errors import FormatError, InvalidValueError, shorten
from ripplevec.install_hint import upgrade_advice

FORMAT = "ripplevec"
FORMAT_VERSION = 3  # 1: without event times; 2: without the longest row of each view
MANIFEST = "manifest.json"
JOURNAL_FILE = "journal.sqlite"  # of a session directory
RESTORE_HINT = "Restore it from a backup, or build and save it again."
DAMAGED_HINT = f"The file is damaged. {RESTORE_HINT}"
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_HEADER_READERS: dict[tuple[int, int], Callable[[BinaryIO], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def write_arrays(
    directory: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any],
    *,
    kind: str = "embedder",
    version: int = FORMAT_VERSION,
) -> None:
    """Write arrays and JSON values as one directory; a crash leaves either the old directory or the new one.

    A directory written by this function is replaced. Any other directory that is not empty raises an error and is left
    unchanged.
    """
    target = Path(directory).resolve()
    json_meta = _to_json_values(meta)
    check_replaceable(target)
    create_directory(target.parent)
    _clean_up(target)
    new = _sibling(target, "new")
    try:
        new.mkdir()
        content = {"format": FORMAT, "kind": kind, "version": version, "ripplevec": __version__, "meta": json_meta}
        content["arrays"] = {name: _write_array(new, name, array) for name, array in arrays.items()}
        _write_durably(new / MANIFEST, lambda file: file.write(_manifest_bytes(content)))
        fsync_directory(new)
        _move_into_place(new, target)
    finally:
        _clean_up(target)


def read_meta(directory: str | os.PathLike[str], *, kind: str = "embedder") -> dict[str, Any]:
    """Read the JSON values of a directory without reading its arrays; "bytes" is their total size."""
    manifest = _read_manifest_of_kind(_find_readable(directory), kind)
    return {**manifest["meta"], "bytes": sum(entry["bytes"] for entry in manifest["arrays"].values())}


def read_arrays(
    directory: str | os.PathLike[str], *, kind: str = "embedder", mapped: bool = False
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read and verify the arrays and JSON values of a directory; raise `FormatError` if it is damaged.

    With `mapped` the arrays are memory-mapped and loaded on access.
    """
    source = _find_readable(directory)
    manifest = _read_manifest_of_kind(source, kind)
    arrays = {name: _read_array(source, entry, mapped) for name, entry in manifest["arrays"].items()}
    return arrays, manifest["meta"]


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file beside `path` that replaces it on success and is removed on an error."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_get_umask())
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def create_directory(directory: Path) -> None:
    """Create a directory and its missing parents, and fsync the parent of each new directory."""
    if directory.is_dir():
        return
    create_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    fsync_directory(directory.parent)


def fsync_directory(directory: Path) -> None:
    """Make the entries of a directory durable, if the platform can open directories."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_path(path: Path) -> None:
    """Remove a directory tree, a file or a symbolic link, if it exists; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _find_readable(directory: str | os.PathLike[str]) -> Path:
    """Return the path to read: the directory, or its old version if a write stopped between the two renames."""
    target = Path(directory).resolve()
    old = _sibling(target, "old")
    return old if old.is_dir() and not target.exists() else target


def _read_manifest_of_kind(source: Path, kind: str) -> dict[str, Any]:
    """Read the manifest of a directory; raise if it is not of the given kind."""
    manifest = _read_manifest(source)
    if manifest["kind"] != kind:
        raise _format_error(source, f"a saved {kind}", f"a saved {manifest['kind']}", "Check the path.")
    return manifest


def _read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a directory; raise if it is missing, foreign, of a newer format, or damaged."""
    if not directory.is_dir():
        got = "a file" if directory.exists() else "nothing"
        raise _format_error(directory, "a directory written by Ripplevec", got, "Check the path.")
    path = directory / MANIFEST
    if (directory / JOURNAL_FILE).is_file():
        remedy = f'Open it with ripplevec.Session("{directory}").'
        raise _format_error(directory, "a saved model", "a session directory", remedy)
    if not path.is_file() or path.is_symlink():
        raise _format_error(
            directory,
            f"a directory with a {MANIFEST}",
            "none",
            "Check the path: Ripplevec did not write this directory.",
        )
    text = path.read_bytes()
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _format_error(path, "JSON", f"other text ({error})", DAMAGED_HINT) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _format_error(path, f"the manifest of a {FORMAT} directory", shorten(manifest), "Check the path.")
    version = manifest.get("version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise FormatError(
            f"{directory}: written by a newer Ripplevec: expected format {FORMAT_VERSION} or older, got {version}. "
            f"To upgrade: {upgrade_advice()}"
        )
    manifest.pop("checksum", None)
    if _manifest_bytes(manifest) != text:
        raise _format_error(path, "text that matches its checksum", "other text", DAMAGED_HINT)
    _check_manifest(path, manifest)
    return manifest


def _check_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Raise if the values of a manifest have the wrong types, although its checksum is right."""
    version, meta, arrays = (manifest.get(name) for name in ("version", "meta", "arrays"))
    has_version = isinstance(version, int) and not isinstance(version, bool) and version >= 1
    if not (
        has_version and isinstance(manifest.get("kind"), str) and isinstance(meta, dict) and isinstance(arrays, dict)
    ):
        raise _format_error(path, "a version, a kind, meta and arrays", "other values", RESTORE_HINT)
    for name, entry in arrays.items():
        if not isinstance(entry, dict) or not _is_valid_entry(entry):
            raise _format_error(
                path,
                "a file, dtype, shape, bytes and checksum for every array",
                f"other values for {shorten(name)}",
                RESTORE_HINT,
            )
        if not _SAFE_NAME.fullmatch(entry["file"]):
            raise _format_error(path, "plain file names", shorten(entry["file"]), RESTORE_HINT)


def _is_valid_entry(entry: dict[str, Any]) -> bool:
    """Return whether a manifest entry has all its values, each of the right type."""
    shape = entry.get("shape")
    if not isinstance(shape, list) or not all(
        isinstance(entry.get(name), str) for name in ("file", "dtype", "checksum")
    ):
        return False
    numbers = (entry.get("bytes"), *shape)
    return all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)


def _manifest_bytes(content: Mapping[str, Any]) -> bytes:
    """Return the canonical text of a manifest; a manifest with any other text was altered."""
    digest = _digest()
    digest.update(json.dumps(content, separators=(",", ":")).encode())
    return json.dumps({**content, "checksum": digest.hexdigest()}, indent=1).encode()


def _to_json_values(meta: Mapping[str, Any]) -> Any:
    """Return the values as they will be read back: tuples become lists, and keys become text."""
    try:
        return json.loads(json.dumps(meta, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"meta: expected values that JSON can hold, got {shorten(meta)}: {error}") from error


def check_replaceable(target: Path) -> None:
    """Raise if a path is not empty and contains anything that `write_arrays` did not write."""
    if not target.exists():
        return
    remedy = "Choose another path, or remove the existing content. Nothing was changed."
    expected = "no file, an empty directory or a directory written by Ripplevec"
    if not target.is_dir():
        raise _format_error(target, expected, "a file", remedy)
    if target.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise _format_error(
            target, "a directory that can be replaced", "the current working directory or a parent of it", remedy
        )
    known = _files_in_manifest(target)
    foreign = sorted(entry.name for entry in target.iterdir() if entry.name not in known)
    if foreign:
        raise _format_error(target, expected, f"a directory that contains {shorten(foreign[0])}", remedy)


def check_not_saved_model(directory: Path) -> None:
    """Raise if a directory for a session contains a saved model, which the session would hide."""
    if (directory / MANIFEST).exists() and not (directory / JOURNAL_FILE).exists():
        remedy = "Choose another directory for the session; ripplevec.load opens the model."
        raise _format_error(directory, "a session directory or a new one", "a saved model", remedy)


def _files_in_manifest(target: Path) -> set[str]:
    """Return the file names listed in the manifest of a directory, whether or not its arrays are intact."""
    try:
        manifest = json.loads((target / MANIFEST).read_bytes())
        if manifest["format"] == FORMAT:
            return {MANIFEST, *(entry["file"] for entry in manifest["arrays"].values())}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return set()


def _sibling(target: Path, role: str) -> Path:
    """Return the temporary path of a new or old version of a directory."""
    return target.with_name(f".{target.name}.ripplevec-{role}")


def _clean_up(target: Path) -> None:
    """Remove the leftovers of an interrupted write; restore the old directory if the new one is not in place."""
    new, old = _sibling(target, "new"), _sibling(target, "old")
    if old.exists() and not target.exists():
        os.replace(old, target)
    for leftover in (new, old):
        remove_path(leftover)


def _move_into_place(new: Path, target: Path) -> None:
    """Rename a new directory to its final name, moving an existing one out of the way."""
    if target.exists():
        os.replace(target, _sibling(target, "old"))
    os.replace(new, target)
    fsync_directory(target.parent)


def _write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Create a file, write to it and fsync it."""
    with open(path, "xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _check_array(name: str, array: NDArray[Any]) -> None:
    """Raise if the name of an array is not a safe file name, or its type cannot be saved."""
    if not _SAFE_NAME.fullmatch(name):
        raise InvalidValueError.of(
            "array name", "letters, digits, '_', and after the first character '-' and '.'", name
        )
    if array.dtype.hasobject:
        raise InvalidValueError.of(f"array {name!r}", "numbers, booleans or fixed-width text", f"dtype {array.dtype}")


def _write_array(directory: Path, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write one array durably and return its manifest entry."""
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
    """Load one array after checking that its size, checksum and header agree with its manifest entry."""
    path = directory / entry["file"]
    size = _regular_file_size(path)
    if size != entry["bytes"]:
        raise _format_error(path, f"{entry['bytes']:,} bytes", f"{size:,}", RESTORE_HINT)
    checksum = _checksum(path)
    if checksum != entry["checksum"]:
        raise _format_error(path, f"checksum {entry['checksum']}", checksum, DAMAGED_HINT)
    header = _read_header(path)
    if [header.dtype.str, list(header.shape)] != [entry["dtype"], entry["shape"]]:
        expected = f"dtype {entry['dtype']} and shape {tuple(entry['shape'])}"
        raise _format_error(path, expected, f"dtype {header.dtype.str} and shape {header.shape}", RESTORE_HINT)
    if header.data_bytes != size - header.offset:
        raise _format_error(
            path, f"{header.data_bytes:,} bytes after its header", f"{size - header.offset:,}", RESTORE_HINT
        )
    mode: Any = "r" if mapped and header.data_bytes else None  # an empty array cannot be memory-mapped
    array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
    return array


def _regular_file_size(path: Path) -> int:
    """Return the size of a regular file; raise for anything else, since a link could point anywhere."""
    try:
        status = os.lstat(path)
    except OSError:
        raise _format_error(path, "the array that the manifest lists", "no such file", RESTORE_HINT) from None
    if not stat.S_ISREG(status.st_mode):
        raise _format_error(path, "a regular file", "a link or a special file", RESTORE_HINT)
    return status.st_size


class _Header(NamedTuple):
    """Header of a .npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int  # start of the data in the file

    @property
    def data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def _read_header(path: Path) -> _Header:
    """Read the header of a .npy file alone, so that it can be checked against the file size before loading."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADER_READERS:
                raise ValueError(f"version {version}")
            shape, _, dtype = _HEADER_READERS[version](file)
            offset = file.tell()
    except (ValueError, TypeError, SyntaxError, EOFError, RecursionError, MemoryError) as error:
        raise _format_error(path, "a .npy file", f"another file type ({shorten(error)})", RESTORE_HINT) from error
    if dtype.hasobject:
        raise _format_error(path, "numbers, booleans or fixed-width text", f"dtype {dtype}", RESTORE_HINT)
    return _Header(shape, dtype, offset)


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, _digest).hexdigest()


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=32)


def _format_error(path: Path, expected: str, got: str, remedy: str) -> FormatError:
    return FormatError(f"{path}: expected {expected}, got {got}. {remedy}")


def _get_umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
