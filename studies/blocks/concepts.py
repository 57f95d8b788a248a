"""What the pictures of docs/concepts.md show, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from blocks.records import NOTHING, content


def arrival() -> str:
    """Where the newcomer is placed, and where it is after its batch."""
    record = content("concepts.json")
    if record is None:
        return NOTHING
    new = record["newcomer"]
    others = [vertex for vertex in record["changed"] if vertex != new]
    return _filled(
        f"`{new}` is placed at {_point(record['preview'])}, and ends up at {_point(record['after'][new])}. "
        + " ".join(
            f"`{vertex}` goes from {_point(record['start'][vertex])} to {_point(record['after'][vertex])}."
            for vertex in others
        )
        + f" The other {len(record['after']) - len(record['changed'])} stay where they are, in every bit."
    )


def influence() -> str:
    """How often neighbors are influenced, beside their chance."""
    record = content("concepts.json")
    if record is None:
        return NOTHING
    said = [
        f"`{vertex}` {record['influenced'][vertex]:,} times (chance {chance:.3f})"
        for vertex, chance in record["chances"].items()
    ]
    return _filled(f"Of {record['seeds']:,} models that differ in their seed alone, the arrival moved {_listed(said)}.")


def anchor() -> str:
    """How far an anchor turns the rows inside, and how still what is served stays."""
    record = content("concepts.json")
    if record is None:
        return NOTHING
    found = record["anchor"]
    inside = f"{found['mean_cosine_inside']:.2f}".replace("-", "−")
    return _filled(
        f"Inside, the picture has turned by {abs(found['turn_degrees'])} degrees: the mean cosine of a row with its "
        f"former self is {inside}. What is served has been turned back: there it is {found['mean_cosine_served']:.2f}."
    )


def batch() -> str:
    """What is the same, and what is not, when edges come together or one by one."""
    record = content("concepts.json")
    if record is None:
        return NOTHING
    found = record["batch"]
    each = "; ".join(map(_vertices, found["apart"]["changed"]))
    return _filled(
        f"Together: {found['together']['batches']} batch, changed {_vertices(found['together']['changed'])}. An edge "
        f"at a time: {found['apart']['batches']} batches, changed {each}. The graph is the same in the end; the mean "
        f"cosine between the vectors of both is {found['mean_cosine']:.2f}."
    )


def _point(row: Sequence[float]) -> str:
    return f"({', '.join(f'{value:.2f}' for value in row)})".replace("-", "−")


def _vertices(ids: list[str]) -> str:
    return _listed([f"`{vertex}`" for vertex in ids]) or "nobody"


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _filled(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)
