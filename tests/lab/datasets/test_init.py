from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.io import loadmat

from ripplevec.errors import InvalidValueError
from ripplevec.lab import datasets


def test_the_five_are_available_under_their_own_names() -> None:
    assert list(datasets.available()) == ["cora", "citeseer", "wiki", "blog", "flickr"]
    assert all(info.name == name for name, info in datasets.available().items())


def test_load_reads_the_one_asked_for() -> None:
    try:
        dataset = datasets.load("wiki")
    except FileNotFoundError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert dataset.name == "wiki"


@pytest.mark.parametrize("name", ["cora", "citeseer", "wiki"])
def test_rows_and_self_loops_are_those_of_the_file(name: str) -> None:
    info = datasets.available()[name]
    try:
        edges, _ = datasets.fetch(name)
    except FileNotFoundError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    pairs = np.loadtxt(edges, dtype=np.int64)
    distinct = np.unique(np.sort(pairs, axis=1), axis=0)
    assert len(pairs) == info.paper_edges
    assert np.count_nonzero(distinct[:, 0] == distinct[:, 1]) == info.self_loops
    assert len(distinct) == info.edges + info.self_loops


@pytest.mark.parametrize("name", ["blog", "flickr"])
def test_matrices_are_symmetric_without_self_loops(name: str) -> None:
    info = datasets.available()[name]
    try:
        (path,) = datasets.fetch(name)
    except FileNotFoundError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    network = loadmat(path, variable_names=["Network"])["Network"]
    assert network.nnz == 2 * info.paper_edges == 2 * info.edges
    assert network.diagonal().sum() == info.self_loops == 0
    assert (network != network.T).nnz == 0


def test_every_file_has_a_pinned_address() -> None:
    for info in datasets.available().values():
        for file in info.files:
            assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.*", file.address)
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidValueError, match="'citeseer'"):
        datasets.load("corra")
    with pytest.raises(InvalidValueError, match="'citeseer'"):
        datasets.fetch("corra")
