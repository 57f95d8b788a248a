from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ripplevec import load
from ripplevec.cli.main import ExitCode, app, run
from ripplevec.errors import FormatError, SelfLoopWarning
from ripplevec.lab.datasets.synthetic import planted_partition


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    rng = np.random.default_rng(0)
    pairs = {(int(rng.integers(i)), i) for i in range(1, 60) for _ in range(3)}
    path.write_text("".join(f"{u},{v}\n" for u, v in sorted(pairs, key=lambda pair: pair[::-1])))
    return path


def invoke(*arguments, **options):
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False, **options)


def test_embed_json_writes_vectors_and_prints_summary(tmp_path, edges):
    output = tmp_path / "vectors.parquet"
    done = invoke("embed", edges, "-o", output, "--dim", 8, "--batch-size", 20, "--json")
    summary = json.loads(done.stdout)
    total = len(edges.read_text().splitlines())
    table = pq.read_table(output)
    assert sorted(table["id"].to_pylist()) == list(range(60))
    assert table.schema.field("vector").type.list_size == 8
    assert summary["vertices"] == 60
    assert summary["edges"] == total
    assert summary["start_rows"] == round(0.3 * total)


def test_embed_prints_summary_on_standard_error(tmp_path, edges):
    done = invoke("embed", edges, "-o", tmp_path / "v.npz", "--dim", 4)
    assert done.stdout == ""
    assert "60 vertices" in done.stderr
    assert "4 dimensions" in done.stderr


def test_embed_options_reach_the_model(tmp_path, edges):
    def vectors(*options):
        invoke("embed", edges, "-o", tmp_path / "v.npz", "--dim", 4, *options)
        with np.load(tmp_path / "v.npz") as file:
            return file["vectors"]

    default = vectors()
    np.testing.assert_array_equal(default, vectors("--seed", 0, "--threads", 2))
    assert np.abs(default - vectors("--rule", "paper", "--set", "on_empty=zero")).max() > 0.01


def test_embed_with_half_life_and_expiry_drops_old_edges(tmp_path):
    path = tmp_path / "edges.csv"
    rows = [f"{u},{(u + step) % 30},{60 * (u + 30 * step)}" for step in (1, 2, 3) for u in range(30)]
    path.write_text("src,dst,time\n" + "\n".join(rows))

    def vectors(*options):
        invoke("embed", path, "-o", tmp_path / "v.npz", "--dim", 4, "--time", "time", *options)
        with np.load(tmp_path / "v.npz") as file:
            return file["vectors"]

    default = vectors()
    assert np.abs(default - vectors("--half-life", 600)).max() > 0.01
    expired = vectors("--half-life", 600, "--expire-after", 900)
    assert (expired == 0).all(axis=1).any()  # vertices without an edge of the last 15 minutes
    assert not (default == 0).all(axis=1).any()


def test_embed_change_log_ends_with_the_final_vectors(tmp_path, edges):
    log = tmp_path / "log.jsonl"
    invoke(
        "embed", edges, "-o", tmp_path / "v.npz", "--dim", 4, "--changes", log, "--batch-size", 10, "--anchor-growth", 0
    )
    last = {row["id"]: row["vector"] for row in map(json.loads, log.read_text().splitlines())}
    with np.load(tmp_path / "v.npz") as file:
        final = dict(zip(file["ids"].tolist(), file["vectors"], strict=True))
    assert len(last) > 30
    for name, vector in last.items():
        np.testing.assert_allclose(vector, final[name], atol=1e-6)


@pytest.mark.parametrize("start", [0, 1])
def test_embed_start_of_all_or_no_edges_works(tmp_path, edges, start):
    done = invoke("embed", edges, "-o", tmp_path / "v.csv", "--dim", 4, "--start", start, "--json")
    summary = json.loads(done.stdout)
    assert summary["start_rows"] == start * summary["edges"]
    assert summary["vertices"] == 60


def test_embed_start_edges_file_equals_start_share(tmp_path, edges):
    lines = edges.read_text().splitlines(keepends=True)
    first, rest = tmp_path / "first.csv", "".join(lines[50:])
    first.write_text("".join(lines[:50]))
    done = invoke("embed", "-", "-o", tmp_path / "a.npz", "--dim", 4, "--start-edges", first, "--json", input=rest)
    assert json.loads(done.stdout)["start_rows"] == 50
    invoke("embed", edges, "-o", tmp_path / "b.npz", "--dim", 4, "--start", 50 / len(lines))
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        np.testing.assert_array_equal(a["vectors"], b["vectors"])


def test_embed_with_time_column_sorts_edges(tmp_path):
    path, output = tmp_path / "e.csv", tmp_path / "v.npz"
    path.write_text("src,dst,time\n3,4,30\n1,2,10\n2,3,20\n")

    def order(*options):
        invoke("embed", path, "-o", output, "--dim", 2, *options)
        with np.load(output) as file:
            return file["ids"].tolist()

    assert order("--time", "time") == [1, 2, 3, 4]
    assert order() == [3, 4, 1, 2]


