from __future__ import annotations

import pytest

from ripplevec.lab.datasets import flickr
from ripplevec.lab.datasets.files import MissingDataError


def test_counts_agree_with_the_published_ones() -> None:
    try:
        dataset = flickr.load()
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == ("flickr", 7_575, 239_738, 9)
    assert (flickr.INFO.vertices, flickr.INFO.edges, flickr.INFO.classes) == (7_575, 239_738, 9)
