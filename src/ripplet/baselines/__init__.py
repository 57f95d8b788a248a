"""Other ways to get vectors, to compare with: one file each, one interface."""

from __future__ import annotations

from ripplet.baselines.base import Baseline
from ripplet.baselines.deepwalk import DeepWalk
from ripplet.errors import one_of

__all__ = ["Baseline", "DeepWalk", "baseline"]

_KINDS: dict[str, type[Baseline]] = {"deepwalk": DeepWalk}


def baseline(name: str) -> type[Baseline]:
    """The class of a baseline by its name."""
    one_of("baseline", name, _KINDS)
    return _KINDS[name]
