"""Timed streams: the files of the Temporal Graph Benchmark, or plain CSV files with the same events."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as csv
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.download import DATA_FOLDER_VARIABLE, MissingDataError

Ids = NDArray[np.int64]
Negatives = Mapping[tuple[int, int, int], Ids]
"""Negative targets of each event (source, target, time)."""

SPLIT = (0.7, 0.85)
"""Quantiles of time at which validation and test begin."""

CSV_STREAMS = {"tgbl-wiki": "wikipedia_jodie", "collegemsg": "collegemsg"}
"""Folders, in the data folder or its subfolder `more`, of plain CSV files with the columns src, dst and time."""

TGB_STREAMS = ("tgbl-wiki", "tgbl-review", "tgbl-coin", "tgbl-comment", "tgbl-flight")
"""Streams that are also read from the files of the benchmark, `NAME_edgelist_v2.csv` or `NAME_edgelist.csv`."""

BIPARTITE_TGB_STREAMS = ("tgbl-wiki",)
"""Streams whose sources and targets are numbered separately in the files of the benchmark."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedStream:
    """Events in order of time: source, target and time of each."""

    name: str
    src: Ids
    dst: Ids
    time: Ids
    published_negatives: Mapping[str, Negatives] = field(default_factory=dict)  # by part: "val" or "test"

    @property
    def targets(self) -> Ids:
        """All possible targets: the whole range of ids from the smallest target to the largest, as in the benchmark."""
        return np.arange(self.dst.min(), self.dst.max() + 1)

    def bounds(self) -> tuple[int, int]:
        """Return the positions of the first event of the validation part and of the test part."""
        validation, test = np.quantile(self.time, SPLIT)
        first = np.searchsorted(self.time, [validation, test], side="right")
        return int(first[0]), int(first[1])


def load_stream(name: str, folder: str | os.PathLike[str] | None = None) -> TimedStream:
    """Load a timed stream.

    Parameters
    ----------
    name : str
        "tgbl-wiki", "collegemsg", or another stream of the benchmark whose files are given.
    folder : path, optional
        Folder with the files of the benchmark, or with folders of CSV files; by default that named by RIPPLEVEC_DATA.

    Returns
    -------
    TimedStream
        The events; with the published negatives if they are in the folder.

    Raises
    ------
    MissingDataError
        If the files are not there.
    """
    if name not in (*TGB_STREAMS, *CSV_STREAMS):
        raise InvalidValueError.of("name", "one of " + ", ".join(dict.fromkeys((*TGB_STREAMS, *CSV_STREAMS))), name)
    root = Path(folder or os.environ.get(DATA_FOLDER_VARIABLE, "."))
    for version in ("_v2", ""):
        path = root / f"{name}_edgelist{version}.csv"
        if path.is_file():
            return _read_benchmark_files(name, path, version)
    for path in (root / part / CSV_STREAMS.get(name, name) / "edges.csv" for part in ("", "more")):
        if path.is_file():
            return _sort_by_time(name, *(column.to_numpy() for column in csv.read_csv(path).select([0, 1, 2])))
    raise MissingDataError(
        f"{name}: expected {name}_edgelist_v2.csv or {CSV_STREAMS.get(name, name)}/edges.csv in {root}, found neither. "
        f"Set {DATA_FOLDER_VARIABLE} to the folder that holds them."
    )


def _read_benchmark_files(name: str, path: Path, version: str) -> TimedStream:
    # The header of tgbl-wiki has fewer columns than the rows.
    table = csv.read_csv(path, csv.ReadOptions(skip_rows=1, autogenerate_column_names=True))
    first, second, third = (table.column(i).combine_chunks() for i in range(3))
    if name in BIPARTITE_TGB_STREAMS:
        src, dst, time = first.to_numpy(), second.to_numpy() + first.to_numpy().max() + 1, third.to_numpy()
    else:  # time first; vertices are text, numbered in the order of their first mention
        time = first.to_numpy()
        ends = np.column_stack([second.to_pylist(), third.to_pylist()]).ravel()
        _, position, code = np.unique(ends, return_index=True, return_inverse=True)
        src, dst = np.argsort(np.argsort(position))[code].reshape(-1, 2).T
    stream = _sort_by_time(name, src, dst, time)
    negatives = {}
    for part in ("val", "test"):
        file = path.with_name(f"{name}_{part}_ns{version}.pkl")
        if file.is_file():
            with file.open("rb") as opened:
                negatives[part] = _NegativesReader(opened).load()
    return TimedStream(name, stream.src, stream.dst, stream.time, negatives)


def _sort_by_time(name: str, src: NDArray[Any], dst: NDArray[Any], time: NDArray[Any]) -> TimedStream:
    order = np.argsort(time, kind="stable")
    return TimedStream(name, *[column[order].astype(np.int64) for column in (src, dst, time)])  # type: ignore[arg-type]


class _NegativesReader(pickle.Unpickler):
    """Reads a dictionary of NumPy arrays, and refuses everything else that a pickle may contain."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of NumPy; raise for any other."""
        if module.partition(".")[0] != "numpy" or name not in ("_reconstruct", "ndarray", "dtype", "scalar", "int64"):
            raise pickle.UnpicklingError(f"expected NumPy arrays, got {module}.{name}")
        return super().find_class(module, name)
