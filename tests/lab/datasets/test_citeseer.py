from __future__ import annotations

import pytest

from ripplevec.lab.datasets import citeseer
from ripplevec.lab.datasets.files import MissingDataError


def test_counts_agree_with_the_published_ones() -> None:
    try:
        dataset = citeseer.load()
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == ("citeseer", 3_312, 4_675 - 124, 6)
    assert (citeseer.INFO.vertices, citeseer.INFO.edges, citeseer.INFO.classes) == (3_312, 4_675 - 124, 6)
