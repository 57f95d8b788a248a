from __future__ import annotations

import numpy as np

from ripplevec.influence._kernels import derive_key
from ripplevec.influence._kernels import draw_key


def test_keys_are_of_one_type_whatever_their_size() -> None:
    keys = [draw_key(seed, 3, 1) for seed in range(50)]
    assert {type(key) for key in keys} == {np.uint64}
    assert [int(key) for key in keys] == [derive_key(seed, 3, 1) for seed in range(50)]
    assert min(keys) < 2**63 <= max(keys)