def test_embed_on_error_skip_prints_number_of_skipped_rows(tmp_path, edges):
    edges.write_text(edges.read_text() + "61\n")
    done = invoke("embed", edges, "-o", tmp_path / "v.csv", "--dim", 4, "--on-error", "skip", "--ids", "int")
    assert "skipped 1 row that could not be read, the first: 162" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dim", "0"], "dim: expected"),
        (["--set", "color=red"], "--set: expected one of 'dim', 'rule', "),
        (["--rule", "magic"], "rule: expected one of"),
        (["--ids", "float"], "ids: expected one of"),
        (["--changes", "log.txt"], "changes: expected a file name that ends in"),
        (["--src", "a", "--dst", "b"], "expected columns a, b"),
    ],
)
def test_embed_bad_input_prints_one_line_and_writes_nothing(tmp_path, edges, capsys, arguments, message):
    with pytest.raises(SystemExit) as exit_:
        run(["embed", str(edges), "-o", str(tmp_path / "v.csv"), *arguments])
    shown = capsys.readouterr().err
    assert exit_.value.code == ExitCode.BAD_INPUT
    assert message in shown
    assert shown.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_embed_process_reads_standard_input(tmp_path, edges):
    output = tmp_path / "v.parquet"
    command = [sys.executable, "-m", "ripplevec.cli", "embed", "-", "-o", str(output), "--dim", "4", "--json"]
    done = subprocess.run(command, input=edges.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["vertices"] == pq.read_table(output).num_rows == 60


@pytest.mark.filterwarnings("default")
def test_embed_of_unknown_header_says_what_was_decided(tmp_path, capfd):
    path, output = tmp_path / "edges.csv", tmp_path / "vectors.csv"
    path.write_text("user,item\nann,bread\nbob,bread\nbob,milk\n")

    def embedded_ids(*options):
        with pytest.raises(SystemExit):
            run(["embed", str(path), "-o", str(output), "--dim", "2", *options])
        return [line.split(",")[0] for line in output.read_text().splitlines()[1:]]

    assert embedded_ids() == ['"ann"', '"bread"', '"bob"', '"milk"']
    assert "warning: " in (error := capfd.readouterr().err)
    assert "line 1: read as a header: src is 'user', dst is 'item'. If it is an edge: --no-header" in error
    assert '"user"' in embedded_ids("--no-header")
    assert '"user"' not in embedded_ids("--header")
    assert "read as a header" not in capfd.readouterr().err


def test_embed_prints_counts_of_the_graph_with_plurals(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("a,b\na,b\nb,a\nb,b\n")
    with pytest.warns(SelfLoopWarning):
        done = invoke("embed", path, "-o", tmp_path / "v.csv", "--dim", 1, "--start", 0.25)
    assert "2 vertices, 1 edge, 1 dimension → " in done.stderr
    assert "start: 1 row in " in done.stderr
    assert "stream: 3 rows in " in done.stderr


def test_embed_of_tiny_stream_warns_that_vectors_are_zero(tmp_path):
    path, output = tmp_path / "edges.csv", tmp_path / "v.csv"
    path.write_text("1,2\n2,3\n3,4\n")
    done = invoke("embed", path, "-o", output, "--start", 0)
    assert "all vectors are zero: the stream had 4 of the 256 vertices with edges that a start needs" in done.stderr
    assert "--start 1" in done.stderr
    assert "zero" not in invoke("embed", path, "-o", output, "--start", 1).stderr


@pytest.mark.parametrize("start", [0.3, 1])
def test_embed_of_tiny_start_warns_that_vectors_are_zero(tmp_path, start):
    path = tmp_path / "edges.csv"
    path.write_text("ann,bread\nann,milk\nbob,bread\nbob,milk\n")
    done = invoke("embed", path, "-o", tmp_path / "v.csv", "--start", start, "--dim", 4)
    assert "warning: all vectors are zero: 4 vertices and 4 edges have no structure to embed. Embed a l" in done.stderr
    assert done.stderr.lower().count("vectors are zero") == 1  # that of `Embedder.fit` is not repeated


def test_embed_to_standard_output_writes_csv(tmp_path, edges):
    done = invoke("embed", edges, "-o", "-", "--dim", 2)
    assert done.stdout.splitlines()[0] == '"id","v0","v1"'
    assert len(done.stdout.splitlines()) == 61
    assert "→ standard output" in done.stderr
    assert invoke("embed", edges, "-o", "-", "--json").exit_code == ExitCode.USAGE


def test_embed_save_writes_a_model(tmp_path, edges):
    done = invoke("embed", edges, "--save", tmp_path / "model", "-o", tmp_path / "v.npz", "--dim", 4, "--json")
    with np.load(tmp_path / "v.npz") as file:
        np.testing.assert_array_equal(load(tmp_path / "model").to_numpy(), file["vectors"])
    assert json.loads(done.stdout)["model"] == str(tmp_path / "model")
    assert invoke("embed", edges).exit_code == ExitCode.USAGE
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").touch()
    with pytest.raises(FormatError, match=r"letter\.txt"):
        invoke("embed", edges, "--save", tmp_path / "other")


def test_embed_explains_the_choice_of_views(tmp_path):
    path = tmp_path / "edges.csv"
    edges = planted_partition(communities=4, size=80).edges
    path.write_text("".join(f"{u},{v}\n" for u, v in edges.tolist()))
    done = invoke("embed", path, "-o", tmp_path / "v.npz", "--dim", 8, "--start", 1)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("views: "))
    assert "because no others are clearly better (mean reciprocal rank of hidden edges: sparse 0." in line
