"""A model as an igraph graph. The other way needs nothing: `fit` and `partial_fit` take igraph graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import whole

try:
    import igraph
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.igraph", "igraph") from error

if TYPE_CHECKING:
    from igraph import Graph


def to_igraph(model: Embedder) -> Graph:
    """The graph of a model, vertices in order of arrival with `name` and `vector`, edges with `weight`."""
    held = whole(model)
    edges = list(zip(held.src.tolist(), held.dst.tolist(), strict=True))
    graph = igraph.Graph(len(held.ids), edges, directed=held.directed)
    graph.vs["name"], graph.vs["vector"] = held.ids, list(held.vectors)
    graph.es["weight"] = held.weight.tolist()
    return graph
