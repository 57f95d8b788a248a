"""Data sets: the five published graphs of the paper, graphs from the user's files, and generated ones."""

from __future__ import annotations

from ripplevec.lab.datasets.dataset import Dataset, from_files
from ripplevec.lab.datasets.published import DatasetInfo, available, fetch, load

__all__ = ["Dataset", "DatasetInfo", "available", "fetch", "from_files", "load"]
