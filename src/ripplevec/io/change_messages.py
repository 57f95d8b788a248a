"""What followers are told of a batch: its sequence, whether it anchored, what changed to which vector, what is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ripplevec.batch import Id
from ripplevec.changes import Changes

MAX_MESSAGE_BYTES = 1 << 19
"""About how large a message may become: brokers commonly refuse those above a megabyte."""

_NUMBER, _ROW, _AROUND = 24, 64, 256  # bytes of JSON for a number of a vector, the rest of a change, of a message
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def changes_to_dict(changes: Changes) -> dict[str, Any]:
    """The changes of a batch as JSON holds them."""
    return _part(changes, 0, len(changes) + len(changes.removed))


def _part(changes: Changes, first: int, last: int) -> dict[str, Any]:
    """Some of what a batch did: its changes, and behind them what it removed."""
    kept, moved = slice(first, last), len(changes)
    rows = zip(changes.select_ids(kept), changes.vectors[kept].tolist(), changes.arrived[kept].tolist(), strict=True)
    gone = slice(max(first - moved, 0), max(last - moved, 0))
    return {
        "sequence": int(changes.sequence),
        "anchored": bool(changes.anchored),
        "changes": [{"id": name, "vector": vector, "arrived": arrived} for name, vector, arrived in rows],
        "removed": list(changes.removed[gone]),
    }


def encode_change_messages(changes: Changes, size: int = MAX_MESSAGE_BYTES) -> Iterator[bytes]:
    """The changes of a batch as JSON in messages of bounded size; several say which of how many parts they are."""
    bounds = split_points(changes, size)
    return (encode_message_part(changes, bounds, part) for part in range(len(bounds) - 1))


def split_points(changes: Changes, size: int) -> list[int]:
    """Where the changes of a batch, and behind them what it removed, are cut into messages of bounded size."""
    row = _ROW + _NUMBER * changes.vectors.shape[1]
    lengths = [row + _length(name) for name in changes.ids] + [_length(name) for name in changes.removed]
    return _bounds(lengths, size - _AROUND)


def encode_message_part(changes: Changes, bounds: list[int], part: int) -> bytes:
    """One of the messages of a batch, as JSON."""
    message, parts = _part(changes, bounds[part], bounds[part + 1]), len(bounds) - 1
    if parts > 1:
        message |= {"part": part, "parts": parts}
    return _JSON.encode(message).encode()


def _length(name: Id) -> int:
    """Bytes of an id and a comma in JSON, where a character may take six of them."""
    return len(_JSON.encode(name).encode()) + 1


def _bounds(lengths: list[int], size: int) -> list[int]:
    """Where to cut a list so that no piece is longer than `size`, unless it is a single one; one piece at least."""
    bounds, held = [0], 0
    for number, length in enumerate(lengths):
        if held + length > size and number > bounds[-1]:
            bounds.append(number)
            held = 0
        held += length
    return [*bounds, len(lengths)]
