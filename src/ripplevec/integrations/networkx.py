"""Export of a model to NetworkX. For the other direction pass a NetworkX graph to `fit` or `partial_fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import export_graph

try:
    import networkx as nx
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.networkx", "networkx") from error

if TYPE_CHECKING:
    from networkx import Graph


def to_networkx(model: Embedder) -> Graph:
    """Return the graph of a model as a NetworkX graph.

    Parameters
    ----------
    model : Embedder
        The model to export.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Nodes in order of arrival with the attribute `vector`, edges with `weight`.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> graph = to_networkx(Embedder(dim=4).fit([("a", "b"), ("b", "c", 2.5)]))
    >>> graph["b"]["c"]["weight"]
    2.5
    """
    exported = export_graph(model)
    graph = nx.DiGraph() if exported.directed else nx.Graph()
    graph.add_nodes_from(
        (name, {"vector": vector}) for name, vector in zip(exported.ids, exported.vectors, strict=True)
    )
    endpoints = ([exported.ids[position] for position in column.tolist()] for column in (exported.src, exported.dst))
    graph.add_weighted_edges_from(zip(*endpoints, exported.weight.tolist(), strict=True))
    return graph
