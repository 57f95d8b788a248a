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
from gensim.models import KeyedVectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripplevec.batch import id_column
from ripplevec.changes import Changes
from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.io.vector_files import VECTOR_FILE_SUFFIXES, ChangeLog, ids_to_arrow, write_vectors

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
def test_write_vectors_then_read_returns_same_vectors(tmp_path, suffix, ids):
    path = tmp_path / f"vectors{suffix}"
    write_vectors(path, ids, VECTORS)
    read_ids, vectors = read_back(path)
    assert read_ids == ids
    np.testing.assert_array_equal(vectors, VECTORS)
    assert os.listdir(tmp_path) == [path.name]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3) | st.lists(st.text(), min_size=3, max_size=3))
def test_write_vectors_to_parquet_keeps_any_ids(tmp_path, ids):
    write_vectors(tmp_path / "v.parquet", ids, VECTORS)
    assert read_back(tmp_path / "v.parquet")[0] == ids


def test_write_vectors_without_rows_writes_empty_file(tmp_path):
    write_vectors(tmp_path / "v.parquet", [], VECTORS[:0])
    assert pq.read_table(tmp_path / "v.parquet").num_rows == 0


@pytest.mark.parametrize("suffix", VECTOR_FILE_SUFFIXES)
def test_write_vectors_with_another_number_of_ids_raises_and_writes_nothing(tmp_path, suffix):
    for vectors in (VECTORS[:3], VECTORS[0]):
        with pytest.raises(InvalidValueError, match="one row per id"):
            write_vectors(tmp_path / f"v{suffix}", [1, 2], vectors)
    assert not list(tmp_path.iterdir())


def test_ids_to_arrow_of_mixed_or_huge_ids_returns_text():
    assert ids_to_arrow([1, "a"]).to_pylist() == ["1", "a"]
    assert ids_to_arrow([2**70, 1]).to_pylist() == [str(2**70), "1"]


@pytest.mark.parametrize("name", ["v.xls", "v", "nowhere/v.parquet"])
def test_write_vectors_to_invalid_path_raises(tmp_path, name):
    with pytest.raises(InvalidValueError, match="output: expected a file"):
        write_vectors(tmp_path / name, [1], VECTORS[:1])


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_change_log_contains_every_change_in_order(tmp_path, suffix):
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


def test_change_log_without_changes_has_all_columns(tmp_path):
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


def test_change_log_of_text_ids_casts_later_integers(tmp_path):
    with ChangeLog(tmp_path / "text.parquet", 2) as log:
        log.write(changes(["a"]))
        log.write(changes([1]))
    assert pq.read_table(tmp_path / "text.parquet")["id"].to_pylist() == ["a", "1"]


def test_change_log_with_text_after_integers_raises_and_leaves_no_file(tmp_path):
    with suppress(FormatError), ChangeLog(tmp_path / "log.parquet", 2) as log:
        log.write(changes([1]))
        with pytest.raises(FormatError, match="ids='str', --ids str"):
            log.write(changes(["a"]))
        raise FormatError
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_write_vectors_to_parquet_is_read_as_vectors_by_other_libraries(tmp_path, kind):
    path = tmp_path / "v.parquet"
    given = VECTORS.astype(kind)
    write_vectors(path, ["a", "b", "c"], given)
    column = pl.read_parquet(path)["vector"]
    assert column.dtype == pl.Array({np.float32: pl.Float32, np.float16: pl.Float16}[kind], 2)
    assert np.array_equal(column.to_numpy(), given)
    stacked = np.stack(pd.read_parquet(path)["vector"])
    assert stacked.dtype == kind
    assert np.array_equal(stacked, given)


def test_write_vectors_to_npz_keeps_float16(tmp_path):
    write_vectors(tmp_path / "v.npz", [1, 2, 3], VECTORS.astype(np.float16))
    assert read_back(tmp_path / "v.npz")[1].dtype == np.float16


WORD_VECTORS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32) * np.logspace(-20, 20, 5)[
    :, None
].astype("f4")
WORD_IDS = ["ann", 7, "日本", '"quoted",', "-1"]


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_write_vectors_as_word2vec_is_read_exactly_by_gensim(tmp_path, suffix):
    path = tmp_path / f"vectors{suffix}"
    write_vectors(path, WORD_IDS, WORD_VECTORS)
    keyed_vectors = KeyedVectors.load_word2vec_format(path, binary=suffix == ".bin")
    assert keyed_vectors.index_to_key == [str(name) for name in WORD_IDS]
    assert np.array_equal(keyed_vectors.vectors, WORD_VECTORS)


def test_write_vectors_as_word2vec_text_writes_expected_lines(tmp_path):
    write_vectors(tmp_path / "v.txt", ["a", 2], np.array([[0.5, -1], [0, 3]], np.float32))
    assert (tmp_path / "v.txt").read_text() == "2 2\na 0.5 -1\n2 0 3\n"


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
def test_write_vectors_as_word2vec_matches_gensim_bytes(tmp_path, suffix):
    """Newlines after binary vectors, which word2vec writes and gensim does not, are not compared."""
    keyed_vectors = KeyedVectors(2)
    keyed_vectors.add_vectors(["a", "b"], np.array([[0.5, -1.5], [0.25, 3.5]], np.float32))
    keyed_vectors.save_word2vec_format(tmp_path / f"gensim{suffix}", binary=suffix == ".bin")
    write_vectors(tmp_path / f"ripplevec{suffix}", ["a", "b"], keyed_vectors.vectors)
    ours, expected = ((tmp_path / f"{writer}{suffix}").read_bytes() for writer in ("ripplevec", "gensim"))
    assert ours == expected if suffix == ".txt" else ours.replace(b"\n", b"") == expected.replace(b"\n", b"")


@pytest.mark.parametrize("suffix", [".txt", ".bin"])
@pytest.mark.parametrize("name", ["a b", "", " a", "a\n", "a\u00a0b"])
def test_write_vectors_as_word2vec_with_blank_in_id_raises(tmp_path, suffix, name):
    with pytest.raises(InvalidValueError, match="ids: expected ids without blanks"):
        write_vectors(tmp_path / f"v{suffix}", ["x", name], np.zeros((2, 2), np.float32))
    assert not list(tmp_path.iterdir())


def test_write_vectors_as_word2vec_with_equal_texts_raises(tmp_path):
    with pytest.raises(InvalidValueError, match="both 7 and '7'"):
        write_vectors(tmp_path / "v.txt", [7, "x", "7"], np.zeros((3, 2), np.float32))
