from __future__ import annotations

import pytest

from ripplet import datasets
from ripplet.errors import InvalidValueError


def test_the_five_are_available_under_their_own_names() -> None:
    assert list(datasets.available()) == ["cora", "citeseer", "wiki", "blog", "flickr"]
    assert all(info.name == name for name, info in datasets.available().items())


def test_load_reads_the_one_asked_for() -> None:
    try:
        dataset = datasets.load("wiki")
    except FileNotFoundError as error:
        pytest.skip(f"set RIPPLET_DATA to run this: {error}")
    assert dataset.name == "wiki"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidValueError, match="'citeseer'"):
        datasets.load("corra")
