"""A model as the data of PyTorch Geometric. The other way needs nothing: `fit` and `partial_fit` take such data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError
from ripplevec.integrations.export import whole

try:
    import torch
    import torch_geometric.data
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.pyg", "torch") from error

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_data(model: Embedder) -> Data:
    """The graph as it is now: `x` (vectors), `edge_index`, `edge_weight`, and `vertex` (the ids, row by row).

    Rows are in order of arrival: as long as nobody is removed, a vertex keeps its row and newcomers come behind. An
    undirected edge is there in both directions, as is usual.
    """
    held = whole(model)
    ends, weight = np.stack([held.src, held.dst]), held.weight
    if not held.directed:
        ends, weight = np.concatenate([ends, ends[::-1]], axis=1), np.concatenate([weight, weight])
    return torch_geometric.data.Data(
        x=torch.from_numpy(held.vectors),
        edge_index=torch.from_numpy(np.ascontiguousarray(ends)),
        edge_weight=torch.from_numpy(weight),
        vertex=held.ids,
    )
