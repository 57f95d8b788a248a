"""Locate the files of published data sets on this machine, and download the missing ones.

A file is looked for in the folder named by RIPPLEVEC_DATA, then in the user's cache, and is downloaded into the cache
if neither holds it. Only files with the published checksum are used. An interrupted download is resumed.

The library pooch is not used for this: it begins interrupted downloads again, lets several processes download the same
file at once, and would be a further dependency.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ripplevec.errors import FormatError, RipplevecError

DownloadProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Progress callback of a download: file name, bytes received so far, total bytes (None if unknown)."""

DATA_FOLDER_VARIABLE = "RIPPLEVEC_DATA"
"""Environment variable that names a folder with data set files."""

MAX_ATTEMPTS = 3
TIMEOUT_SECONDS = 20.0
BLOCK_BYTES = 1 << 16
HTTP_PARTIAL_CONTENT = 206
HTTP_RANGE_NOT_SATISFIABLE = 416


class MissingDataError(RipplevecError, FileNotFoundError):
    """A data set file is not on this machine and cannot be downloaded."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A published file: its name, its SHA-256 checksum and the URL of the folder that holds it."""

    name: str
    sha256: str
    origin: str

    @property
    def address(self) -> str:
        """The URL of the file."""
        return f"{self.origin}/{self.name}"


def cache_folder() -> Path:
    """Return the folder that downloaded files are stored in."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ripplevec"


def find_local(file: SourceFile) -> Path | None:
    """Return the path of an intact local copy of a file, or None; a copy with a wrong checksum is ignored."""
    return next((path for path in _candidate_paths(file) if is_intact(path, file)), None)


def locate(file: SourceFile, progress: DownloadProgress | None = None) -> Path:
    """Return the path of an intact copy of a file; download it into the cache if there is none."""
    path = find_local(file)
    if path is not None:
        return path
    target = cache_folder() / file.name
    try:
        download(file, target, progress)
    except (OSError, HTTPException) as error:
        raise MissingDataError(_describe_failure(file, error)) from error
    return target


def download(file: SourceFile, target: Path, progress: DownloadProgress | None = None) -> None:
    """Download a file, check it and move it to `target`.

    Bytes received before an interruption stay in `target` + ".part", from which the next attempt resumes.
    """
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock_folder(target.parent):
        if is_intact(target, file):  # another process downloaded it while this one waited for the lock
            return
        for _ in range(MAX_ATTEMPTS):
            resumed = part.exists()
            complete = _receive(file, part, progress)
            if is_intact(part, file):
                part.replace(target)
                return
            if complete:
                actual = checksum(part)
                part.unlink()
                if not resumed:
                    raise FormatError(
                        f"{file.address}: expected sha256 {file.sha256}, got {actual}; the download was discarded"
                    )
    raise ConnectionError(f"the connection was interrupted {MAX_ATTEMPTS} times")


def is_intact(path: Path, file: SourceFile) -> bool:
    """Tell whether a path holds the published bytes of a file."""
    return path.is_file() and checksum(path) == file.sha256


def checksum(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _candidate_paths(file: SourceFile) -> list[Path]:
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    return [Path(place) / file.name for place in (folder, cache_folder()) if place]


def _describe_failure(file: SourceFile, error: Exception) -> str:
    reason = error.reason if type(error) is URLError else error
    searched = [f"{path} {'has another sha256' if path.is_file() else 'is missing'}" for path in _candidate_paths(file)]
    return (
        f"{file.name}: {', '.join(searched)}, and {file.address} cannot be downloaded ({reason}); "
        f"put the file into a folder and set {DATA_FOLDER_VARIABLE} to that folder"
    )


def _receive(file: SourceFile, part: Path, progress: DownloadProgress | None) -> bool:
    """Append the missing bytes to `part`; return whether the end of the file was reached."""
    received = part.stat().st_size if part.exists() else 0
    request = Request(file.address, headers={"Range": f"bytes={received}-"} if received else {})
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return _store(response, file.name, part, progress)
    except HTTPError as error:
        error.close()
        if error.code != HTTP_RANGE_NOT_SATISFIABLE:  # which means that no bytes are left to send
            raise
        return True


def _store(response: HTTPResponse, name: str, part: Path, progress: DownloadProgress | None) -> bool:
    with part.open("ab" if response.status == HTTP_PARTIAL_CONTENT else "wb") as sink:
        total = None if response.length is None else sink.tell() + response.length
        with suppress(ConnectionError, TimeoutError, HTTPException):
            while block := response.read(BLOCK_BYTES):
                sink.write(block)
                if progress:
                    progress(name, sink.tell(), total)
        return sink.tell() == total


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Admit one process at a time where the system has file locks; elsewhere the checksum alone protects the file."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network drives do not support locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
