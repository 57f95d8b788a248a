"""Timed streams: the files of the Temporal Graph Benchmark, or plain CSV files with the same events."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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
    if name in BIPARTITE_TGB_STREAMS:  # the header has fewer columns than the rows
        table = csv.read_csv(path, csv.ReadOptions(skip_rows=1, autogenerate_column_names=True))
        src, dst, time = (table.column(i).to_numpy() for i in range(3))
        dst = dst + src.max() + 1
    else:
        time, sources, targets = (column.combine_chunks() for column in read_text_ids(path).columns[:3])
        src, dst = number_by_first_mention(sources, targets)[0].T
        time = to_seconds(time)
    stream = _sort_by_time(name, src, dst, time)
    negatives = {}
    for part in ("val", "test"):
        file = path.with_name(f"{name}_{part}_ns{version}.pkl")
        if file.is_file():
            with file.open("rb") as opened:
                negatives[part] = _NegativesReader(opened).load()
    return TimedStream(name, stream.src, stream.dst, stream.time, negatives)


def read_text_ids(path: Path) -> pa.Table:
    """Read a file of the benchmark whose first columns are time, source and target; ids are text, as in py-tgb."""
    options = csv.ReadOptions(skip_rows=1, autogenerate_column_names=True)
    return csv.read_csv(
        path, options, convert_options=csv.ConvertOptions(column_types={"f1": pa.string(), "f2": pa.string()})
    )


def number_by_first_mention(*columns: pa.Array) -> tuple[Ids, dict[str, int]]:
    """Number text ids in the order in which the rows mention them first; return the numbers, and those of all ids."""
    mentions = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns]).ravel()
    encoded = pa.array(mentions, pa.string()).dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64).reshape(-1, len(columns))
    return numbers, {name: number for number, name in enumerate(encoded.dictionary.to_pylist())}


def to_seconds(time: pa.Array) -> NDArray[np.int64]:
    """Return times in seconds; days, as in older versions of tgbl-flight, begin at midnight UTC."""
    if pa.types.is_date(time.type) or pa.types.is_timestamp(time.type):
        time = time.cast(pa.timestamp("s"))
    return time.to_numpy(zero_copy_only=False).astype(np.int64)


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
