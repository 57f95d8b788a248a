"""Tables of attributes in files, and their distribution over the batches that name the vertices."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripplevec import Batch, InvalidValueError
from ripplevec.batch import ids_to_list
from ripplevec.errors import FormatError
from ripplevec.io.readers.attribute_files import PendingAttributes, read_attribute_file

TEXTS = {
    "a.csv": "id,tag\nann,x\nbob,y\n",
    "a.jsonl": '{"id": "ann", "tag": "x"}\n{"id": "bob", "tag": "y"}\n',
}


@pytest.mark.parametrize("name", [*TEXTS, "a.parquet"])
def test_file_of_each_kind_has_the_same_rows(tmp_path, name):
    path = tmp_path / name
    if name in TEXTS:
        path.write_text(TEXTS[name])
    else:
        pq.write_table(pa.table({"id": ["ann", "bob"], "tag": ["x", "y"]}), path)
    rows = read_attribute_file(path)
    assert (ids_to_list(rows.ids), rows.kind) == (["ann", "bob"], "sparse")


def test_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "a.parquet").write_text("not a table")
    with pytest.raises(FormatError, match=r"a\.parquet: the attributes cannot be read"):
        read_attribute_file(tmp_path / "a.parquet")
    with pytest.raises(FormatError, match=r"missing\.csv: the attributes cannot be read"):
        read_attribute_file(tmp_path / "missing.csv")
    with pytest.raises(InvalidValueError, match="a file that ends in"):
        read_attribute_file(tmp_path / "a.xlsx")


def test_each_row_is_taken_once_with_the_first_batch_that_names_it(tmp_path):
    (tmp_path / "a.csv").write_text("id,tag\n1,x\n2,y\n3,x\n4,y\n")
    pending = PendingAttributes(read_attribute_file(tmp_path / "a.csv"))
    taken = [pending.take(Batch.of(*pair)) for pair in [([1, 1], [2, 9]), ([2], [1]), ([2], [3])]]
    assert [None if rows is None else sorted(ids_to_list(rows.ids)) for rows in taken] == [[1, 2], None, [3]]
    assert ids_to_list(pending.take_rest().ids) == [4]
    assert pending.take_rest() is None
