"""Blocks of docs/concepts.md: the numbers that its pictures show."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from blocks.records import MISSING, read_record


def arrival() -> str:
    """Return where the new vertex is placed, and where the changed vertices are after the batch."""
    record = read_record("concepts.json")
    if record is None:
        return MISSING
    new = record["newcomer"]
    others = [vertex for vertex in record["changed"] if vertex != new]
    moves = "".join(
        f" `{vertex}` moves from {_point(record['start'][vertex])} to {_point(record['after'][vertex])}."
        for vertex in others
    )
    return _wrap(
        f"`{new}` is placed at {_point(record['preview'])} and ends at {_point(record['after'][new])}.{moves} The "
        f"other {len(record['after']) - len(record['changed'])} vectors stay bitwise identical."
    )


def influence() -> str:
    """Return how often each neighbor is influenced, with its probability."""
    record = read_record("concepts.json")
    if record is None:
        return MISSING
    counts = [
        f"`{vertex}` {record['influenced'][vertex]:,} times (probability {chance:.3f})"
        for vertex, chance in record["chances"].items()
    ]
    return _wrap(f"In {record['seeds']:,} models that differ only in their seed, the arrival moved {_join(counts)}.")


def anchor() -> str:
    """Return how far an anchor rotates the internal vectors, and how little the returned ones move."""
    record = read_record("concepts.json")
    if record is None:
        return MISSING
    moved = record["anchor"]
    internal = f"{moved['mean_cosine_inside']:.2f}".replace("-", "−")
    return _wrap(
        f"Internally, the vectors have rotated by {abs(moved['turn_degrees'])} degrees: the mean cosine between a "
        f"vector before and after the anchor is {internal}. For the returned vectors, which are rotated back, it is "
        f"{moved['mean_cosine_served']:.2f}."
    )


def batch() -> str:
    """Return the changes when the same edges are applied together and one by one."""
    record = read_record("concepts.json")
    if record is None:
        return MISSING
    runs = record["batch"]
    each = "; ".join(map(_vertices, runs["apart"]["changed"]))
    return _wrap(
        f"Together: {runs['together']['batches']} batch, which changed {_vertices(runs['together']['changed'])}. One "
        f"edge at a time: {runs['apart']['batches']} batches, which changed {each}. The final graph is the same. The "
        f"mean cosine between the vectors of the two models is {runs['mean_cosine']:.2f}."
    )


def _point(row: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.2f}' for value in row)})".replace("-", "−")


def _vertices(ids: list[str]) -> str:
    return _join([f"`{vertex}`" for vertex in ids]) or "no vertex"


def _join(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _wrap(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)
