"""What followers are told of a batch: its sequence, whether it anchored, what changed to which vector, what is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ripplet.changes import Changes
from ripplet.events import Id

MESSAGE_BYTES = 1 << 19
"""About how large a message may become: brokers commonly refuse those above a megabyte."""

_NUMBER, _AROUND = 24, 1200  # bytes of JSON for a number of a vector, and for an id and the rest


def change_message(changes: Changes) -> dict[str, Any]:
    """The changes of a batch as JSON holds them."""
    return _part(changes, changes.ids, 0, len(changes))


def _part(changes: Changes, ids: list[Id], first: int, last: int) -> dict[str, Any]:
    """Some of the changes of a batch; the removed are told with the last of them."""
    kept = slice(first, last)
    rows = zip(ids[kept], changes.vectors[kept].tolist(), changes.arrived[kept].tolist(), strict=True)
    return {
        "sequence": int(changes.sequence),
        "anchored": bool(changes.anchored),
        "changes": [{"id": name, "vector": vector, "arrived": arrived} for name, vector, arrived in rows],
        "removed": list(changes.removed) if last >= len(changes) else [],
    }


def change_messages(changes: Changes, size: int = MESSAGE_BYTES) -> Iterator[bytes]:
    """The changes of a batch as JSON in messages of bounded size; several say which of how many parts they are."""
    step = max(1, size // (_AROUND + _NUMBER * changes.vectors.shape[1]))
    parts, ids = max(1, -(-len(changes) // step)), changes.ids
    for part in range(parts):
        message = _part(changes, ids, part * step, (part + 1) * step)
        if parts > 1:
            message |= {"part": part, "parts": parts}
        yield json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
