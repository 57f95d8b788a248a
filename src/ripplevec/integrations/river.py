"""A model as a transformer of River: arrivals go in one by one, vectors come out as features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, MissingExtraError

try:
    from river.base import Transformer
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.river", "river") from error


class StreamEmbedder(Transformer):  # type: ignore[misc]
    """Embeds the vertices of a stream of arrivals, `{"vertex": …, "neighbors": […]}`, with `"weights"` or a `"time"`.

    The parameters are those of `Embedder`; it is there as `model`, and may be replaced by one that has been fitted.
    Other features of an arrival are left alone: join them with `+`, as River does.

    >>> from river import linear_model
    >>> pipeline = StreamEmbedder(dim=4) | linear_model.LogisticRegression()
    >>> pipeline.learn_one({"vertex": "a", "neighbors": ["b", "c"]}, True)
    >>> pipeline.predict_one({"vertex": "d", "neighbors": ["a", "b"]})
    False
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters
        self.model = Embedder(**parameters)

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Let the vertex arrive with its edges; a known one gets them in addition."""
        self.model.add_vertex(_vertex(x), x.get("neighbors", ()), x.get("weights"), x.get("time"))

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """The vector of the vertex, or the one it would get if it arrived now; nothing changes."""
        vertex = _vertex(x)
        vector = self.model[vertex] if vertex in self.model else self._newcomer(x)
        return dict(enumerate(vector.tolist()))

    def _newcomer(self, x: dict[Any, Any]) -> NDArray[np.float32]:
        neighbors: Sequence[Any] = x.get("neighbors", ())
        weights = x.get("weights")
        known = [place for place, name in enumerate(neighbors) if name in self.model]
        shares = None if weights is None else [weights[place] for place in known]
        return self.model.preview([neighbors[place] for place in known], shares)

    def _unit_test_skips(self) -> set[str]:
        """An arrival without a vertex is none, and a graph that grows takes memory."""
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_bounded_memory_growth",
        }


def _vertex(x: dict[Any, Any]) -> Any:
    if "vertex" not in x:
        raise InvalidValueError.of("arrival", '{"vertex": …, "neighbors": […]}', x)
    return x["vertex"]
