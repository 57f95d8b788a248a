from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_matrix

from ripplevec.lab.datasets.base import Info, SourceFile
from ripplevec.lab.datasets.readers import read_matlab, read_text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    return tmp_path


def info_of(*paths: Path) -> Info:
    files = (SourceFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest(), "here") for path in paths)
    return Info("tiny", "a tiny graph", 3, 2, 1, 4, 2, tuple(files))


def test_text_files_in_any_order_of_lines(folder: Path) -> None:
    edges, categories = folder / "edges.txt", folder / "categories.txt"
    edges.write_text("2\t1\n0\t1\n1\t2\n1\t1\n")
    categories.write_text("2\t7\n0\t5\n1\t6\n")
    dataset = read_text(info_of(edges, categories))
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert dataset.labels.tolist() == [5, 6, 7]
    assert dataset.name == "tiny"


def test_matlab_file_is_binarised(folder: Path) -> None:
    path = folder / "graph.mat"
    network = csc_matrix(np.array([[9.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
    savemat(path, {"Network": network, "Label": np.array([[1], [2], [2]])})
    dataset = read_matlab(info_of(path))
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert dataset.labels.tolist() == [1, 2, 2]
