"""Graphs whose vertices have any number of labels: the published data sets, and further ones from local files.

The further graphs are read from the folder `more` of the data folder (RIPPLEVEC_DATA): `edges.csv` with two columns of
vertices, and `labels.csv` with one row per vertex and label. They are not downloaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ripplevec.errors import check_choice
from ripplevec.lab.datasets.dataset import Dataset
from ripplevec.lab.datasets.download import DATA_FOLDER_VARIABLE, MissingDataError
from ripplevec.lab.datasets.published import PUBLISHED, load

LOCAL_GRAPHS = {
    "email_eu_core": "mails within a research institute, labeled by department",
    "lastfm_asia": "users of a music service, labeled by country",
    "ppi_3890": "proteins that interact, with several labels each",
    "wikipedia_pos_4777": "words that occur together, with parts of speech as labels",
}
"""Graphs that are read from local files, and what they are."""


@dataclass(frozen=True, slots=True, eq=False)
class MultiLabelGraph:
    """An undirected graph without self-loops, and which labels each vertex has (vertices × classes)."""

    name: str
    edges: NDArray[np.int64]
    labels: NDArray[np.bool_]

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.labels)

    def adjacency(self) -> csr_array:
        """Return the symmetric adjacency matrix of zeros and ones, in float64."""
        return Dataset(self.name, self.edges, np.zeros(self.vertices, np.int64), range(self.vertices)).adjacency()


def load_multilabel(name: str) -> MultiLabelGraph:
    """Read a published data set, or a graph of the folder `more`.

    Raises `MissingDataError` if its files are not on this machine.
    """
    check_choice("name", name, [*PUBLISHED, *LOCAL_GRAPHS])
    if name in PUBLISHED:
        data = load(name)
        _, codes = np.unique(data.labels, return_inverse=True)
        return MultiLabelGraph(name, data.edges, _to_matrix(np.arange(data.vertices), codes, data.vertices))
    folder = Path(os.environ.get(DATA_FOLDER_VARIABLE, "")) / "more" / name
    if not (folder / "edges.csv").is_file():
        raise MissingDataError(f"{name}: expected {folder / 'edges.csv'}. Set {DATA_FOLDER_VARIABLE} to its folder.")
    return _read_folder(name, folder)


def _read_folder(name: str, folder: Path) -> MultiLabelGraph:
    ends = np.loadtxt(folder / "edges.csv", np.int64, delimiter=",", skiprows=1, usecols=(0, 1), ndmin=2)
    rows = np.loadtxt(folder / "labels.csv", str, delimiter=",", skiprows=1, ndmin=2)
    owners = rows[:, 0].astype(np.int64)
    names = np.unique(np.concatenate([ends.ravel(), owners]))
    vertices, (_, codes) = np.searchsorted(names, owners), np.unique(rows[:, 1], return_inverse=True)
    plain = Dataset.from_pairs(name, np.searchsorted(names, ends), np.zeros(names.size, np.int64))
    return MultiLabelGraph(name, plain.edges, _to_matrix(vertices, codes, names.size))


def _to_matrix(vertices: NDArray[np.int64], codes: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    labels = np.zeros((count, int(codes.max(initial=-1)) + 1), np.bool_)
    labels[vertices, codes] = True
    return labels
