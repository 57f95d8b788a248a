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

VERTEX_IDS = st.one_of(st.integers(-3, 3), st.integers(-(2**200), 2**200), st.text(max_size=5))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Batches with any operations on ids of every kind, including ones that cannot be applied."""
    ids = draw(st.sampled_from([st.integers(0, 9), st.text(max_size=4), VERTEX_IDS]))
    size = draw(st.integers(0, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=size, max_size=size))

    weight = column(st.floats(0.25, 8.0)) if draw(st.booleans()) else None
    op = column(st.sampled_from(list(Op))) if draw(st.booleans()) else None
    time = column(st.floats(-1e9, 1e9)) if draw(st.booleans()) else None
    return Batch.of(column(ids), column(ids), weight, op, time)


def _typed(column: Any) -> list[tuple[type, Any]]:
    return [(type(vertex), vertex) for vertex in ids_to_list(column)]


@given(batch=batches())
def test_batch_codec_round_trip_preserves_values_and_types(batch: Batch) -> None:
    decoded = decode_batch(encode_batch(batch))
    for name in ("src", "dst"):
        before, after = getattr(batch, name), getattr(decoded, name)
        assert _typed(after) == _typed(before)
    for name in ("weight", "op", "time"):
        before, after = getattr(batch, name), getattr(decoded, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert after.dtype == before.dtype
            assert after.flags.writeable  # read-only arrays would compile every kernel a second time
            np.testing.assert_array_equal(after, before)


def test_batch_codec_ids_of_one_type_stay_arrays() -> None:
    assert isinstance(decode_batch(encode_batch(Batch.of([1], [2]))).src, np.ndarray)
    assert not isinstance(decode_batch(encode_batch(Batch.of(["a"], ["b"]))).src, list)
    assert isinstance(decode_batch(encode_batch(Batch.of([1, "a"], ["b", 2]))).src, list)


def test_batch_codec_integer_beyond_decimal_limit_round_trips() -> None:
    vertex = 10**5000
    assert ids_to_list(decode_batch(encode_batch(Batch.of([vertex], [-vertex]))).dst) == [-vertex]


@given(payload=st.binary(max_size=40))
def test_decode_batch_arbitrary_bytes_raises_format_error(payload: bytes) -> None:
    with pytest.raises(FormatError, match="expected the bytes of an encoded batch"):
        decode_batch(payload)


def test_decode_batch_truncated_payload_raises_format_error() -> None:
    payload = encode_batch(Batch.of(list(range(100)), list(range(100))))
    for size in range(0, len(payload) - 8, 97):
        with pytest.raises(FormatError, match="expected the bytes of an encoded batch"):
            decode_batch(payload[:size])
