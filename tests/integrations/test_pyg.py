from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

torch = pytest.importorskip("torch", reason="not installed: pip install '.[torch]'")
geometric = pytest.importorskip("torch_geometric", reason="not installed: pip install '.[torch]'")

from ripplevec import Embedder, InvalidValueError  # noqa: E402  (behind what may be missing)
from ripplevec.integrations.pyg import read_features, to_data  # noqa: E402
from ripplevec.lab.datasets.synthetic import planted_partition  # noqa: E402


def edges(data):
    ends = [[data.vertex[place] for place in side] for side in data.edge_index.tolist()]
    return sorted(zip(*ends, data.edge_weight.tolist(), strict=True), key=str)


def test_to_data_has_vectors_edges_and_ids(model):
    data = to_data(model)
    data.validate()
    assert (data.num_nodes, data.num_edges, data.is_undirected()) == (7, 2 * 8, True)
    assert data.vertex == model.ids
    assert np.array_equal(data.x.numpy(), model.to_numpy())
    assert ("d", 7, 3.0) in edges(data)
    assert (7, "d", 3.0) in edges(data)


def test_to_data_of_a_growing_model_keeps_rows(model):
    before = to_data(model)
    model.partial_fit([("g", "a"), ("h", "g", 2.0)])
    after = to_data(model)
    assert after.vertex[:7] == before.vertex
    assert after.vertex[7:] == ["g", "h"]
    assert set(map(str, edges(before))) <= set(map(str, edges(after)))


@pytest.mark.parametrize("directed", [False, True])
def test_pyg_round_trip_keeps_the_graph(directed):
    pairs = [("a", "b", 1.0), ("b", "a", 2.0), ("c", "a", 3.0)] if directed else [("a", "b", 1.0), ("c", "a", 3.0)]
    data = to_data(Embedder(dim=2, directed=directed).fit(pairs))
    back = Embedder(dim=2, directed=directed).fit(data)
    assert back.ids == [0, 1, 2]
    again = to_data(back)
    again.vertex = [data.vertex[place] for place in again.vertex]
    assert edges(again) == edges(data)
    if directed:
        assert edges(data) == pairs


def test_pyg_data_without_weights_keeps_isolated_vertices():
    data = geometric.data.Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=4)
    model = Embedder(dim=2).fit(data)
    assert (model.ids, model.degree(model.ids).tolist()) == ([0, 1, 2, 3], [1, 2, 1, 0])


def test_graph_network_learns_from_exported_data():
    graph = planted_partition(communities=3, size=40, inside=8, elsewhere=1.0, seed=1)
    data = to_data(Embedder(dim=8).fit(graph.edges))
    labels = torch.from_numpy(graph.labels)[data.vertex]
    torch.manual_seed(0)
    layer = geometric.nn.GCNConv(8, 3)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(layer(data.x, data.edge_index, data.edge_weight), labels).backward()
        optimizer.step()
    found = layer(data.x, data.edge_index, data.edge_weight).argmax(dim=1)
    assert (found == labels).float().mean() > 0.9


def test_torch_tensor_shares_memory_with_vectors(model):
    vectors = model.to_numpy()
    tensor = torch.from_numpy(vectors)
    assert tensor.data_ptr() == vectors.ctypes.data
    assert tensor.dtype == torch.float32
    tensor.zero_()  # memory of its own: the model does not see it
    assert model.to_numpy().any()


def test_pyg_example_in_the_docs_runs(capsys):
    """Run the `py` block of the page; tests/docs runs its `python` blocks, which do not need torch."""
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()
    (example,) = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    karate = Embedder(dim=4).fit([(0, 1), (1, 2), (2, "another")])
    exec(compile(example, "integrations.md", "exec"), {"karate": karate})
    assert capsys.readouterr().out.endswith(" late\n")


def test_pyg_features_are_read_as_attributes():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    random = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    dense = geometric.data.Data(x=random, edge_index=edges)
    ids, values = read_features(dense)
    assert (ids.tolist(), values.shape) == ([0, 1, 2], (3, 5))
    words = geometric.data.Data(x=torch.eye(3, 20), edge_index=edges)
    ids, values = read_features(words)
    assert issparse(values)
    model = Embedder(dim=4).fit(words, attributes=(ids, values))
    assert model.diagnostics()["attribute_names"] == 3
    with pytest.raises(InvalidValueError, match="node features x"):
        read_features(geometric.data.Data(edge_index=edges, num_nodes=3))
