"""Export of a model to NetworkX, and node attributes of NetworkX graphs as attributes of vertices.

For the other direction pass a NetworkX graph to `fit` or `partial_fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, MissingExtraError, shorten
from ripplevec.integrations.export import export_graph

try:
    import networkx as nx
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.networkx", "networkx") from error

if TYPE_CHECKING:
    from networkx import Graph


def read_node_attributes(graph: Graph, *names: str) -> dict[Any, Any]:
    """Return attributes of the nodes of a graph as attributes of vertices, for `fit(graph, attributes=…)`.

    Parameters
    ----------
    graph : networkx.Graph
        The graph. Nodes without any of the attributes are left out.
    *names : str
        Names of node attributes. Either all of them are numbers or vectors of numbers, and every node has all of them
        or none, or all of them are texts or lists of texts.

    Returns
    -------
    dict
        For each node a list of numbers, or the names "attribute=text" with the number of times that each occurs.

    Raises
    ------
    InvalidValueError
        If a value is of another type, texts and numbers are mixed, or numbers are missing.

    Examples
    --------
    >>> import networkx as nx
    >>> from ripplevec import Embedder
    >>> graph = nx.karate_club_graph()
    >>> model = Embedder(dim=4).fit(graph, attributes=read_node_attributes(graph, "club"))
    >>> model.nearest_by_attributes({"club=Officer": 1}, k=1)[0][0] in graph
    True
    """
    rows: dict[Any, Any] = {}
    kinds = set()
    for node, data in graph.nodes(data=True):
        given = {name: data[name] for name in names if name in data}
        if given:
            values = {name: _to_values(node, name, value) for name, value in given.items()}
            kinds |= {type(value) for value in values.values()}
            rows[node] = values
    if len(kinds) > 1:
        raise InvalidValueError.of("attributes", "numbers, or texts, for all names", f"both for {', '.join(names)}")
    return {node: _join_values(node, values, names) for node, values in rows.items()}


def _to_values(node: Any, name: str, value: Any) -> list[float] | dict[str, float]:
    """Return the value of a node attribute as a list of numbers, or as named counts of texts."""
    items = list(value) if isinstance(value, list | tuple | set | np.ndarray) else [value]
    if items and all(isinstance(item, int | float | np.number) for item in items):
        return [float(item) for item in items]
    if not all(isinstance(item, str) for item in items):
        got = f"{shorten(value)} in node {node!r}, attribute {name}"
        raise InvalidValueError.of("attributes", "numbers, texts, or lists of these", got)
    counts: dict[str, float] = {}
    for item in items:
        counts[f"{name}={item}"] = counts.get(f"{name}={item}", 0.0) + 1.0
    return counts


def _join_values(node: Any, values: dict[str, Any], names: tuple[str, ...]) -> Any:
    first = next(iter(values.values()))
    if isinstance(first, dict):
        return {name: count for counts in values.values() for name, count in counts.items()}
    if len(values) != len(names):
        missing = ", ".join(name for name in names if name not in values)
        raise InvalidValueError.of("attributes", "a number for every name", f"none for {missing} in node {node!r}")
    return [number for name in names for number in values[name]]


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
