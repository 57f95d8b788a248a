from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ripplevec.errors import InvalidValueError
from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.datasets.multilabel import LOCAL_GRAPHS, load_multilabel


def test_local_graph_is_read_with_several_labels_per_vertex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "more/ppi_3890"
    folder.mkdir(parents=True)
    (folder / "edges.csv").write_text("src,dst\n7,3\n3,7\n3,3\n7,9\n")
    (folder / "labels.csv").write_text("id,label\n7,b\n7,a\n11,b\n")
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    graph = load_multilabel("ppi_3890")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]  # vertices 3, 7, 9, 11
    assert graph.labels.astype(int).tolist() == [[0, 0], [1, 1], [0, 0], [0, 1]]
    assert graph.adjacency().toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_missing_local_graph_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=str(tmp_path)):
        load_multilabel("lastfm_asia")


def test_unknown_graph_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="name"):
        load_multilabel("nothing")


def test_published_data_set_has_one_label_per_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.Dataset.from_pairs("cora", [(0, 1), (1, 2)], [4, 4, 9])
    monkeypatch.setattr("ripplevec.lab.datasets.multilabel.load", lambda name: data)
    assert load_multilabel("cora").labels.astype(int).tolist() == [[1, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize("name", LOCAL_GRAPHS)
def test_local_graphs_have_labels(name: str) -> None:
    try:
        graph = load_multilabel(name)
    except MissingDataError as error:
        pytest.skip(str(error))
    assert graph.labels.any(axis=1).sum() > 0.9 * graph.vertices
    assert np.unique(graph.edges).size > 0.9 * graph.vertices
