"""Fetching a published file once: what broke off goes on where it stopped, and only the right bytes are kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ripplevec.errors import FormatError
from ripplevec.lab.datasets.base import SourceFile

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Told while a file comes in: its name, the bytes that are here, the bytes it has (None: unknown)."""

ATTEMPTS = 3
TIMEOUT = 20.0
BLOCK = 1 << 16
NOTHING_LEFT = 416
PARTIAL = 206


def download(file: SourceFile, target: Path, progress: Progress | None = None) -> None:
    """Bring a file to its place, whole and checked or not at all; what came of it stays beside it for the next time."""
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone_in(target.parent):
        if is_intact(target, file):  # somebody else was first
            return
        for _ in range(ATTEMPTS):
            resumed = part.exists()
            ended = _receive(file, part, progress)
            if is_intact(part, file):
                part.replace(target)
                return
            if ended:
                found = checksum(part)
                part.unlink()
                if not resumed:
                    raise FormatError(f"{file.address}: expected sha256 {file.sha256}, got {found}; nothing was kept")
    raise ConnectionError(f"broken off {ATTEMPTS} times")


def is_intact(path: Path, file: SourceFile) -> bool:
    """Whether the file is there with the bytes it was published with."""
    return path.is_file() and checksum(path) == file.sha256


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _receive(file: SourceFile, part: Path, progress: Progress | None) -> bool:
    """Put what is missing behind what is here; whether the end was reached."""
    held = part.stat().st_size if part.exists() else 0
    request = Request(file.address, headers={"Range": f"bytes={held}-"} if held else {})
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            return _store(response, file.name, part, progress)
    except HTTPError as error:
        error.close()
        if error.code != NOTHING_LEFT:
            raise
        return True


def _store(response: HTTPResponse, name: str, part: Path, progress: Progress | None) -> bool:
    with part.open("ab" if response.status == PARTIAL else "wb") as sink:
        total = None if response.length is None else sink.tell() + response.length
        with suppress(ConnectionError, TimeoutError, HTTPException):
            while block := response.read(BLOCK):
                sink.write(block)
                if progress:
                    progress(name, sink.tell(), total)
        return sink.tell() == total


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time, where the system can tell; elsewhere the checksum is the guard."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every network drive knows locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
