"""Changes as a model would give them, without one."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.batch import id_column
from ripplevec.changes import Changes


@pytest.fixture
def changes_of():
    def make(names, *, removed=(), sequence=1, anchored=False):
        vectors = np.random.default_rng(sequence).normal(size=(len(names), 3)).astype(np.float32)
        arrived = np.arange(len(names)) == 0
        return Changes(
            id_column(names), np.arange(len(names)), lambda rows: vectors, arrived, list(removed), sequence, anchored
        )

    return make
