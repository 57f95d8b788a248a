"""Blog: bloggers who follow each other, labelled by interest."""

from __future__ import annotations

from ripplet.datasets.base import Dataset, Info, SourceFile
from ripplet.datasets.readers import read_matlab

ORIGIN = "github.com/xhuang31/AANE_Python at commit bbbd413ae87b2cd48585fdefd5bf0d7139d45135"
INFO = Info(
    name="blog",
    about="bloggers who follow each other, labelled by interest",
    vertices=5_196,
    edges=171_743,
    classes=6,
    files=(SourceFile("BlogCatalog.mat", "886e1d8dec043588247ef7188fe6459f2ba657b6b9211d73f255d28b42f06b0c", ORIGIN),),
)


def load() -> Dataset:
    """Read Blog from the data folder."""
    return read_matlab(INFO)
