"""CiteSeer: computer-science papers that cite each other, labelled by field."""

from __future__ import annotations

from ripplet.datasets.base import Dataset, Info, SourceFile
from ripplet.datasets.readers import read_text

ORIGIN = "github.com/thunlp/MMDW at commit 22335fbfbf5c088045384397f5b71d1bbce54624, folder data"
INFO = Info(
    name="citeseer",
    about="computer-science papers that cite each other, labelled by field",
    vertices=3_312,
    edges=4_551,
    classes=6,
    files=(
        SourceFile(
            "Citeseer_edgelist.txt",
            "e0fdf4ed2280cff94b5defd26bd20195ed832670f42b04bc82fa906c720093be",
            f"{ORIGIN}/Edgelist",
        ),
        SourceFile(
            "Citeseer_category.txt",
            "a103d4eba37eb47f6dbbb7bf624bfe16294bee4a9770c456063d0c366d811397",
            f"{ORIGIN}/Category",
        ),
    ),
)


def load() -> Dataset:
    """Read CiteSeer from the data folder."""
    return read_text(INFO)
