from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ripplet.baselines._kernels import walk
from ripplet.influence._kernels import draw, key_of


def reference(matrix: np.ndarray, start: int, key: np.uint64, length: int) -> list[int]:
    path, here = [], start
    for step in range(length):
        path.append(here)
        near = np.flatnonzero(matrix[here]) if here >= 0 else np.empty(0, int)
        if not len(near):
            here = -1
            continue
        share = np.cumsum(matrix[here, near])
        here = int(near[np.searchsorted(share[:-1], draw(key, start, step) * share[-1], side="right")])
    return path


@settings(max_examples=50)
@given(st.integers(1, 12), st.floats(0, 1), st.integers(1, 20), st.integers(0, 1000), st.booleans())
def test_walk_is_the_reference(vertices: int, density: float, length: int, seed: int, directed: bool) -> None:
    rng = np.random.default_rng(seed)
    matrix = (rng.random((vertices, vertices)) < density) * rng.integers(1, 5, (vertices, vertices)).astype(float)
    matrix = matrix if directed else matrix + matrix.T
    graph = csr_array(matrix)
    cumulative = np.concatenate([[0.0], np.cumsum(graph.data)])
    starts, walks = rng.permutation(vertices), np.empty((vertices, length), np.int64)
    key = np.uint64(key_of(seed, 0, 0))
    walk(graph.indptr.astype(np.int64), graph.indices.astype(np.int64), cumulative, starts, key, walks)
    assert walks.tolist() == [reference(matrix, int(start), key, length) for start in starts]


def test_neighbours_are_taken_in_proportion_to_weight() -> None:
    first, neighbour = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])
    cumulative = np.array([0.0, 1.0, 4.0, 5.0, 8.0])
    walks = np.empty((1, 20_001), np.int64)
    walk(first, neighbour, cumulative, np.array([0]), np.uint64(key_of(3, 0, 0)), walks)
    assert (walks[0, ::2] == 0).all()
    assert abs((walks[0, 1::2] == 2).mean() - 0.75) < 0.02
