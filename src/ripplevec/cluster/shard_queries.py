"""Asking shards: what each says of its rows, put together in the order in which rows were asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.cluster.partition import shares
from ripplevec.cluster.transport import Crew

Rows = NDArray[np.int64]


class Asking:
    """Whoever asks a crew. A row, to whoever is not a shard, is (the row on its shard) · shards + (the shard)."""

    crew: Crew

    def ask(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """What every shard says, the i-th asked with the i-th of each column."""
        return self.crew.get(self.ask_for(method, *columns, **constants))

    def ask_for(self, method: str, *columns: Sequence[Any], **constants: Any) -> list[Any]:
        """The same, but the answers stay where they are until somebody looks at them."""
        return self.crew.call(method, *columns, **constants)

    def asked(self, method: str, rows: Rows, *columns: Rows, **constants: Any) -> tuple[list[Any], list[Rows]]:
        """What each shard says of its rows, and where in `rows` these are."""
        places = self._places(rows)
        mine = [rows[place] // self.crew.size for place in places]
        others = ([column[place] for place in places] for column in columns)
        return self.ask(method, mine, *others, **constants), places

    def of_rows(self, rows: Rows, what: str) -> NDArray[Any]:
        """A number for each row, or its vector as it is kept."""
        return assembled(*self.asked("of_rows", rows, what=what))

    def edges_of(self, rows: Rows, what: str) -> NDArray[Any]:
        """A number for each edge of rows, row by row: the `code` of the neighbor, or one of the weights."""
        answers, places = self.asked("edges_of", rows, what=what)
        degree = assembled([count for count, _ in answers], places)
        begin = np.cumsum(degree) - degree
        slots = [_spans(begin[place], count) for place, (count, _) in zip(places, answers, strict=True)]
        return assembled([values for _, values in answers], slots)

    def _tell(self, method: str, rows: Rows, *columns: NDArray[Any]) -> None:
        places = self._places(rows)
        mine = [rows[place] // self.crew.size for place in places]
        self.crew.call(method, mine, *([column[place] for place in places] for column in columns))

    def _places(self, rows: Rows) -> list[Rows]:
        return shares(rows % self.crew.size, self.crew.size)

    def _on_its_shard(self, code: int) -> list[int]:
        """One row for whoever has it, −1 for the others."""
        shards = self.crew.size
        return [code // shards if code % shards == shard else -1 for shard in range(shards)]


def assembled(parts: list[NDArray[Any]], places: list[Rows]) -> NDArray[Any]:
    """Parts as one array, each entry at its place."""
    whole = np.concatenate(parts)
    out = np.empty_like(whole)
    out[np.concatenate(places)] = whole
    return out


def _spans(begin: Rows, count: Rows) -> Rows:
    """begin, begin + 1, … as many as counted, one span after the other."""
    ends = np.cumsum(count)
    return np.repeat(begin - (ends - count), count) + np.arange(int(count.sum()))
