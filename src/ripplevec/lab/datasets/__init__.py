"""Graphs to measure with: the five of the paper, one file each, one's own, and generated ones that grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ripplevec.errors import check_choice
from ripplevec.lab.datasets import blog, citeseer, cora, flickr, wiki
from ripplevec.lab.datasets.base import Dataset, Info
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.files import find
from ripplevec.lab.datasets.from_files import from_files

__all__ = ["Dataset", "Info", "available", "fetch", "from_files", "load"]

_LOADERS: dict[str, tuple[Info, Callable[[Progress | None], Dataset]]] = {
    module.INFO.name: (module.INFO, module.load) for module in (cora, citeseer, wiki, blog, flickr)
}


def available() -> dict[str, Info]:
    """What is known of every published data set, by name, without reading any."""
    return {name: info for name, (info, _) in _LOADERS.items()}


def load(name: str, progress: Progress | None = None) -> Dataset:
    """Read a published data set: from the RIPPLEVEC_DATA folder, the user's cache, or its publisher."""
    check_choice("name", name, _LOADERS)
    _, read = _LOADERS[name]
    return read(progress)


def fetch(name: str, progress: Progress | None = None) -> list[Path]:
    """Make sure that the files of a published data set are here, and say where."""
    check_choice("name", name, _LOADERS)
    info, _ = _LOADERS[name]
    return [find(file, progress) for file in info.files]
