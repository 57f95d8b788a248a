"""See, log or fail the file operations of this process, those of C libraries included: a preloaded library."""

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
"""The exit status of a program that could not do its work for want of a C compiler."""


class Operation(NamedTuple):
    """One file operation: what, on which path, and with which bytes."""

    kind: str  # create, write, truncate, flush, rename, remove, mkdir, or what the program itself noted
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""


def preload() -> None:
    """Begin this program again with the library before all others, unless it is there already."""
    if os.environ.get("RIPPLEVEC_IO_SHIM") == "yes":
        return
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        print("no C compiler, or not Linux: file operations cannot be seen here")
        raise SystemExit(NO_COMPILER)
    library = Path(tempfile.mkdtemp(prefix="ripplevec-shim-")) / "io_shim.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl", "-lpthread"], check=True)
    _begin_again({"LD_PRELOAD": str(library), "RIPPLEVEC_IO_SHIM": "yes", "OMP_NUM_THREADS": "1"})


def _begin_again(more: dict[str, str]) -> NoReturn:
    done = subprocess.run([sys.executable, *sys.argv], env={**os.environ, **more})
    shutil.rmtree(Path(more["LD_PRELOAD"]).parent)
    raise SystemExit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


class Shim:
    """What the preloaded library does to operations under one directory."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.io_shim_calls.restype = ctypes.c_long
        self._library.io_shim_fail.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int]

    def watch(self, directory: Path, log: int = -1) -> None:
        """Count operations under a directory from now on, and log them if a file is given."""
        self._library.io_shim_watch(os.fsencode(directory), log)

    def fail(self, call: int, error: int = 0, *, short: bool = False, sticky: bool = False) -> None:
        """Let one call, counted from 1, fail with an error, or write less than asked; sticky: all from there on."""
        self._library.io_shim_fail(call, error, short, sticky)

    def rest(self) -> int:
        """Let everything pass; how many calls there were."""
        self._library.io_shim_fail(-1, 0, 0, 0)
        calls = int(self._library.io_shim_calls())
        self._library.io_shim_watch(b"", -1)
        return calls


def note(log: int, kind: str, value: str) -> None:
    """Put a record of one's own into the log."""
    os.write(log, f"{kind}\t{value}\t\t0\t0\n\n".encode())


def operations(log: Path, root: Path) -> Iterator[Operation]:
    """The records of a log, with paths below the directory that was watched."""
    data, at = log.read_bytes(), 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, path, other, offset, length = data[at:end].decode().split("\t")
        at = end + 1 + int(length) + 1
        below = [name.removeprefix(str(root)).strip("/") for name in (path, other)]
        yield Operation(kind, below[0], below[1], int(offset), data[end + 1 : at - 1])
