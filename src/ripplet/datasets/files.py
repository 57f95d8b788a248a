"""Finding the files of a data set in the folder named by RIPPLET_DATA, and making sure they are the right ones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ripplet.datasets.base import SourceFile
from ripplet.errors import FormatError, RippletError

VARIABLE = "RIPPLET_DATA"
"""The environment variable that names the folder with the files of the data sets."""


class MissingDataError(RippletError, FileNotFoundError):
    """A file of a data set is not where it was looked for."""


def find(file: SourceFile) -> Path:
    """The path of a file in the data folder, once its checksum has been seen to be right."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise MissingDataError(
            f"{file.name}: expected in the folder named by {VARIABLE}, which is not set; "
            f"set it to a folder that holds the file (it comes from {file.origin})"
        )
    path = Path(folder) / file.name
    if not path.is_file():
        raise MissingDataError(
            f"{file.name}: expected in {folder} ({VARIABLE}), not there; put it there (it comes from {file.origin})"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise FormatError(
            f"{path}: expected sha256 {file.sha256}, got {found}; replace it by the file from {file.origin}"
        )
    return path
