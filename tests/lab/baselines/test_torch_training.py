from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array

from ripplevec.errors import MissingExtraError
from ripplevec.lab.baselines.sdne import SDNE
from ripplevec.lab.baselines.torch_training import as_sparse_tensor, import_torch, minimize

torch = pytest.importorskip("torch")


def test_minimize_reaches_minimum() -> None:
    point = torch.tensor([5.0, -3.0], requires_grad=True)
    losses = minimize(torch, [point], 0.1, [lambda: (point - 1).square().sum()] * 300)
    assert losses[-1] < 1e-3 < losses[0]


def test_as_sparse_tensor_keeps_entries() -> None:
    matrix = random_array((5, 7), density=0.4, rng=np.random.default_rng(0), format="csr")
    np.testing.assert_allclose(as_sparse_tensor(torch, matrix).to_dense().numpy(), matrix.toarray(), rtol=1e-6)


def test_import_torch_without_torch_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match="SDNE"):
        import_torch(SDNE(), 0)
