"""Ripplevec keeps the embedding of a growing graph up to date in real time."""

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
    from ripplevec.link_scoring.link_scorer import LinkScorer
    from ripplevec.views.spectral import SpectralView

_MODULES = {
    "AsyncClient": "ripplevec.client",
    "Batch": "ripplevec.batch",
    "Changes": "ripplevec.changes",
    "Client": "ripplevec.client",
    "Embedder": "ripplevec.embedder",
    "InvalidValueError": "ripplevec.errors",
    "LinkScorer": "ripplevec.link_scoring.link_scorer",
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
    "LinkScorer",
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
    """Import a public name on first use, so that `import ripplevec` is fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'ripplevec' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
