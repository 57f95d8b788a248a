"""Graphs to measure with: the five of the paper, one file each, and generated ones that grow."""

from __future__ import annotations

from collections.abc import Callable

from ripplet.datasets import blog, citeseer, cora, flickr, wiki
from ripplet.datasets.base import Dataset, Info
from ripplet.errors import one_of

__all__ = ["Dataset", "Info", "available", "load"]

_LOADERS: dict[str, tuple[Info, Callable[[], Dataset]]] = {
    module.INFO.name: (module.INFO, module.load) for module in (cora, citeseer, wiki, blog, flickr)
}


def available() -> dict[str, Info]:
    """What is known of every published data set, by name, without reading any."""
    return {name: info for name, (info, _) in _LOADERS.items()}


def load(name: str) -> Dataset:
    """Read a published data set from the folder named by RIPPLET_DATA."""
    one_of("name", name, _LOADERS)
    _, read = _LOADERS[name]
    return read()
