"""How far vectors have turned since the last anchor, by a sample of them."""

from __future__ import annotations

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.service.map.map_sample import anchors, named, sample
from ripplevec.service.map.projection import unit

SAMPLE_SIZE = 1000


class Drift:
    """The vectors of a sample as they were at the last anchor; before one is seen, as they were at the first look."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._then = sample(model, 0.0)
        self._anchors = -1
        self.since_anchor = False

    def measure(self) -> float | None:
        """The mean angle between a vector now and then, in degrees; None where there was none then."""
        seen = anchors(self._model)
        if seen != self._anchors:
            self.since_anchor = self._anchors >= 0
            self._anchors = seen
            self._then = sample(self._model, SAMPLE_SIZE / max(len(self._model), 1))
        now = named(self._model, self._then.ids)
        _, before, after = np.intersect1d(self._then.arrival, now.arrival, assume_unique=True, return_indices=True)
        if not before.size:
            return None
        cosines = (unit(self._then.vectors[before]) * unit(now.vectors[after])).sum(axis=1)
        return round(float(np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean()), 4)
