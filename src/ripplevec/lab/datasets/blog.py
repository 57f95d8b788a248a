"""Blog: bloggers who follow each other, labeled by interest."""

from __future__ import annotations

from ripplevec.lab.datasets.base import Dataset, Info, SourceFile
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.readers import read_matlab

ORIGIN = "https://raw.githubusercontent.com/xhuang31/AANE_Python/bbbd413ae87b2cd48585fdefd5bf0d7139d45135"
INFO = Info(
    name="blog",
    about="bloggers who follow each other, labeled by interest",
    vertices=5_196,
    edges=171_743,
    self_loops=0,
    paper_edges=171_743,
    classes=6,
    files=(SourceFile("BlogCatalog.mat", "886e1d8dec043588247ef7188fe6459f2ba657b6b9211d73f255d28b42f06b0c", ORIGIN),),
)


def load(progress: Progress | None = None) -> Dataset:
    """Read Blog; it is downloaded where it is not here yet."""
    return read_matlab(INFO, progress)
