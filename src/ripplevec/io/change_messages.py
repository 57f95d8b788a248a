"""Change messages for followers: the changes of a batch as JSON, split into messages of bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ripplevec.batch import Id
from ripplevec.changes import Changes

MAX_MESSAGE_BYTES = 1 << 19
"""Approximate upper limit of a message; brokers commonly reject messages above a megabyte."""

_NUMBER_BYTES, _CHANGE_BYTES, _MESSAGE_BYTES = 24, 64, 256  # JSON size of a vector component, rest of a change, frame
_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def changes_to_dict(changes: Changes) -> dict[str, Any]:
    """Return the changes of a batch as a JSON object."""
    return _slice_to_dict(changes, 0, len(changes) + len(changes.removed))


def _slice_to_dict(changes: Changes, first: int, last: int) -> dict[str, Any]:
    """Return a slice of the changed vertices followed by the removed ones as a JSON object."""
    changed, count = slice(first, last), len(changes)
    rows = zip(
        changes.select_ids(changed), changes.vectors[changed].tolist(), changes.arrived[changed].tolist(), strict=True
    )
    removed = slice(max(first - count, 0), max(last - count, 0))
    return {
        "sequence": int(changes.sequence),
        "anchored": bool(changes.anchored),
        "changes": [{"id": name, "vector": vector, "arrived": arrived} for name, vector, arrived in rows],
        "removed": list(changes.removed[removed]),
    }


def encode_change_messages(changes: Changes, size: int = MAX_MESSAGE_BYTES) -> Iterator[bytes]:
    """Yield the changes of a batch as JSON messages of bounded size; several are numbered with `part` and `parts`."""
    points = split_points(changes, size)
    return (encode_message_part(changes, points, part) for part in range(len(points) - 1))


def split_points(changes: Changes, size: int) -> list[int]:
    """Return where to split the changed vertices followed by the removed ones into messages of bounded size."""
    change_bytes = _CHANGE_BYTES + _NUMBER_BYTES * changes.vectors.shape[1]
    lengths = [change_bytes + _id_length(name) for name in changes.ids]
    lengths += [_id_length(name) for name in changes.removed]
    return _split_by_length(lengths, size - _MESSAGE_BYTES)


def encode_message_part(changes: Changes, points: list[int], part: int) -> bytes:
    """Return one message of a batch as JSON."""
    message, parts = _slice_to_dict(changes, points[part], points[part + 1]), len(points) - 1
    if parts > 1:
        message |= {"part": part, "parts": parts}
    return _JSON_ENCODER.encode(message).encode()


def _id_length(name: Id) -> int:
    """Return the bytes of an id and a comma in JSON, where a character may take six bytes."""
    return len(_JSON_ENCODER.encode(name).encode()) + 1


def _split_by_length(lengths: list[int], limit: int) -> list[int]:
    """Return split points so that no piece is longer than `limit`, unless it has one item; at least one piece."""
    points, length_so_far = [0], 0
    for number, length in enumerate(lengths):
        if length_so_far + length > limit and number > points[-1]:
            points.append(number)
            length_so_far = 0
        length_so_far += length
    return [*points, len(lengths)]
