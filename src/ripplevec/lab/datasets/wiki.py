"""Wiki: encyclopedia pages that link to each other, labeled by category."""

from __future__ import annotations

from ripplevec.lab.datasets.base import Dataset, Info, SourceFile
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.readers import read_text

ORIGIN = "https://raw.githubusercontent.com/thunlp/MMDW/22335fbfbf5c088045384397f5b71d1bbce54624/data"
INFO = Info(
    name="wiki",
    about="encyclopedia pages that link to each other, labeled by category",
    vertices=2_405,
    edges=11_596,
    self_loops=1_165,
    paper_edges=17_981,
    classes=17,
    files=(
        SourceFile(
            "Wiki_edgelist.txt",
            "3cdeb169eebca7bc59393da5b3aa030a3ccb7447379d10897df39fed7dde603a",
            f"{ORIGIN}/Edgelist",
        ),
        SourceFile(
            "Wiki_category.txt",
            "d85682653933417fad886e6471b7e031a3a492cc020c234fabbbb2e7f57aa172",
            f"{ORIGIN}/Category",
        ),
    ),
)


def load(progress: Progress | None = None) -> Dataset:
    """Read Wiki; it is downloaded where it is not here yet."""
    return read_text(INFO, progress)
