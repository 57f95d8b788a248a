from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ripplevec.cli.main import app


def check(path, text, *options):
    path.write_text(text)
    done = CliRunner().invoke(app, ["check", str(path), *options], catch_exceptions=False)
    assert done.exit_code == 0
    return json.loads(done.stdout) if "--json" in options else done.stdout


def test_check_json_reports_columns_ids_and_counts(tmp_path):
    text = "src,dst,weight,time\na,b,2,9\nb,a,1,8\nc,c,1,7\nd,e,x,6\n"
    report = check(tmp_path / "e.csv", text, "--json")
    assert report["columns"] == ["src", "dst", "weight", "time"]
    assert (report["rows"], report["skipped"], report["skipped_rows"], report["ids"]) == (4, 1, [5], "text")
    assert (report["vertices"], report["edges"], report["repeated"], report["self_loops"]) == (3, 1, 1, 1)
    assert (report["weights"], report["times"], report["sorted_by_time"]) == ([1, 2], [7, 9], False)
    advice = " ".join(report["advice"])
    assert all(option in advice for option in ("--on-error skip", "--duplicates", "--time", "--dim", "--start"))
    assert "line 5: expected a positive finite weight, not 'x' (another column: --weight NAME" in advice


def test_check_prints_the_decision_about_the_header(tmp_path):
    shown = check(tmp_path / "e.csv", "user,item\nann,bread\nbob,bread\nbob,milk\n")
    assert "graph       4 vertices, 3 edges; 0 repeated edges, 0 self-loops\n" in shown
    assert "bipartite   yes\n" in shown
    assert "read as a header: src is 'user', dst is 'item'" in shown
    assert "users and items" in shown
    assert "5 vertices" not in check(tmp_path / "e.csv", "1,2\n2,3\n3,1\n")


def test_check_of_large_and_mixed_ids_works(tmp_path):
    report = check(tmp_path / "e.jsonl", f'[1, "a"]\n["a", {2**70}]\n[1, {2**70}]\n', "--json")
    assert (report["ids"], report["vertices"], report["bipartite"]) == ("integers and text", 3, False)


@pytest.mark.parametrize(
    ("name", "text", "options", "columns", "ignored"),
    [
        (
            "e.csv",
            "when,Target,Source,note,amount\n5,a,b,x,2\n",
            ["--weight", "amount", "--time", "when"],
            "src is Source, dst is Target, weight is amount, time is when",
            "note",
        ),
        ("e.csv", "a b 2\nb c 1\n", ["--weight", "none"], "src is field 1, dst is field 2", "field 3"),
        ("e.csv", "a,b\nb,c\n", [], "src is field 1, dst is field 2", ""),
        ("e.jsonl", '{"from": 1, "to": 2, "weight": 3}\n', ["--weight", "none"], "src is from, dst is to", "weight"),
        ("e.jsonl", "[1, 2, 0.5]\n", [], "src is field 1, dst is field 2, weight is field 3", ""),
    ],
)
def test_check_names_the_columns_of_the_file_and_those_ignored(tmp_path, name, text, options, columns, ignored):
    shown = check(tmp_path / name, text, *options)
    assert f"columns     {columns}\n" in shown
    assert ("ignored     " in shown) is bool(ignored)
    assert f"ignored     {ignored}\n" in shown or not ignored
    report = check(tmp_path / name, text, *options, "--json")
    assert ", ".join(f"{column} is {name}" for column, name in report["column_names"].items()) == columns
    assert ", ".join(report["ignored_columns"]) == ignored


def test_check_names_the_columns_of_a_parquet_file(tmp_path):
    pq.write_table(pa.table({"note": ["x"], "Source": [1], "to": [2], "op": [0]}), tmp_path / "e.parquet")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "e.parquet")], catch_exceptions=False)
    assert "columns     src is Source, dst is to, op is op\nignored     note\n" in done.stdout


def test_check_prints_times_with_all_digits(tmp_path):
    shown = check(tmp_path / "e.csv", "src,dst,time\na,b,1700000000\nb,c,1700000299.5\n")
    assert "times       from 1700000000 to 1700000299.5\n" in shown


def test_check_start_of_one_row_is_singular(tmp_path):
    shown = check(tmp_path / "e.csv", "user,item\nann,bread\nbob,bread\nbob,milk\n")
    assert "starts with the first row and streams the others" in shown


def test_check_start_of_no_row_says_all_rows_are_streamed(tmp_path):
    assert "`ripplevec embed` streams all rows (--start)." in check(tmp_path / "e.csv", "1,2\n")


def test_check_says_how_many_rows_can_be_read(tmp_path):
    assert "rows        2 rows, all can be read\n" in check(tmp_path / "e.csv", "1,2\n2,3\n")
    assert "rows        3 rows, 1 cannot be read\n" in check(tmp_path / "e.csv", "1,2\n2,3\n4\n")
