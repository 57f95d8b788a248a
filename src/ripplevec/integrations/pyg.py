"""Export of a model to PyTorch Geometric. For the other direction pass a `Data` object to `fit` or `partial_fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import export_graph

try:
    import torch
    import torch_geometric.data
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.pyg", "torch") from error

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_data(model: Embedder) -> Data:
    """Return the current graph of a model as PyTorch Geometric `Data`.

    Parameters
    ----------
    model : Embedder
        The model to export.

    Returns
    -------
    torch_geometric.data.Data
        `x` (vectors), `edge_index`, `edge_weight` and `vertex` (the id of each row). Rows are in order of arrival:
        until a vertex is removed, vertices keep their rows and new ones are appended. An undirected edge appears in
        both directions.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> data = to_data(Embedder(dim=4).fit([("a", "b"), ("b", "c")]))
    >>> data.x.shape, data.edge_index.shape
    (torch.Size([3, 4]), torch.Size([2, 4]))
    """
    exported = export_graph(model)
    endpoints, weight = np.stack([exported.src, exported.dst]), exported.weight
    if not exported.directed:
        endpoints, weight = np.concatenate([endpoints, endpoints[::-1]], axis=1), np.concatenate([weight, weight])
    return torch_geometric.data.Data(
        x=torch.from_numpy(exported.vectors),
        edge_index=torch.from_numpy(np.ascontiguousarray(endpoints)),
        edge_weight=torch.from_numpy(weight),
        vertex=exported.ids,
    )
