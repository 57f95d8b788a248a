from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ripplevec.durability._wal_kernels import log_checksum


@given(words=st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), max_size=20), start=st.integers(0, 2**32 - 1))
def test_the_sums_are_those_of_the_file_format(words: list[tuple[int, int]], start: int) -> None:
    sums = np.array([start, 7], np.uint32)
    log_checksum(np.array(words, np.uint32).reshape(-1), sums)
    first, second = start, 7
    for one, other in words:
        first = (first + one + second) % 2**32
        second = (second + other + first) % 2**32
    assert sums.tolist() == [first, second]
