from __future__ import annotations

import pytest

from ripplevec.lab.datasets import blog
from ripplevec.lab.datasets.files import MissingDataError


def test_counts_agree_with_the_published_ones() -> None:
    try:
        dataset = blog.load()
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == ("blog", 5_196, 171_743, 6)
    assert (blog.INFO.vertices, blog.INFO.edges, blog.INFO.classes) == (5_196, 171_743, 6)
