"""DHPE: its decay follows the spectral radius."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.baselines.streaming import DHPE


def test_dhpe_lowers_the_decay_as_the_spectral_radius_grows(small_stream: Any) -> None:
    method = DHPE(dim=6, chunk=16)
    method.start(small_stream.graph)
    first = method._beta
    small_stream.run(method)
    assert method._beta < first
    radius = np.abs(np.linalg.eigvalsh(method._graph.toarray())).max()
    assert 0.5 < method._beta * radius < 1.1


def test_dhpe_with_decay_of_one_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"DHPE\.decay: expected a number above 0, below 1, got 1"):
        DHPE(decay=1.0)
