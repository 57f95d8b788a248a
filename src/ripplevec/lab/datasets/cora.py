"""Cora: machine-learning papers that cite each other, labeled by topic."""

from __future__ import annotations

from ripplevec.lab.datasets.base import Dataset, Info, SourceFile
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.readers import read_text

ORIGIN = "https://raw.githubusercontent.com/thunlp/MMDW/22335fbfbf5c088045384397f5b71d1bbce54624/data"
INFO = Info(
    name="cora",
    about="machine-learning papers that cite each other, labeled by topic",
    vertices=2_708,
    edges=5_278,
    self_loops=0,
    paper_edges=5_429,
    classes=7,
    files=(
        SourceFile(
            "Cora_edgelist.txt",
            "f3991ff42aa13620ee689ed370caf988239b5f0b3c3f592a8ff7145cd246cc40",
            f"{ORIGIN}/Edgelist",
        ),
        SourceFile(
            "Cora_category.txt",
            "867336b6cc083a8793af84f8230850fadc2c2c02677e8064c3da1a339f6f6fb1",
            f"{ORIGIN}/Category",
        ),
    ),
)


def load(progress: Progress | None = None) -> Dataset:
    """Read Cora; it is downloaded where it is not here yet."""
    return read_text(INFO, progress)
