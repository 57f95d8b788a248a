"""Node property prediction of the Temporal Graph Benchmark: tgbn-trade and tgbn-genre, from given files.

A label of a vertex at a time is a vector of shares: of the partners of a country in the next year, or of the genres a
user listens to in the next week. Predictions are ranked by NDCG@10, the measure of the benchmark.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.lab.datasets.download import DATA_FOLDER_VARIABLE, MissingDataError
from ripplevec.lab.temporal.streams import SPLIT, Ids, number_by_first_mention, read_text_ids, to_seconds

NODE_STREAMS = ("tgbn-trade", "tgbn-genre")
"""Streams that are read from `NAME_edgelist.csv` and `NAME_node_labels.csv`: time, source, target and weight."""

GENRE_CLASSES = 513
"""Number of genres in tgbn-genre. Genres are vertices 0 … 512, users come after them, as in py-tgb."""

RANKED = 10
"""Length of the ranking that NDCG is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeLabels:
    """Labels in order of time: the share of a class in the label of a vertex at a time, one row per share."""

    time: Ids
    vertex: Ids
    label: Ids
    share: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NodePropertyStream:
    """Weighted events in order of time, and the labels of vertices."""

    name: str
    src: Ids
    dst: Ids
    time: Ids
    weight: NDArray[np.float64]
    classes: int
    labels: NodeLabels

    def split_times(self) -> tuple[float, float]:
        """Return the times after which the validation part and the test part begin."""
        validation, test = np.quantile(self.time, SPLIT)
        return float(validation), float(test)

    def label_vectors(self) -> Iterator[tuple[int, Ids, NDArray[np.float64]]]:
        """Yield, for each time with labels, the labeled vertices and their vectors of shares, one row per vertex."""
        labels = self.labels
        moments, first = np.unique(labels.time, return_index=True)
        for moment, begin, end in zip(moments.tolist(), first, [*first[1:], len(labels.time)], strict=True):
            vertices, row = np.unique(labels.vertex[begin:end], return_inverse=True)
            vectors = np.zeros((len(vertices), self.classes))
            vectors[row, labels.label[begin:end]] = labels.share[begin:end]
            yield moment, vertices, vectors


def load_node_stream(name: str, folder: str | os.PathLike[str] | None = None) -> NodePropertyStream:
    """Load a stream for node property prediction from the files of the benchmark.

    Parameters
    ----------
    name : str
        "tgbn-trade" or "tgbn-genre".
    folder : path, optional
        Folder with the files `NAME_edgelist.csv` and `NAME_node_labels.csv`; by default that named by RIPPLEVEC_DATA.

    Returns
    -------
    NodePropertyStream
        Events and labels, with vertices and classes numbered as in py-tgb.

    Raises
    ------
    InvalidValueError
        If the name is unknown, or a label names a vertex or class without an event.
    MissingDataError
        If a file is not there.
    """
    check_choice("name", name, NODE_STREAMS)
    root = Path(folder or os.environ.get(DATA_FOLDER_VARIABLE, "."))
    events, labels = root / f"{name}_edgelist.csv", root / f"{name}_node_labels.csv"
    for path in (events, labels):
        if not path.is_file():
            raise MissingDataError(
                f"{name}: expected {path.name} in {root}, found none. Set {DATA_FOLDER_VARIABLE} to the folder of the "
                f"files of the benchmark."
            )
    time, source, target, weight = (column.combine_chunks() for column in read_text_ids(events).columns[:4])
    if name == "tgbn-trade":
        numbers, vertices = number_by_first_mention(source, target)
        src, dst, names, classes = numbers[:, 0], numbers[:, 1], vertices, len(vertices)
    else:
        (users, vertices), (genres, names) = number_by_first_mention(source), number_by_first_mention(target)
        src, dst, classes = users[:, 0] + GENRE_CLASSES, genres[:, 0], GENRE_CLASSES
        vertices = {user: number + GENRE_CLASSES for user, number in vertices.items()}
    seconds, weights = to_seconds(time), weight.to_numpy(zero_copy_only=False).astype(np.float64)
    order = np.argsort(seconds, kind="stable")
    found = _read_labels(labels, vertices, names)
    return NodePropertyStream(name, src[order], dst[order], seconds[order], weights[order], classes, found)


def _read_labels(path: Path, vertices: dict[str, int], names: dict[str, int]) -> NodeLabels:
    time, vertex, label, share = (column.combine_chunks() for column in read_text_ids(path).columns[:4])
    seconds = to_seconds(time)
    numbers = [_find_numbers(path, column.to_pylist(), known) for column, known in ((vertex, vertices), (label, names))]
    order = np.argsort(seconds, kind="stable")
    shares = share.to_numpy(zero_copy_only=False).astype(np.float64)
    return NodeLabels(seconds[order], numbers[0][order], numbers[1][order], shares[order])


def _find_numbers(path: Path, ids: list[str], known: dict[str, int]) -> Ids:
    if missing := next((name for name in ids if name not in known), None):
        raise InvalidValueError.of(path.name, "vertices and classes of the events", repr(missing))
    return np.array([known[name] for name in ids], np.int64)


def compute_ndcg(true: NDArray[np.float64], predicted: NDArray[np.float64], k: int = RANKED) -> NDArray[np.float64]:
    """Return NDCG@k of each row: the discounted sum of true shares in the predicted order, relative to the best order.

    Equal predictions share their discounts, as in scikit-learn and py-tgb. A row without shares has 0.
    """
    discount = np.zeros(true.shape[1])
    discount[:k] = 1 / np.log2(np.arange(2, 2 + min(k, true.shape[1])))
    total = np.empty(len(true))
    for row, (gains, scores) in enumerate(zip(true, predicted, strict=True)):
        _, group, size = np.unique(-scores, return_inverse=True, return_counts=True)
        mean_gain = np.bincount(group, gains) / size
        bounds = np.concatenate([[0.0], discount.cumsum()])[np.concatenate([[0], size.cumsum()])]
        total[row] = mean_gain @ np.diff(bounds)
    best = -np.sort(-true, axis=1) @ discount
    return np.divide(total, best, out=np.zeros_like(total), where=best > 0)


def evaluate_forecast(
    stream: NodePropertyStream, part: Literal["val", "test"], *, rate: float = 1.0
) -> NDArray[np.float64]:
    """Return NDCG@10 of each label of a part, predicted from earlier labels of the same vertex.

    With a rate of 1 the prediction is the latest label ("persistent forecast" in the benchmark); with a smaller rate it
    is a moving average, in which the latest label has this weight.
    """
    validation, test = stream.split_times()
    first, last = (validation, test) if part == "val" else (test, np.inf)
    forecast: dict[int, NDArray[np.float64]] = {}
    found = []
    for moment, vertices, vectors in stream.label_vectors():
        if first < moment <= last:
            nothing = np.zeros(stream.classes)
            predicted = np.array([forecast.get(vertex, nothing) for vertex in vertices.tolist()])
            found.append(compute_ndcg(vectors, predicted))
        for vertex, vector in zip(vertices.tolist(), vectors, strict=True):
            forecast[vertex] = rate * vector + (1 - rate) * forecast.get(vertex, vector)
    return np.concatenate(found) if found else np.empty(0)
