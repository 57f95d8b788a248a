"""Export of a model to PyTorch Geometric, and its node features as attributes.

For the other direction pass a `Data` object to `fit` or `partial_fit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, MissingExtraError
from ripplevec.integrations.export import export_graph

try:
    import torch
    import torch_geometric.data
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.pyg", "torch") from error

if TYPE_CHECKING:
    from torch_geometric.data import Data


SPARSE_SHARE = 0.2
"""Share of non-zero values up to which features that are all ≥ 0 count as named values, for example words."""


def read_features(data: Data) -> tuple[Any, Any]:
    """Return the node features `x` of PyTorch Geometric data as attributes, for `fit(data, attributes=…)`.

    Parameters
    ----------
    data : torch_geometric.data.Data
        The data.

    Returns
    -------
    ids : ndarray
        The ids that `fit` gives to the nodes: their positions.
    values : ndarray or SciPy sparse matrix
        One row per node. Features that are all ≥ 0 and mostly zero, for example words, are sparse: they are weighted by
        tf-idf. All others are dense: they are standardized.

    Raises
    ------
    InvalidValueError
        If the data has no features.

    Examples
    --------
    >>> import torch
    >>> from ripplevec import Embedder
    >>> from torch_geometric.data import Data
    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> data = Data(x=torch.randn(3, 5), edge_index=edges)
    >>> Embedder(dim=4).fit(data, attributes=read_features(data)).vectors([0]).shape
    (1, 4)
    """
    if data.x is None:
        raise InvalidValueError.of("data", "node features x", "data without them")
    values = data.x.to_dense().detach().cpu().numpy()
    is_sparse = (values >= 0).all() and np.count_nonzero(values) <= SPARSE_SHARE * values.size
    return np.arange(len(values)), csr_array(values) if is_sparse else values


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
