"""One anchor on a GPU over the same on all cores: seconds, and how far the results are apart.

    python benchmarks/anchor_gpu.py [--vertices 10000000] [--json FILE]

The graph and the rows of benchmarks/anchor.py. Seconds on the GPU count the way of the graph and of the rows there and
back. Without a GPU nothing is measured.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from _anchors import anchored, grow
from _report import run
from numpy.typing import NDArray

from ripplevec.errors import RipplevecError
from ripplevec.util.parallel import resolve_threads
from ripplevec.views.base import Basis
from ripplevec.views.gpu import usable_cupy

SOME = 4_000  # vertices whose inner products are compared: they do not depend on how columns are turned


def inner(basis: Basis) -> NDArray[Any]:
    """Of some vertices, among each other."""
    rows = basis.rows[:: max(len(basis.rows) // SOME, 1)].astype(np.float64)
    return rows @ rows.T


def apart(left: list[NDArray[Any]], right: list[NDArray[Any]]) -> float:
    """The largest difference, relative to the largest entry."""
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(left, right, strict=True))


def measure(vertices: int) -> dict[str, Any]:
    """Correct the same rows here and there."""
    threads = resolve_threads(None)
    for device in ("cpu", "cuda"):
        anchored(grow(1_000, threads), threads, device)  # compiles
    grown = grow(vertices, threads)
    here, slow = min((anchored(grown, threads) for _ in range(2)), key=itemgetter(1))
    (there, first), (again, second) = (anchored(grown, threads, "cuda") for _ in range(2))
    quick = min(first, second)
    return {
        "vertices": vertices,
        "edges": grown.adjacency.edge_count,
        "threads": threads,
        "cpu_seconds": slow,
        "gpu_seconds": quick,
        "cpu_over_gpu": slow / quick,
        "values_apart": apart([basis.mu for basis in here], [basis.mu for basis in there]),
        "inner_products_apart": apart([inner(basis) for basis in here], [inner(basis) for basis in there]),
        "same_bits_twice": float(all(a.rows.tobytes() == b.rows.tobytes() for a, b in zip(there, again, strict=True))),
    }


if __name__ == "__main__":
    try:
        usable_cupy()
    except RipplevecError as reason:
        print(f"skipped: {reason}")
    else:
        run(__doc__, measure, "vertices", 10_000_000)
