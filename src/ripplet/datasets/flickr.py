"""Flickr: photographers who follow each other, labelled by interest group."""

from __future__ import annotations

from ripplet.datasets.base import Dataset, Info, SourceFile
from ripplet.datasets.readers import read_matlab

ORIGIN = "github.com/xhuang31/AANE_Python at commit bbbd413ae87b2cd48585fdefd5bf0d7139d45135"
INFO = Info(
    name="flickr",
    about="photographers who follow each other, labelled by interest group",
    vertices=7_575,
    edges=239_738,
    classes=9,
    files=(SourceFile("Flickr.mat", "1493f3f261395b232dd37845beae9215c0abccc9d63902a3cc0af7fd4f0972cd", ORIGIN),),
)


def load() -> Dataset:
    """Read Flickr from the data folder."""
    return read_matlab(INFO)
