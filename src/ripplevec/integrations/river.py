"""A River transformer from arrivals to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, MissingExtraError, shorten

try:
    from river.base import Transformer
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.river", "river") from error

ARRIVAL_KEYS = ("vertex", "neighbors", "weights", "time", "attributes")


class StreamEmbedder(Transformer):  # type: ignore[misc]
    """Transformer from a stream of arrivals to the vectors of their vertices, for River pipelines.

    An arrival is a dictionary `{"vertex": …, "neighbors": […]}`, optionally with `"weights"`, `"time"` and
    `"attributes"`, which need the parameter `attribute_dim`. The key `"neighbours"` is accepted for `"neighbors"`. Any
    other key is an error, because a misspelled key would lose edges.
    If arrivals have other features, select the keys of the arrival first and add the features with `+`, as in
    `(compose.Select("vertex", "neighbors") | StreamEmbedder()) + compose.Select("age")`.

    Parameters
    ----------
    **parameters
        The parameters of `Embedder`.

    Attributes
    ----------
    model : Embedder
        The model; it may be replaced by a fitted one.

    Examples
    --------
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
        """Add the vertex with its edges; a vertex that exists gets them in addition.

        Parameters
        ----------
        x : dict
            The arrival.

        Raises
        ------
        InvalidValueError
            If `x` has no vertex, or a key that is not part of an arrival.
        """
        arrival = _check_arrival(x)
        vertex, neighbors = arrival["vertex"], arrival.get("neighbors", ())
        attributes = arrival.get("attributes")
        self.model.add_vertex(vertex, neighbors, arrival.get("weights"), arrival.get("time"), attributes=attributes)

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """Return the vector of the vertex, or the one it would get if it arrived now; the model does not change.

        Parameters
        ----------
        x : dict
            The arrival.

        Returns
        -------
        dict
            The coordinates of the vector, by dimension.

        Raises
        ------
        InvalidValueError
            If `x` has no vertex, or a key that is not part of an arrival.
        """
        arrival = _check_arrival(x)
        vertex = arrival["vertex"]
        vector = self.model[vertex] if vertex in self.model else self._preview_new_vertex(arrival)
        return dict(enumerate(vector.tolist()))

    def _preview_new_vertex(self, arrival: dict[Any, Any]) -> NDArray[np.float32]:
        """Return the vector of a new vertex, from its attributes and from those neighbors that the model contains."""
        neighbors: Sequence[Any] = arrival.get("neighbors", ())
        weights = arrival.get("weights")
        positions = [position for position, name in enumerate(neighbors) if name in self.model]
        known_weights = None if weights is None else [weights[position] for position in positions]
        known = [neighbors[position] for position in positions]
        return self.model.preview(known, known_weights, attributes=arrival.get("attributes"))

    def _unit_test_skips(self) -> set[str]:
        """Return the checks that cannot pass: every arrival needs a vertex, and a growing graph needs memory."""
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_bounded_memory_growth",
        }


def _check_arrival(x: dict[Any, Any]) -> dict[Any, Any]:
    """Return an arrival with the key "neighbors" in its US spelling; raise if a key is missing, unknown or doubled."""
    if "vertex" not in x:
        raise InvalidValueError.of("arrival", '{"vertex": …, "neighbors": […]}', x)
    if "neighbors" in x and "neighbours" in x:
        raise InvalidValueError.of("arrival", 'one of "neighbors" and "neighbours"', x)
    arrival = {"neighbors" if key == "neighbours" else key: value for key, value in x.items()}
    for key in arrival:
        if key not in ARRIVAL_KEYS:
            raise InvalidValueError(
                f"arrival: expected only the keys {', '.join(ARRIVAL_KEYS)}, got {shorten(key)}. "
                "Correct its spelling, or select the keys of the arrival with river.compose.Select."
            )
    return arrival
