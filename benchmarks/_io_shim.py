"""Interface to a preloaded library that logs file operations of this process, or lets them fail.

The library also sees the operations of C libraries such as SQLite.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

SOURCE = Path(__file__).parent / "native" / "io_shim.c"
NO_COMPILER = 77
"""Exit status of a program that needs a C compiler and found none."""


class Operation(NamedTuple):
    """One file operation with its paths and data."""

    kind: str  # create, write, truncate, flush, rename, remove, mkdir, or a note of the program
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""


def preload() -> None:
    """Compile the library and restart this program with it preloaded, unless it already is."""
    if os.environ.get("RIPPLEVEC_IO_SHIM") == "yes":
        return
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        print("file operations cannot be intercepted: expected Linux and a C compiler")
        raise SystemExit(NO_COMPILER)
    library = Path(tempfile.mkdtemp(prefix="ripplevec-shim-")) / "io_shim.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    _restart({"LD_PRELOAD": str(library), "RIPPLEVEC_IO_SHIM": "yes", "OMP_NUM_THREADS": "1"})


def _restart(variables: dict[str, str]) -> NoReturn:
    done = subprocess.run([sys.executable, *sys.argv], env={**os.environ, **variables})
    shutil.rmtree(Path(variables["LD_PRELOAD"]).parent)
    raise SystemExit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


class Shim:
    """Control of the preloaded library for the operations in one directory."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.io_shim_calls.restype = ctypes.c_long
        self._library.io_shim_fail.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int]

    def watch(self, directory: Path, log: int = -1) -> None:
        """Count the operations in a directory from now on, and log them if a file descriptor is given."""
        self._library.io_shim_watch(os.fsencode(directory), log)

    def fail(self, call: int, error: int = 0, *, short: bool = False, sticky: bool = False) -> None:
        """Let one call, counted from 1, fail or write less than requested; with `sticky`, also all later calls."""
        self._library.io_shim_fail(call, error, short, sticky)

    def stop(self) -> int:
        """Stop watching and failing; return the number of calls."""
        self._library.io_shim_fail(-1, 0, 0, 0)
        calls = int(self._library.io_shim_calls())
        self._library.io_shim_watch(b"", -1)
        return calls


def log_note(log: int, kind: str, value: str) -> None:
    """Add a record of the program itself to the log."""
    os.write(log, f"{kind}\t{value}\t\t0\t0\n\n".encode())


def read_operations(log: Path, root: Path) -> Iterator[Operation]:
    """Read the records of a log, with paths relative to the watched directory."""
    data, at = log.read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, path, other, offset, length = data[at:end].decode().split("\t")
        at = end + 1 + int(length) + 1
        relative = [name.removeprefix(str(root)).strip("/") for name in (path, other)]
        yield Operation(kind, relative[0], relative[1], int(offset), data[end + 1 : at - 1])
