"""CiteSeer: computer-science papers that cite each other, labeled by field."""

from __future__ import annotations

from ripplevec.lab.datasets.base import Dataset, Info, SourceFile
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.readers import read_text

ORIGIN = "https://raw.githubusercontent.com/thunlp/MMDW/22335fbfbf5c088045384397f5b71d1bbce54624/data"
INFO = Info(
    name="citeseer",
    about="computer-science papers that cite each other, labeled by field",
    vertices=3_312,
    edges=4_551,
    self_loops=124,
    paper_edges=4_732,
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


def load(progress: Progress | None = None) -> Dataset:
    """Read CiteSeer; it is downloaded where it is not here yet."""
    return read_text(INFO, progress)
