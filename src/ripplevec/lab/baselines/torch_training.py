"""Shared parts of the baselines that are trained with PyTorch (extra `torch`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ripplevec.errors import MissingExtraError


def import_torch(method: object, seed: int) -> Any:
    """Import PyTorch for a method, and set its random seed."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(type(method).__name__, "torch") from error
    torch.manual_seed(seed)
    return torch


def as_sparse_tensor(torch: Any, matrix: csr_array) -> Any:
    """Convert a sparse matrix to a tensor of single precision."""
    entries = matrix.tocoo()
    positions = torch.from_numpy(np.vstack([entries.row, entries.col]).astype(np.int64))
    values = torch.from_numpy(entries.data.astype(np.float32))
    return torch.sparse_coo_tensor(positions, values, matrix.shape, check_invariants=False).coalesce()


def minimize(
    torch: Any, parameters: Iterable[Any], rate: float, losses: Iterable[Callable[[], Any]], decay: float = 0.0
) -> list[float]:
    """Apply one step of Adam per loss; return the values of the losses.

    One thread, because several would add up gradients of sparse products in any order.
    """
    optimizer = torch.optim.Adam(list(parameters), lr=rate, weight_decay=decay)
    values, threads = [], torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for compute in losses:
            optimizer.zero_grad()
            loss = compute()
            loss.backward()
            optimizer.step()
            values.append(float(loss.detach()))
    finally:
        torch.set_num_threads(threads)
    return values
