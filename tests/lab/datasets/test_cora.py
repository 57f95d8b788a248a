from __future__ import annotations

import pytest

from ripplevec.lab.datasets import cora
from ripplevec.lab.datasets.files import MissingDataError


def test_counts_agree_with_the_published_ones() -> None:
    try:
        dataset = cora.load()
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == ("cora", 2_708, 5_278, 7)
    assert (cora.INFO.vertices, cora.INFO.edges, cora.INFO.classes) == (2_708, 5_278, 7)
