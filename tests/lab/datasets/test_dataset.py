from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.errors import FormatError, InvalidValueError
from ripplevec.lab.datasets.dataset import Dataset, from_files

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


@given(PAIRS)
def test_from_pairs_stores_each_edge_once_sorted_by_larger_vertex(pairs: list[tuple[int, int]]) -> None:
    dataset = Dataset.from_pairs("any", pairs, np.zeros(8))
    expected = {(min(u, v), max(u, v)) for u, v in pairs if u != v}
    assert [tuple(edge) for edge in dataset.edges.tolist()] == sorted(expected, key=lambda edge: edge[::-1])
    assert dataset.edges.dtype == np.int64


@given(PAIRS)
def test_adjacency_of_any_pairs_is_symmetric_and_binary(pairs: list[tuple[int, int]]) -> None:
    dataset = Dataset.from_pairs("any", pairs, np.zeros(8))
    dense = np.zeros((8, 8))
    for u, v in pairs:
        if u != v:
            dense[u, v] = dense[v, u] = 1
    np.testing.assert_array_equal(dataset.adjacency().toarray(), dense)


def test_dataset_counts_vertices_classes_and_degrees() -> None:
    dataset = Dataset.from_pairs("path", [[0, 1], [1, 2], [2, 1]], [5, 5, 9, 9])
    assert (dataset.vertices, dataset.classes, dataset.mean_degree) == (4, 2, 1.0)


def test_from_pairs_without_vertices_gives_empty_graph() -> None:
    dataset = Dataset.from_pairs("nothing", [], [])
    assert dataset.edges.shape == (0, 2)
    assert dataset.adjacency().shape == (0, 0)
    assert dataset.mean_degree == 0


def test_from_pairs_copies_labels_of_caller() -> None:
    labels = np.zeros(2, np.int64)
    dataset = Dataset.from_pairs("pair", [[0, 1]], labels)
    labels[0] = 7
    assert dataset.labels.tolist() == [0, 0]


@pytest.mark.parametrize("pair", [[0, 3], [-1, 0]])
def test_from_pairs_with_vertex_out_of_range_raises(pair: list[int]) -> None:
    with pytest.raises(InvalidValueError, match="vertices 0 to 2"):
        Dataset.from_pairs("bad", [pair], np.zeros(3))


def test_from_pairs_without_names_uses_indices() -> None:
    assert list(Dataset.from_pairs("pair", [[0, 1]], [0, 0]).names) == [0, 1]
    assert Dataset.from_pairs("pair", [[0, 1]], [0, 0], names=["a", "b"]).names == ["a", "b"]
    with pytest.raises(InvalidValueError, match="names: expected 2 names"):
        Dataset.from_pairs("pair", [[0, 1]], [0, 0], names=["a"])


@pytest.fixture
def read_dataset(tmp_path: Path):
    """Write an edge file and a label file with the given text, and read them."""

    def from_text(edges: str, labels: str, suffix: str = "csv", **options: str) -> Dataset:
        paths = tmp_path / f"friends.{suffix}", tmp_path / "labels.txt"
        for path, text in zip(paths, (edges, labels), strict=True):
            path.write_text(text)
        return from_files(*paths, **options)

    return from_text


def test_from_files_numbers_vertices_by_first_mention(read_dataset) -> None:
    dataset = read_dataset("carol,alice\nalice,bob\nbob,bob\nalice,carol\n", "alice,red\nbob,blue\ncarol,red\n")
    assert dataset.name == "friends"
    assert dataset.names == ["carol", "alice", "bob"]
    assert dataset.edges.tolist() == [[0, 1], [1, 2]]
    assert [dataset.class_names[label] for label in dataset.labels] == ["red", "red", "blue"]


@pytest.mark.parametrize("sign", [",", "\t", " ", ";"])
@pytest.mark.parametrize("header", ["", "id{}label\n", "# a comment\nVertex{}Class\n"])
def test_from_files_reads_labels_with_any_separator_and_header(read_dataset, sign: str, header: str) -> None:
    dataset = read_dataset("1,2\n2,3\n", header.format(sign) + f"3{sign}b\n1{sign}a\n2{sign}b\n")
    assert dataset.names == [1, 2, 3]
    assert (dataset.labels.tolist(), list(dataset.class_names)) == ([0, 1, 1], ["a", "b"])


def test_from_files_with_vertex_named_like_header_keeps_it(read_dataset) -> None:
    assert read_dataset("id,x\n", "id,a\nx,b\n").names == ["id", "x"]


def test_from_files_passes_options_to_edge_reader(read_dataset) -> None:
    dataset = read_dataset('{"a": 7, "b": 8, "weight": 2}\n', "7 0\n8 0\n", "jsonl", src="a", dst="b", name="pair")
    assert (dataset.name, dataset.names, dataset.classes) == ("pair", [7, 8], 1)


def test_from_files_with_repeated_equal_label_accepts_it(read_dataset) -> None:
    assert read_dataset("1,2\n", "1,a\n2,b\n1,a\n").labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("edges", "labels", "message"),
    [
        ("1,2\n", "1,a\n2,b\n3,c\n4,c\n", r"labels\.txt: expected labels of vertices of .*friends.*2 others.*'3', '4'"),
        ("1,2\n2,3\n", "1,a\n", r"labels\.txt: expected a label for every vertex of .*friends.*none for 2, \[2, 3\]"),
        ("1,2\n", "1,a\n2,b\n1,b\n", r"labels\.txt: expected one label per vertex, got 'a' and 'b' for '1'"),
        ("1,2\n", "1,a\n2\n", r"labels\.txt, line 2: expected 2 fields"),
        ('[1, "1"]\n', "1,a\n", r"friends\.jsonl: expected ids of one type"),
    ],
)
def test_from_files_with_inconsistent_files_raises(read_dataset, edges: str, labels: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_dataset(edges, labels, "jsonl" if edges.startswith("[") else "csv")
