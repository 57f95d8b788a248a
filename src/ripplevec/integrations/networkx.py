"""A model as a NetworkX graph. The other way needs nothing: `fit` and `partial_fit` take NetworkX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import whole

try:
    import networkx as nx
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.networkx", "networkx") from error

if TYPE_CHECKING:
    from networkx import Graph


def to_networkx(model: Embedder) -> Graph:
    """The graph of a model, with `vector` on every node and `weight` on every edge."""
    held = whole(model)
    graph = nx.DiGraph() if held.directed else nx.Graph()
    graph.add_nodes_from((name, {"vector": vector}) for name, vector in zip(held.ids, held.vectors, strict=True))
    ends = ([held.ids[place] for place in side.tolist()] for side in (held.src, held.dst))
    graph.add_weighted_edges_from(zip(*ends, held.weight.tolist(), strict=True))
    return graph
