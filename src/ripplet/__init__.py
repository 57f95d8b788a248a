"""Ripplet keeps an embedding of a growing graph up to date, one arrival at a time."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ripplet._version import __version__

if TYPE_CHECKING:
    from ripplet.changes import Changes
    from ripplet.client import AsyncClient, Client
    from ripplet.embedder import Embedder, load
    from ripplet.errors import InvalidValueError, RippletError, UnknownEdgeError, UnknownVertexError
    from ripplet.events import Batch, Op
    from ripplet.session import Session
    from ripplet.views.spectral import SpectralView

_HOMES = {
    "AsyncClient": "ripplet.client",
    "Batch": "ripplet.events",
    "Changes": "ripplet.changes",
    "Client": "ripplet.client",
    "Embedder": "ripplet.embedder",
    "InvalidValueError": "ripplet.errors",
    "Op": "ripplet.events",
    "RippletError": "ripplet.errors",
    "Session": "ripplet.session",
    "SpectralView": "ripplet.views.spectral",
    "UnknownEdgeError": "ripplet.errors",
    "UnknownVertexError": "ripplet.errors",
    "load": "ripplet.embedder",
}

__all__ = [
    "AsyncClient",
    "Batch",
    "Changes",
    "Client",
    "Embedder",
    "InvalidValueError",
    "Op",
    "RippletError",
    "Session",
    "SpectralView",
    "UnknownEdgeError",
    "UnknownVertexError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first asked for, so that `import ripplet` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ripplet' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
