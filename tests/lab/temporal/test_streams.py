"""Timed streams from plain CSV files and from files in the format of the benchmark."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.temporal import load_stream, make_negatives


def test_csv_file_is_read_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "more/collegemsg").mkdir(parents=True)
    (tmp_path / "more/collegemsg/edges.csv").write_text("src,dst,time\n1,2,30\n3,4,10\n5,6,20\n7,8,10\n")
    stream = load_stream("collegemsg", tmp_path)
    assert list(zip(stream.src.tolist(), stream.dst.tolist(), stream.time.tolist(), strict=True)) == [
        (3, 4, 10),
        (7, 8, 10),
        (5, 6, 20),
        (1, 2, 30),
    ]
    assert stream.targets.tolist() == [2, 3, 4, 5, 6, 7, 8]


def write_wiki(folder: Path) -> None:
    """Write twenty events of users 0 and 1 with pages 0 and 1, numbered separately, and negatives of the test part."""
    lines = [f"{i % 2},{(i // 2) % 2},{i},0,0.5,0.25" for i in range(20)]
    (folder / "tgbl-wiki_edgelist_v2.csv").write_text("\n".join(["user,item,time,label,features", *lines]) + "\n")
    negatives = {(i % 2, 2 + (i // 2) % 2, i): np.array([9, 8]) for i in range(20)}
    (folder / "tgbl-wiki_test_ns_v2.pkl").write_bytes(pickle.dumps(negatives))


def test_benchmark_files_are_read_with_their_negatives(tmp_path: Path) -> None:
    write_wiki(tmp_path)
    stream = load_stream("tgbl-wiki", tmp_path)
    assert stream.src.tolist() == [i % 2 for i in range(20)]
    assert stream.dst.tolist() == [2 + (i // 2) % 2 for i in range(20)]
    assert [drawn.tolist() for drawn in make_negatives(stream, "test", 1)] == [[9, 8]] * (20 - stream.bounds()[1])
    assert make_negatives(stream, "val", 2)[0].size == 1  # not published: the other page, which the user knows


def test_text_ids_of_benchmark_files_are_numbered_by_first_mention(tmp_path: Path) -> None:
    (tmp_path / "tgbl-coin_edgelist_v2.csv").write_text("ts,src,dst\n1,b,a\n2,c,b\n3,a,d\n")
    stream = load_stream("tgbl-coin", tmp_path)
    assert (stream.src.tolist(), stream.dst.tolist(), stream.time.tolist()) == ([0, 2, 1], [1, 0, 3], [1, 2, 3])


def test_numeric_looking_ids_of_benchmark_files_stay_text(tmp_path: Path) -> None:
    (tmp_path / "tgbl-review_edgelist_v2.csv").write_text("ts,src,dst,w\n1,07,7,4.0\n2,7,8,5.0\n")
    stream = load_stream("tgbl-review", tmp_path)
    assert (stream.src.tolist(), stream.dst.tolist()) == ([0, 1], [1, 2])


def test_days_of_benchmark_files_become_seconds(tmp_path: Path) -> None:
    lines = "2019-01-01,EDDF,KJFK,DLH400,A343\n2019-01-02,KJFK,EDDF,,\n"
    (tmp_path / "tgbl-flight_edgelist_v2.csv").write_text(f"day,src,dst,callsign,typecode\n{lines}")
    assert load_stream("tgbl-flight", tmp_path).time.tolist() == [1546300800, 1546387200]


def test_comment_file_with_more_columns_is_read(tmp_path: Path) -> None:
    (tmp_path / "tgbl-comment_edgelist.csv").write_text("ts,src,dst,num_words,score\n5,ann,bob,12,1\n6,bob,ann,3,-2\n")
    stream = load_stream("tgbl-comment", tmp_path)
    assert (stream.src.tolist(), stream.dst.tolist(), stream.time.tolist()) == ([0, 1], [1, 0], [5, 6])


def test_negatives_written_by_numpy_scalars_are_read(tmp_path: Path) -> None:
    """py-tgb writes keys of NumPy scalars and targets as floats."""
    write_wiki(tmp_path)
    negatives = {(np.int64(i % 2), np.int64(2 + (i // 2) % 2), np.int64(i)): np.array([9.0]) for i in range(20)}
    (tmp_path / "tgbl-wiki_test_ns_v2.pkl").write_bytes(pickle.dumps(negatives))
    assert make_negatives(load_stream("tgbl-wiki", tmp_path), "test", 1)[0].tolist() == [9]


def test_pickle_with_anything_else_than_arrays_is_refused(tmp_path: Path) -> None:
    write_wiki(tmp_path)
    (tmp_path / "tgbl-wiki_test_ns_v2.pkl").write_bytes(pickle.dumps({"path": tmp_path}))
    with pytest.raises(pickle.UnpicklingError, match="expected NumPy arrays"):
        load_stream("tgbl-wiki", tmp_path)


def test_missing_files_and_unknown_names_raise(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"tgbl-wiki_edgelist_v2\.csv"):
        load_stream("tgbl-wiki", tmp_path)
    with pytest.raises(InvalidValueError, match="collegemsg"):
        load_stream("other", tmp_path)
