"""Recipes: named combinations of spectral views, among which `views="auto"` chooses (see `view_choice.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from ripplevec.views.spectral import SpectralView

Recipes: TypeAlias = Mapping[str, Sequence[SpectralView]]
"""Views by name, the simplest first: of those that predict hidden edges equally well, the first one is chosen."""

_COMMUNITIES = SpectralView(share=3, tau_per_degree=0.25, tail=0.0625)
_FINE_COMMUNITIES = SpectralView(share=3, tau=0.25, tail=0.1)
_HUBS = SpectralView(share=1, tau_per_degree=64, tail=0.35)  # with such a τ, close to the adjacency matrix itself
_STRONG_HUBS = SpectralView(share=1, tau_per_degree=64, tail=0.35, weight=2.0)

RECIPES: Recipes = MappingProxyType(
    {
        "sparse": (SpectralView(tau=0.25, tail_per_degree=1 / 40, degree=10),),
        "communities": (SpectralView(tau_per_degree=0.25, tail=0.0625),),
        "communities+hubs": (_COMMUNITIES, _HUBS),
        "communities+strong-hubs": (_COMMUNITIES, _STRONG_HUBS),
        "fine-communities+hubs": (_FINE_COMMUNITIES, _HUBS),
    }
)
"""The candidates of `views="auto"`. Each of them can be chosen by name, too."""

DENSE_MEAN_DEGREE = 10  # mean degree from which hubs justify a view of their own, if nothing can be measured


def recipe_by_density(mean_degree: float, bipartite: bool = False) -> str:
    """Return the recipe of a graph that is too small to hide edges of it.

    On a bipartite graph, a hub view would separate vertices that belong together: hubs of one side and their neighbors
    on the other.
    """
    if mean_degree < DENSE_MEAN_DEGREE:
        return "sparse"
    return "communities" if bipartite else "communities+strong-hubs"
