"""Kernel arguments for rows in some coordinates, built again only when an array has been replaced."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.rules._gather_kernels import KernelState
from ripplevec.rules.vector_store import VectorStore
from ripplevec.views.coordinates import Coordinates


class KernelStateCache:
    """The kernel state of the last call, for the next one."""

    def __init__(self) -> None:
        self._state: KernelState | None = None
        self._coordinates: Coordinates | None = None
        self._unit = 1.0  # unit of weights of the coefficients

    def clear(self) -> None:
        """Forget the state, which keeps arrays alive."""
        self._state = self._coordinates = None

    def get(self, store: VectorStore, coordinates: Coordinates, rows: NDArray[Any]) -> KernelState:
        """Return the kernel state of the graph, with these rows in these coordinates."""
        adjacency, state = store.graph.adjacency, self._state
        unit = adjacency.weight_scale.unit
        if (
            state is None
            or state.links is not adjacency.links
            or state.vectors is not rows
            or self._coordinates is not coordinates
        ):
            state = self._state = KernelState(
                adjacency.links,
                store.graph.arrival,
                store.placed,
                rows,
                coordinates.refresh_coefficients(np.float32, unit),
            )
            self._coordinates, self._unit = coordinates, unit
        elif self._unit != unit:
            coordinates.set_weight_unit(state.coefficients, unit)
            self._unit = unit
        return state
