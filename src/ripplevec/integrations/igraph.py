"""Export of a model to igraph. For the other direction pass an igraph graph to `fit` or `partial_fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import export_graph

try:
    import igraph
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.igraph", "igraph") from error

if TYPE_CHECKING:
    from igraph import Graph


def to_igraph(model: Embedder) -> Graph:
    """Return the graph of a model as an igraph graph.

    Parameters
    ----------
    model : Embedder
        The model to export.

    Returns
    -------
    igraph.Graph
        Vertices in order of arrival with the attributes `name` and `vector`, edges with `weight`.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> graph = to_igraph(Embedder(dim=4).fit([("a", "b"), ("b", "c")]))
    >>> graph.vs["name"], graph.ecount()
    (['a', 'b', 'c'], 2)
    """
    exported = export_graph(model)
    edges = list(zip(exported.src.tolist(), exported.dst.tolist(), strict=True))
    graph = igraph.Graph(len(exported.ids), edges, directed=exported.directed)
    graph.vs["name"], graph.vs["vector"] = exported.ids, list(exported.vectors)
    graph.es["weight"] = exported.weight.tolist()
    return graph
