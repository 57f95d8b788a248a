"""A choice of views that is computed on another thread while the model continues."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from os import getpid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.util.parallel import submit
from ripplevec.views.graph_sample import SampledGraph
from ripplevec.views.recipes import Recipes
from ripplevec.views.view_choice import ViewChoice, reconsider_views


class BackgroundChoice:
    """A choice for a sample of the graph. It depends on the sample alone, so it can be computed at any time."""

    def __init__(self, graph: SampledGraph, recipes: Recipes, current: str, dim: int, seed: int) -> None:
        self.graph = graph
        self._arguments = graph, recipes, current, dim, seed, 1
        self._process = getpid()
        self._future = submit(_worker(self._process), partial(reconsider_views, *self._arguments))

    def result(self) -> ViewChoice:
        """Return the choice; wait for it if necessary. A forked child computes it again: it has no such thread."""
        if self._future is None or self._process != getpid():
            return reconsider_views(*self._arguments)
        return self._future.result()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the sample as arrays, for saving."""
        vertices, pairs, weights = self.graph
        return {"sample_vertices": np.array(vertices), "sample_pairs": pairs, "sample_weights": weights}


def restore_choice(
    state: dict[str, NDArray[Any]], recipes: Recipes, current: str, dim: int, seed: int
) -> BackgroundChoice | None:
    """Begin the choice of a saved state again; None if there is none."""
    if "sample_pairs" not in state:
        return None
    graph = SampledGraph(int(state["sample_vertices"]), state["sample_pairs"], state["sample_weights"])
    return BackgroundChoice(graph, recipes, current, dim, seed)


@cache
def _worker(process: int) -> ThreadPoolExecutor:
    """Return the thread of this process that chooses views."""
    return ThreadPoolExecutor(1, thread_name_prefix="ripplevec-views")
