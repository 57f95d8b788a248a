from __future__ import annotations

import pytest

from ripplevec import Embedder, load
from ripplevec.cli.console import show_progress
from ripplevec.cli.embed_run import EmbedJob
from ripplevec.errors import FormatError, InvalidValueError


def create_job(tmp_path, text, **options):
    (tmp_path / "e.csv").write_text(text)
    return EmbedJob(str(tmp_path / "e.csv"), tmp_path / "v.parquet", {}, {"dim": 2}, **options)


def test_embed_job_checks_output_paths_before_reading(tmp_path):
    broken = create_job(tmp_path, "not an edge\n", changes=tmp_path / "nowhere" / "log.parquet")
    with (
        pytest.raises(InvalidValueError, match="changes: expected a file in a folder that exists"),
        show_progress() as bars,
    ):
        broken.run(bars)


def test_embed_job_failing_in_the_stream_leaves_no_file(tmp_path):
    start = tmp_path / "start.csv"
    start.write_text("1,2\n2,3\n")
    failing = create_job(tmp_path, "3,4\n4\n", start_edges=str(start), batch_size=1, changes=tmp_path / "log.parquet")
    with pytest.raises(FormatError, match="line 2"), show_progress() as bars:
        failing.run(bars)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.csv", "start.csv"]


def test_embed_job_splits_edges_into_batches_of_the_given_size(tmp_path, monkeypatch):
    sizes = {"fit": [], "partial_fit": []}

    def recording(name, method):
        return lambda model, edges, **options: (sizes[name].append(len(edges)), method(model, edges, **options))[1]

    for name in sizes:
        monkeypatch.setattr(Embedder, name, recording(name, getattr(Embedder, name)))
    job = create_job(tmp_path, "".join(f"{i},{i + 1}\n" for i in range(10)), start=0.2, batch_size=3)
    with show_progress() as bars:
        summary = job.run(bars)
        assert [(task.total, task.completed) for task in bars.tasks][-1] == (8, 8)
    assert sizes == {"fit": [2], "partial_fit": [3, 3, 2]}
    assert (summary["start_rows"], summary["streamed_rows"]) == (2, 8)


def test_embed_job_rejects_input_file_as_output(tmp_path):
    edges = tmp_path / "e.csv"
    edges.write_text("1,2\n2,3\n")
    same = EmbedJob(str(edges), tmp_path / "." / "e.csv", {}, {"dim": 2})
    with (
        pytest.raises(InvalidValueError, match="output: expected a file other than the input files"),
        show_progress() as bars,
    ):
        same.run(bars)
    assert edges.read_text() == "1,2\n2,3\n"


def test_embed_job_with_attributes_places_vertices_without_edges(tmp_path):
    (tmp_path / "a.csv").write_text("id,tag\n" + "".join(f"{i},t{i % 2}\n" for i in range(14)))
    job = create_job(tmp_path, "".join(f"{i},{i + 1}\n" for i in range(9)), start=0.5, batch_size=2)
    job.attributes, job.save = tmp_path / "a.csv", tmp_path / "model"
    with show_progress() as bars:
        summary = job.run(bars)
    model = load(tmp_path / "model")
    assert summary["vertices"] == len(model) == 14
    assert model.diagnostics()["attributed"] == 14
    assert model[13].any()


def test_embed_job_with_attributes_of_other_vertices_raises(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "x", "size": 1.5}\n{"id": "y", "size": 2.5}\n')
    job = create_job(tmp_path, "1,2\n2,3\n")
    job.attributes = tmp_path / "a.jsonl"
    with pytest.raises(InvalidValueError, match="a table with ids of the edges"), show_progress() as bars:
        job.run(bars)
    job.attributes = tmp_path / "a.xlsx"
    with pytest.raises(InvalidValueError, match="a file that ends in"), show_progress() as bars:
        job.run(bars)
