from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripplevec import Batch, Op
from ripplevec.batch import ids_to_list
from ripplevec.durability.batch_codec import decode_batch, encode_batch
from ripplevec.errors import FormatError

NAMES = st.one_of(st.integers(-3, 3), st.integers(-(2**200), 2**200), st.text(max_size=5))


@st.composite
def any_batch(draw: st.DrawFn) -> Batch:
    """A batch of any operations on ids of any kind; whether they can be applied is another matter."""
    ids = draw(st.sampled_from([st.integers(0, 9), st.text(max_size=4), NAMES]))
    size = draw(st.integers(0, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    weight = column(st.floats(0.25, 8.0)) if draw(st.booleans()) else None
    op = column(st.sampled_from(list(Op))) if draw(st.booleans()) else None
    time = column(st.floats(-1e9, 1e9)) if draw(st.booleans()) else None
    return Batch.of(column(ids), column(ids), weight, op, time)


@given(batch=any_batch())
def test_a_batch_comes_back_as_it_was(batch: Batch) -> None:
    back = decode_batch(encode_batch(batch))
    for name in ("src", "dst"):
        before, after = getattr(batch, name), getattr(back, name)
        assert [(type(each), each) for each in ids_to_list(after)] == [(type(each), each) for each in ids_to_list(before)]
    for name in ("weight", "op", "time"):
        before, after = getattr(batch, name), getattr(back, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert after.dtype == before.dtype
            assert after.flags.writeable  # or every kernel would be compiled once more
            np.testing.assert_array_equal(after, before)


def test_columns_of_one_kind_stay_columns() -> None:
    assert isinstance(decode_batch(encode_batch(Batch.of([1], [2]))).src, np.ndarray)
    assert not isinstance(decode_batch(encode_batch(Batch.of(["a"], ["b"]))).src, list)
    assert isinstance(decode_batch(encode_batch(Batch.of([1, "a"], ["b", 2]))).src, list)


def test_an_id_may_have_more_digits_than_python_prints() -> None:
    name = 10**5000
    assert ids_to_list(decode_batch(encode_batch(Batch.of([name], [-name]))).dst) == [-name]


@given(bytes_=st.binary(max_size=40))
def test_other_bytes_are_refused(bytes_: bytes) -> None:
    with pytest.raises(FormatError, match="bytes of a batch"):
        decode_batch(bytes_)


def test_a_batch_that_was_cut_off_is_refused() -> None:
    payload = encode_batch(Batch.of(list(range(100)), list(range(100))))
    for size in range(0, len(payload) - 8, 97):
        with pytest.raises(FormatError, match="bytes of a batch"):
            decode_batch(payload[:size])
