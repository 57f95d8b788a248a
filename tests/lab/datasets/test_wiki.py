from __future__ import annotations

import pytest

from ripplevec.lab.datasets import wiki
from ripplevec.lab.datasets.files import MissingDataError


def test_counts_agree_with_the_published_ones() -> None:
    try:
        dataset = wiki.load()
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == ("wiki", 2_405, 12_761 - 1_165, 17)
    assert (wiki.INFO.vertices, wiki.INFO.edges, wiki.INFO.classes) == (2_405, 12_761 - 1_165, 17)
