"""Ripplevec keeps an embedding of a growing graph up to date, one arrival at a time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ripplevec._version import __version__

if TYPE_CHECKING:
    from ripplevec.batch import Batch, Op
    from ripplevec.changes import Changes
    from ripplevec.client import AsyncClient, Client
    from ripplevec.durability.session import Session
    from ripplevec.embedder import Embedder, load
    from ripplevec.errors import InvalidValueError, RipplevecError, UnknownEdgeError, UnknownVertexError
    from ripplevec.views.spectral import SpectralView

_HOMES = {
    "AsyncClient": "ripplevec.client",
    "Batch": "ripplevec.batch",
    "Changes": "ripplevec.changes",
    "Client": "ripplevec.client",
    "Embedder": "ripplevec.embedder",
    "InvalidValueError": "ripplevec.errors",
    "Op": "ripplevec.batch",
    "RipplevecError": "ripplevec.errors",
    "Session": "ripplevec.durability.session",
    "SpectralView": "ripplevec.views.spectral",
    "UnknownEdgeError": "ripplevec.errors",
    "UnknownVertexError": "ripplevec.errors",
    "load": "ripplevec.embedder",
}

__all__ = [
    "AsyncClient",
    "Batch",
    "Changes",
    "Client",
    "Embedder",
    "InvalidValueError",
    "Op",
    "RipplevecError",
    "Session",
    "SpectralView",
    "UnknownEdgeError",
    "UnknownVertexError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first asked for, so that `import ripplevec` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ripplevec' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
