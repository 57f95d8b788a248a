from __future__ import annotations

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import csc_matrix

from ripplevec.errors import InvalidValueError
from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError, SourceFile
from ripplevec.lab.datasets.published import DatasetInfo, read_matlab, read_text


def test_available_lists_five_data_sets_by_name() -> None:
    assert list(datasets.available()) == ["cora", "citeseer", "wiki", "blog", "flickr"]
    assert all(info.name == name for name, info in datasets.available().items())


@pytest.mark.parametrize("name", ["cora", "citeseer", "wiki"])
def test_text_data_set_info_matches_edge_file(name: str) -> None:
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
def test_matlab_data_set_is_symmetric_without_self_loops(name: str) -> None:
    info = datasets.available()[name]
    try:
        (path,) = datasets.fetch(name)
    except FileNotFoundError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    network = loadmat(path, variable_names=["Network"])["Network"]
    assert network.nnz == 2 * info.paper_edges == 2 * info.edges
    assert network.diagonal().sum() == info.self_loops == 0
    assert (network != network.T).nnz == 0


def test_source_files_have_pinned_addresses() -> None:
    for info in datasets.available().values():
        for file in info.files:
            assert re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/.*", file.address)
            assert re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_load_with_unknown_name_lists_known_names() -> None:
    with pytest.raises(InvalidValueError, match="'citeseer'"):
        datasets.load("corra")
    with pytest.raises(InvalidValueError, match="'citeseer'"):
        datasets.fetch("corra")


@pytest.mark.parametrize(
    ("name", "vertices", "edges", "classes"),
    [
        ("cora", 2_708, 5_278, 7),
        ("citeseer", 3_312, 4_675 - 124, 6),
        ("wiki", 2_405, 12_761 - 1_165, 17),
        ("blog", 5_196, 171_743, 6),
        ("flickr", 7_575, 239_738, 9),
    ],
)
def test_load_counts_agree_with_published_ones(name: str, vertices: int, edges: int, classes: int) -> None:
    try:
        dataset = datasets.load(name)
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    assert (dataset.name, dataset.vertices, len(dataset.edges), dataset.classes) == (name, vertices, edges, classes)
    info = datasets.available()[name]
    assert (info.vertices, info.edges, info.classes) == (vertices, edges, classes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    return tmp_path


def info_of(*paths: Path) -> DatasetInfo:
    files = (SourceFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), "here") for path in paths)
    return DatasetInfo("tiny", "a tiny graph", 3, 2, 1, 4, 2, tuple(files))


def test_read_text_accepts_any_line_order(folder: Path) -> None:
    edges, categories = folder / "edges.txt", folder / "categories.txt"
    edges.write_text("2\t1\n0\t1\n1\t2\n1\t1\n")
    categories.write_text("2\t7\n0\t5\n1\t6\n")
    dataset = read_text(info_of(edges, categories))
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert dataset.labels.tolist() == [5, 6, 7]
    assert dataset.name == "tiny"


def test_read_matlab_ignores_weights(folder: Path) -> None:
    path = folder / "graph.mat"
    network = csc_matrix(np.array([[9.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
    savemat(path, {"Network": network, "Label": np.array([[1], [2], [2]])})
    dataset = read_matlab(info_of(path))
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert dataset.labels.tolist() == [1, 2, 2]
