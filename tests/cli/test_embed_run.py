from __future__ import annotations

import pytest

from ripplevec.cli.console import progress
from ripplevec.cli.embed_run import Job
from ripplevec.errors import FormatError, InvalidValueError


def job(tmp_path, text, **options):
    (tmp_path / "e.csv").write_text(text)
    return Job(str(tmp_path / "e.csv"), tmp_path / "v.parquet", {}, {"dim": 2}, **options)


def test_outputs_are_checked_before_anything_is_read(tmp_path):
    broken = job(tmp_path, "not an edge\n", changes=tmp_path / "nowhere" / "log.parquet")
    with pytest.raises(InvalidValueError, match="changes: expected a file in a folder that exists"), progress() as bars:
        broken.run(bars)


def test_a_failure_in_the_stream_leaves_no_file(tmp_path):
    start = tmp_path / "start.csv"
    start.write_text("1,2\n2,3\n")
    failing = job(tmp_path, "3,4\n4\n", start_edges=str(start), batch_size=1, changes=tmp_path / "log.parquet")
    with pytest.raises(FormatError, match="line 2"), progress() as bars:
        failing.run(bars)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "start.csv"]


def test_batches_have_the_size_asked_for(tmp_path):
    sizes = job(tmp_path, "".join(f"{i},{i + 1}\n" for i in range(10)), start=0.2, batch_size=3)
    with progress() as bars:
        first, rest, total = sizes._apart(bars)
    assert (len(first), [len(batch) for batch in rest], total) == (2, [3, 3, 2], 8)


def test_what_is_read_is_not_written_over(tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text("1,2\n2,3\n")
    same = Job(str(edges), tmp_path / "." / "e.csv", {}, {"dim": 2})
    with pytest.raises(InvalidValueError, match="output: expected another file"), progress() as bars:
        same.run(bars)
    assert edges.read_text() == "1,2\n2,3\n"
