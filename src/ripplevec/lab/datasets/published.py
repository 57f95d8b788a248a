"""The five published data sets of the paper: their sizes, their source files and how to read them.

Cora, CiteSeer and Wiki are published as two text files each, Blog and Flickr as one MATLAB file each.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ripplevec.errors import check_choice
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.download import DownloadProgress, SourceFile, locate

_MMDW = "https://raw.githubusercontent.com/thunlp/MMDW/22335fbfbf5c088045384397f5b71d1bbce54624/data"
_AANE = "https://raw.githubusercontent.com/xhuang31/AANE_Python/bbbd413ae87b2cd48585fdefd5bf0d7139d45135"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """Facts about a published data set that are known without reading it.

    `edges` counts distinct pairs without self-loops, `self_loops` the vertices with one, `paper_edges` the rows of the
    file, which is the number in Table 2 of the paper. Vertices and classes are the same in both.
    """

    name: str
    about: str
    vertices: int
    edges: int
    self_loops: int
    paper_edges: int
    classes: int
    files: tuple[SourceFile, ...]


def _text_files(stem: str, edges_sha256: str, categories_sha256: str) -> tuple[SourceFile, SourceFile]:
    return (
        SourceFile(f"{stem}_edgelist.txt", edges_sha256, f"{_MMDW}/Edgelist"),
        SourceFile(f"{stem}_category.txt", categories_sha256, f"{_MMDW}/Category"),
    )


PUBLISHED: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            name="cora",
            about="machine-learning papers that cite each other, labeled by topic",
            vertices=2_708,
            edges=5_278,
            self_loops=0,
            paper_edges=5_429,
            classes=7,
            files=_text_files(
                "Cora",
                "f3991ff42aa13620ee689ed370caf988239b5f0b3c3f592a8ff7145cd246cc40",
                "867336b6cc083a8793af84f8230850fadc2c2c02677e8064c3da1a339f6f6fb1",
            ),
        ),
        DatasetInfo(
            name="citeseer",
            about="computer-science papers that cite each other, labeled by field",
            vertices=3_312,
            edges=4_551,
            self_loops=124,
            paper_edges=4_732,
            classes=6,
            files=_text_files(
                "Citeseer",
                "e0fdf4ed2280cff94b5defd26bd20195ed832670f42b04bc82fa906c720093be",
                "a103d4eba37eb47f6dbbb7bf624bfe16294bee4a9770c456063d0c366d811397",
            ),
        ),
        DatasetInfo(
            name="wiki",
            about="encyclopedia pages that link to each other, labeled by category",
            vertices=2_405,
            edges=11_596,
            self_loops=1_165,
            paper_edges=17_981,
            classes=17,
            files=_text_files(
                "Wiki",
                "3cdeb169eebca7bc59393da5b3aa030a3ccb7447379d10897df39fed7dde603a",
                "d85682653933417fad886e6471b7e031a3a492cc020c234fabbbb2e7f57aa172",
            ),
        ),
        DatasetInfo(
            name="blog",
            about="bloggers who follow each other, labeled by interest",
            vertices=5_196,
            edges=171_743,
            self_loops=0,
            paper_edges=171_743,
            classes=6,
            files=(
                SourceFile(
                    "BlogCatalog.mat", "886e1d8dec043588247ef7188fe6459f2ba657b6b9211d73f255d28b42f06b0c", _AANE
                ),
            ),
        ),
        DatasetInfo(
            name="flickr",
            about="photographers who follow each other, labeled by interest group",
            vertices=7_575,
            edges=239_738,
            self_loops=0,
            paper_edges=239_738,
            classes=9,
            files=(
                SourceFile("Flickr.mat", "1493f3f261395b232dd37845beae9215c0abccc9d63902a3cc0af7fd4f0972cd", _AANE),
            ),
        ),
    )
}


def available() -> dict[str, DatasetInfo]:
    """List the published data sets without reading them.

    Returns
    -------
    dict of str to DatasetInfo
        Sizes and source files by data set name.

    Examples
    --------
    >>> from ripplevec.lab import datasets
    >>> list(datasets.available())
    ['cora', 'citeseer', 'wiki', 'blog', 'flickr']
    >>> datasets.available()["cora"].vertices
    2708
    """
    return dict(PUBLISHED)


def load(name: str, progress: DownloadProgress | None = None) -> Dataset:
    """Read a published data set; download its files first if they are not on this machine.

    Parameters
    ----------
    name : str
        One of the names that `available` lists.
    progress : callable, optional
        Called with file name, bytes received and total bytes (or None) while a file is downloaded.

    Returns
    -------
    Dataset
        The graph and its labels.

    Raises
    ------
    InvalidValueError
        If there is no data set of this name.
    MissingDataError
        If a file is neither on this machine nor downloadable. Put it into a folder and set RIPPLEVEC_DATA to that
        folder.

    Examples
    --------
    >>> from ripplevec.lab import datasets
    >>> datasets.load("cora").vertices  # doctest: +SKIP
    2708
    """
    check_choice("name", name, PUBLISHED)
    info = PUBLISHED[name]
    return read_matlab(info, progress) if len(info.files) == 1 else read_text(info, progress)


def fetch(name: str, progress: DownloadProgress | None = None) -> list[Path]:
    """Download the files of a published data set unless they are on this machine; return their paths."""
    check_choice("name", name, PUBLISHED)
    return [locate(file, progress) for file in PUBLISHED[name].files]


def read_text(info: DatasetInfo, progress: DownloadProgress | None = None) -> Dataset:
    """Read a data set of two text files: vertex pairs, then vertex and class, two integers per line."""
    pairs, categories = (np.loadtxt(locate(file, progress), dtype=np.int64, ndmin=2) for file in info.files)
    labels = np.empty(len(categories), np.int64)
    labels[categories[:, 0]] = categories[:, 1]
    return Dataset.from_pairs(info.name, pairs, labels)


def read_matlab(info: DatasetInfo, progress: DownloadProgress | None = None) -> Dataset:
    """Read a data set of one MATLAB file: a sparse matrix `Network` and a column `Label`."""
    from scipy.io import loadmat

    (file,) = info.files
    content = loadmat(locate(file, progress), variable_names=["Network", "Label"])
    return Dataset.from_pairs(info.name, np.column_stack(content["Network"].nonzero()), content["Label"].ravel())
