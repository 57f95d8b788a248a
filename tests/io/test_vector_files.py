from __future__ import annotations

import json
import os
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.batch import id_column
from ripplevec.changes import Changes
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.atomic_file import atomic_write
from ripplevec.io.vector_files import ChangeLog, id_array, write_vectors

VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2) / 7


def changes(ids, removed=(), sequence=1, anchored=False):
    inside, arrived = VECTORS[: len(ids)], np.arange(len(ids)) == 0
    return Changes(id_column(ids), inside, lambda rows: rows, arrived, list(removed), sequence, anchored)


def read_back(path):
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return table["id"].to_pylist(), np.array(table["vector"].to_pylist(), np.float32)
    if path.suffix == ".csv":
        table = arrow_csv.read_csv(path)
        columns = [table[name].to_numpy() for name in table.column_names[1:]]
        return table["id"].to_pylist(), np.stack(columns, 1).astype(np.float32)
    with np.load(path) as file:
        return file["ids"].tolist(), file["vectors"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
@pytest.mark.parametrize("ids", [[3, -1, 2], ["a", "b,c", 'd"']])
def test_vectors_come_back(tmp_path, suffix, ids):
    path = tmp_path / f"vectors{suffix}"
    write_vectors(path, ids, VECTORS)
    found, vectors = read_back(path)
    assert found == ids
    np.testing.assert_array_equal(vectors, VECTORS)
    assert os.listdir(tmp_path) == [path.name]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3) | st.lists(st.text(), min_size=3, max_size=3))
def test_any_ids_come_back_from_parquet(tmp_path, ids):
    write_vectors(tmp_path / "v.parquet", ids, VECTORS)
    assert read_back(tmp_path / "v.parquet")[0] == ids


def test_no_vectors_is_a_file_too(tmp_path):
    write_vectors(tmp_path / "v.parquet", [], VECTORS[:0])
    assert pq.read_table(tmp_path / "v.parquet").num_rows == 0


def test_mixed_and_huge_ids_become_text():
    assert id_array([1, "a"]).to_pylist() == ["1", "a"]
    assert id_array([2**70, 1]).to_pylist() == [str(2**70), "1"]


def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with suppress(KeyboardInterrupt), atomic_write(path) as part:
        part.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    with atomic_write(tmp_path / "x") as part:
        part.write_text("new")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("name", ["v.xls", "v", "nowhere/v.parquet"])
def test_what_cannot_be_written(tmp_path, name):
    with pytest.raises(InvalidValueError, match="output: expected a file"):
        write_vectors(tmp_path / name, [1], VECTORS[:1])


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_the_log_holds_every_change_in_order(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    with ChangeLog(path, 2) as log:
        log.write(changes([5, 6]))
        log.write(changes([7], removed=[5], sequence=2, anchored=True))
        assert not path.exists()
    rows = (
        pq.read_table(path).to_pylist()
        if suffix == ".parquet"
        else list(map(json.loads, path.read_text().splitlines()))
    )
    assert [(row["sequence"], row["id"], row["arrived"], row["removed"], row["anchored"]) for row in rows] == [
        (1, 5, True, False, False),
        (1, 6, False, False, False),
        (2, 7, True, False, True),
        (2, 5, False, True, True),
    ]
    np.testing.assert_allclose(rows[1]["vector"], VECTORS[1])
    assert rows[3]["vector"] is None


def test_a_log_without_changes_has_its_columns(tmp_path):
    with ChangeLog(tmp_path / "log.parquet", 2):
        pass
    assert pq.read_schema(tmp_path / "log.parquet").names == [
        "sequence",
        "id",
        "arrived",
        "removed",
        "anchored",
        "vector",
    ]


def test_kinds_of_ids_in_the_log(tmp_path):
    with ChangeLog(tmp_path / "text.parquet", 2) as log:
        log.write(changes(["a"]))
        log.write(changes([1]))
    assert pq.read_table(tmp_path / "text.parquet")["id"].to_pylist() == ["a", "1"]


def test_text_after_integers_is_refused_and_no_log_appears(tmp_path):
    with suppress(FormatError), ChangeLog(tmp_path / "log.parquet", 2) as log:
        log.write(changes([1]))
        with pytest.raises(FormatError, match="--ids str"):
            log.write(changes(["a"]))
        raise FormatError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_others_read_the_vectors_of_parquet_as_vectors(tmp_path, kind):
    path = tmp_path / "v.parquet"
    given = VECTORS.astype(kind)
    write_vectors(path, ["a", "b", "c"], given)
    column = pl.read_parquet(path)["vector"]
    assert column.dtype == pl.Array({np.float32: pl.Float32, np.float16: pl.Float16}[kind], 2)
    assert np.array_equal(column.to_numpy(), given)
    stacked = np.stack(pd.read_parquet(path)["vector"])
    assert stacked.dtype == kind
    assert np.array_equal(stacked, given)


def test_halves_stay_halves_in_npz(tmp_path):
    write_vectors(tmp_path / "v.npz", [1, 2, 3], VECTORS.astype(np.float16))
    assert read_back(tmp_path / "v.npz")[1].dtype == np.float16
