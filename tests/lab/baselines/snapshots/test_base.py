from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ripplevec.lab.baselines.snapshots.base import changed_vertices


def test_changed_vertices_are_endpoints_of_new_removed_and_reweighted_edges() -> None:
    before = np.zeros((4, 4))
    after = np.zeros((6, 6))
    before[0, 1] = before[1, 0] = after[0, 1] = after[1, 0] = 1
    before[2, 3] = before[3, 2] = 1  # removed: 2 and 3 have no edges any more
    after[4, 5] = after[5, 4] = 1
    assert changed_vertices(csr_array(before), csr_array(after)).tolist() == [4, 5]
    after[0, 1] = after[1, 0] = 2
    assert changed_vertices(csr_array(before), csr_array(after)).tolist() == [0, 1, 4, 5]
    assert changed_vertices(None, csr_array(before)).tolist() == [0, 1, 2, 3]
