"""The two formats in which the data sets are published."""

from __future__ import annotations

import numpy as np

from ripplevec.lab.datasets.base import Dataset, Info
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.files import find


def read_text(info: Info, progress: Progress | None = None) -> Dataset:
    """A data set of two text files: pairs of vertices, then vertex and class, two integers a line."""
    pairs, categories = (np.loadtxt(find(file, progress), dtype=np.int64, ndmin=2) for file in info.files)
    labels = np.empty(len(categories), np.int64)
    labels[categories[:, 0]] = categories[:, 1]
    return Dataset.of(info.name, pairs, labels)


def read_matlab(info: Info, progress: Progress | None = None) -> Dataset:
    """A data set of one MATLAB file: a sparse matrix `Network` and a column `Label`."""
    from scipy.io import loadmat

    (file,) = info.files
    content = loadmat(find(file, progress), variable_names=["Network", "Label"])
    return Dataset.of(info.name, np.column_stack(content["Network"].nonzero()), content["Label"].ravel())
