"""Locate data set files: in the RIPPLEVEC_DATA folder, in the user's cache, else download them."""

from __future__ import annotations

import os
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

from ripplevec.errors import RipplevecError
from ripplevec.lab.datasets.base import SourceFile
from ripplevec.lab.datasets.download import Progress, download, is_intact

VARIABLE = "RIPPLEVEC_DATA"
"""The environment variable that names a folder with the files of the data sets."""


class MissingDataError(RipplevecError, FileNotFoundError):
    """A file of a data set is neither here nor to be had."""


def cache_folder() -> Path:
    """Where downloaded files are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ripplevec"


def present(file: SourceFile) -> Path | None:
    """The path of a file that is here with the right checksum; a file with other bytes does not count."""
    return next((path for path in _candidates(file) if is_intact(path, file)), None)


def find(file: SourceFile, progress: Progress | None = None) -> Path:
    """The path of a file with the right checksum; it is downloaded where it is not here yet."""
    path = present(file)
    if path is not None:
        return path
    target = cache_folder() / file.name
    try:
        download(file, target, progress)
    except (OSError, HTTPException) as error:
        raise MissingDataError(_explain(file, error)) from error
    return target


def _candidates(file: SourceFile) -> list[Path]:
    folder = os.environ.get(VARIABLE)
    return [Path(place) / file.name for place in (folder, cache_folder()) if place]


def _explain(file: SourceFile, error: Exception) -> str:
    reason = error.reason if type(error) is URLError else error
    looked = [f"{path} {'has another sha256' if path.is_file() else 'is not there'}" for path in _candidates(file)]
    return (
        f"{file.name}: {', '.join(looked)}, and {file.address} cannot be downloaded ({reason}); "
        f"put the file into a folder and set {VARIABLE} to that folder"
    )
