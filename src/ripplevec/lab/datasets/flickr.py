"""Flickr: photographers who follow each other, labeled by interest group."""

from __future__ import annotations

from ripplevec.lab.datasets.base import Dataset, Info, SourceFile
from ripplevec.lab.datasets.download import Progress
from ripplevec.lab.datasets.readers import read_matlab

ORIGIN = "https://raw.githubusercontent.com/xhuang31/AANE_Python/bbbd413ae87b2cd48585fdefd5bf0d7139d45135"
INFO = Info(
    name="flickr",
    about="photographers who follow each other, labeled by interest group",
    vertices=7_575,
    edges=239_738,
    self_loops=0,
    paper_edges=239_738,
    classes=9,
    files=(SourceFile("Flickr.mat", "1493f3f261395b232dd37845beae9215c0abccc9d63902a3cc0af7fd4f0972cd", ORIGIN),),
)


def load(progress: Progress | None = None) -> Dataset:
    """Read Flickr; it is downloaded where it is not here yet."""
    return read_matlab(INFO, progress)
