"""The built-in stream."""

from __future__ import annotations

import numpy as np

from ripplevec.batch import ids_to_list
from ripplevec.replay.builtin_stream import LABELS, generate_stream


def test_builtin_stream_adds_one_vertex_per_second_with_edges_to_earlier_ones() -> None:
    batch, labels = generate_stream(300)
    newer, older = (
        np.array([int(name.rpartition("-")[2]) for name in ids_to_list(end)]) for end in (batch.src, batch.dst)
    )
    assert (older < newer).all()
    assert batch.time is not None
    np.testing.assert_array_equal(batch.time, newer)
    assert (np.diff(batch.time) >= 0).all()
    assert set(ids_to_list(batch.src)) | set(ids_to_list(batch.dst)) <= labels.keys()


def test_builtin_stream_ids_start_with_their_label() -> None:
    _, labels = generate_stream(300)
    assert len(labels) == 300
    assert set(labels.values()) == set(LABELS)
    assert all(name.startswith(f"{label}-") for name, label in labels.items())


def test_builtin_stream_depends_on_the_seed() -> None:
    assert ids_to_list(generate_stream(50)[0].dst) == ids_to_list(generate_stream(50)[0].dst)
    assert ids_to_list(generate_stream(50, 1)[0].dst) != ids_to_list(generate_stream(50)[0].dst)
