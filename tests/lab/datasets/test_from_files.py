from __future__ import annotations

from pathlib import Path

import pytest

from ripplevec.errors import FormatError
from ripplevec.lab.datasets import Dataset, from_files


@pytest.fixture
def build(tmp_path: Path):
    def from_text(edges: str, labels: str, suffix: str = "csv", **options: str) -> Dataset:
        paths = tmp_path / f"friends.{suffix}", tmp_path / "labels.txt"
        for path, text in zip(paths, (edges, labels), strict=True):
            path.write_text(text)
        return from_files(*paths, **options)

    return from_text


def test_vertices_are_numbered_by_first_mention(build) -> None:
    dataset = build("carol,alice\nalice,bob\nbob,bob\nalice,carol\n", "alice,red\nbob,blue\ncarol,red\n")
    assert dataset.name == "friends"
    assert dataset.names == ["carol", "alice", "bob"]
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert [dataset.class_names[label] for label in dataset.labels] == ["red", "red", "blue"]


@pytest.mark.parametrize("sign", [",", "\t", " ", ";"])
@pytest.mark.parametrize("header", ["", "id{}label\n", "# a comment\nVertex{}Class\n"])
def test_labels_are_two_columns_of_any_text_file(build, sign: str, header: str) -> None:
    dataset = build("1,2\n2,3\n", header.format(sign) + f"3{sign}b\n1{sign}a\n2{sign}b\n")
    assert dataset.names == [1, 2, 3]
    assert (dataset.labels.tolist(), list(dataset.class_names)) == ([0, 1, 1], ["a", "b"])


def test_a_vertex_may_be_called_like_a_heading(build) -> None:
    assert build("id,x\n", "id,a\nx,b\n").names == ["id", "x"]


def test_edges_in_another_format_with_options(build) -> None:
    dataset = build('{"a": 7, "b": 8, "weight": 2}\n', "7 0\n8 0\n", "jsonl", src="a", dst="b", name="pair")
    assert (dataset.name, dataset.names, dataset.classes) == ("pair", [7, 8], 1)


def test_a_label_that_repeats_itself_is_one(build) -> None:
    assert build("1,2\n", "1,a\n2,b\n1,a\n").labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("edges", "labels", "message"),
    [
        ("1,2\n", "1,a\n2,b\n3,c\n4,c\n", r"labels\.txt: expected labels of vertices of .*friends.*2 others.*'3', '4'"),
        ("1,2\n2,3\n", "1,a\n", r"labels\.txt: expected a label for every vertex of .*friends.*none for 2, \[2, 3\]"),
        ("1,2\n", "1,a\n2,b\n1,b\n", r"labels\.txt: expected one label per vertex, got 'a' and 'b' for '1'"),
        ("1,2\n", "1,a\n2\n", r"labels\.txt, line 2: expected 2 fields"),
        ('[1, "1"]\n', "1,a\n", r"friends\.jsonl: expected ids of one kind"),
    ],
)
def test_files_that_do_not_fit_together(build, edges: str, labels: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        build(edges, labels, "jsonl" if edges.startswith("[") else "csv")
