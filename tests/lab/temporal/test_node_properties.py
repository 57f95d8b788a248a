"""Node property prediction: files of the benchmark, NDCG, and forecasts from earlier labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.temporal.node_properties import (
    GENRE_CLASSES,
    compute_ndcg,
    evaluate_forecast,
    load_node_stream,
)

COUNTRIES = ("France", "Peru", "07", "7")


def write_files(folder: Path, name: str, events: list[str], labels: list[str]) -> None:
    for kind, lines in (("edgelist", events), ("node_labels", labels)):
        (folder / f"{name}_{kind}.csv").write_text("\n".join(["ts,src,dst,weight", *lines]) + "\n")


@pytest.fixture
def trade(tmp_path: Path) -> Path:
    """Twenty years in which each of four countries trades with the two after it."""
    events, labels = [], []
    for year in range(2000, 2020):
        for number, country in enumerate(COUNTRIES):
            for step, share in ((1, 0.75), (2, 0.25)):
                partner = COUNTRIES[(number + step) % 4]
                events.append(f"{year},{country},{partner},{share}")
                labels.append(f"{year + 1},{country},{partner},{share}")
    write_files(tmp_path, "tgbn-trade", events, labels)
    return tmp_path


def test_trade_files_are_numbered_by_first_mention(trade: Path) -> None:
    stream = load_node_stream("tgbn-trade", trade)
    assert (stream.classes, len(stream.src)) == (4, 160)
    assert stream.src[:4].tolist() == [0, 0, 1, 1]
    assert stream.dst[:4].tolist() == [1, 2, 2, 3]  # "07" and "7" are different countries
    assert stream.weight[:2].tolist() == [0.75, 0.25]
    moment, vertices, vectors = next(stream.label_vectors())
    assert (moment, vertices.tolist()) == (2001, [0, 1, 2, 3])
    assert vectors[0].tolist() == [0, 0.75, 0.25, 0]


def test_genre_files_number_users_after_genres(tmp_path: Path) -> None:
    write_files(tmp_path, "tgbn-genre", ["20,u2,rock,1", "10,u1,jazz,2", "30,u1,rock,3"], ["40,u1,jazz,0.5"])
    stream = load_node_stream("tgbn-genre", tmp_path)
    assert stream.time.tolist() == [10, 20, 30]
    assert stream.src.tolist() == [GENRE_CLASSES + 1, GENRE_CLASSES, GENRE_CLASSES + 1]
    assert stream.dst.tolist() == [1, 0, 0]
    moment, vertices, vectors = next(stream.label_vectors())
    assert (moment, vertices.tolist(), vectors[0].nonzero()[0].tolist()) == (40, [GENRE_CLASSES + 1], [1])


@pytest.mark.parametrize("name", ["tgbn-trade", "tgbn-genre"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # py-tgb does not close files
def test_numbers_equal_those_of_py_tgb(trade: Path, name: str) -> None:
    pre_process = pytest.importorskip("tgb.utils.pre_process", reason="py-tgb is not installed")
    if name == "tgbn-genre":
        for kind in ("edgelist", "node_labels"):
            (trade / f"tgbn-trade_{kind}.csv").rename(trade / f"{name}_{kind}.csv")
        frame, _, ids, classes = pre_process.load_edgelist_datetime(str(trade / f"{name}_edgelist.csv"), GENRE_CLASSES)
        labels = pre_process.load_label_dict(str(trade / f"{name}_node_labels.csv"), ids, classes)
        width = len(classes)
    else:
        frame, _, ids = pre_process.load_edgelist_trade(str(trade / f"{name}_edgelist.csv"))
        labels = pre_process.load_trade_label_dict(str(trade / f"{name}_node_labels.csv"), ids)
        width = len(ids)
    stream = load_node_stream(name, trade)
    for found, column in ((stream.src, "u"), (stream.dst, "i"), (stream.time, "ts"), (stream.weight, "w")):
        assert found.tolist() == frame[column].tolist()
    for moment, vertices, vectors in stream.label_vectors():
        assert set(labels[moment]) == set(vertices.tolist())
        for vertex, vector in zip(vertices.tolist(), vectors, strict=True):
            assert vector[:width].tolist() == labels[moment][vertex].tolist()


def test_ndcg_equals_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    true, predicted = rng.random((30, 25)), rng.integers(0, 6, (30, 25)).astype(float)
    expected = [ndcg_score(true[i : i + 1], predicted[i : i + 1], k=10) for i in range(30)]
    np.testing.assert_allclose(compute_ndcg(true, predicted), expected)
    assert compute_ndcg(np.zeros((1, 4)), np.ones((1, 4))).tolist() == [0]


def test_forecast_of_constant_labels_is_perfect_and_of_unknown_vertices_is_not(trade: Path) -> None:
    stream = load_node_stream("tgbn-trade", trade)
    for rate in (1.0, 0.2):
        found = evaluate_forecast(stream, "test", rate=rate)
        np.testing.assert_allclose(found, 1)
        assert len(found) == 4 * sum(year + 1 > stream.split_times()[1] for year in range(2000, 2020))
    with (trade / "tgbn-trade_node_labels.csv").open("a") as file:
        file.write("2030,07,07,1\n")  # the only label that its history does not predict
    assert evaluate_forecast(load_node_stream("tgbn-trade", trade), "test").min() < 0.7


def test_missing_files_unknown_names_and_unknown_vertices_raise(trade: Path) -> None:
    with pytest.raises(MissingDataError, match=r"tgbn-genre_edgelist\.csv"):
        load_node_stream("tgbn-genre", trade)
    with pytest.raises(InvalidValueError, match="tgbn-trade"):
        load_node_stream("tgbn-other", trade)
    with (trade / "tgbn-trade_node_labels.csv").open("a") as file:
        file.write("2020,Atlantis,Peru,1\n")
    with pytest.raises(InvalidValueError, match="Atlantis"):
        load_node_stream("tgbn-trade", trade)
