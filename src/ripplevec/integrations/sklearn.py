"""A model as a step of a scikit-learn pipeline: vertices go in, vectors come out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.embedder import Embedder
from ripplevec.errors import InvalidValueError, MissingExtraError

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise MissingExtraError("ripplevec.integrations.sklearn", "sklearn") from error


class VertexVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns vertices into their vectors.

    Without `edges` the model is taken as it is, and copies of the step share it: folds of a cross-validation differ in
    labels, not in the graph, and a model that grows is seen as it has grown. With `edges`, `fit` embeds them anew with
    the parameters of the model, which may then be searched: `model__dim`.
    """

    def __init__(self, model: Embedder, edges: Any = None) -> None:
        self.model = model
        self.edges = edges

    def fit(self, X: Any = None, y: Any = None) -> VertexVectors:
        """Embed the edges, if there are any; which vertices are asked for does not matter."""
        self.model_ = self.model if self.edges is None else clone(self.model).fit(self.edges)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The vectors of vertices: a list, a column, or a table of one column."""
        check_is_fitted(self)
        return self._held.vectors(_one_column(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; those of the model only where it is fitted here."""
        return dict(super().get_params(deep=deep and self.edges is not None))

    def set_params(self, **params: Any) -> VertexVectors:
        """Change parameters; those of the model only where it is fitted here: else a graph in use would be lost."""
        edges = params.get("edges", self.edges)
        inner = [name for name in params if name.startswith("model__")]
        if inner and edges is None:
            raise InvalidValueError.of(inner[0], "edges=…, to fit a model anew with it", "a model taken as it is")
        super().set_params(**params)
        return self

    @property
    def _held(self) -> Embedder:
        return self.model if self.edges is None else self.model_

    @property
    def _n_features_out(self) -> int:
        return self._held.dim

    def __sklearn_is_fitted__(self) -> bool:
        return self.edges is None or hasattr(self, "model_")

    def __sklearn_clone__(self) -> VertexVectors:
        return VertexVectors(self.model if self.edges is None else clone(self.model), self.edges)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.edges is not None
        tags.no_validation = True
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = False, True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _one_column(X: Any) -> Any:
    """Ids as the model takes them, out of what a pipeline hands on."""
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    if getattr(table, "ndim", 1) == 1:
        return table
    if table.ndim != 2 or table.shape[1] != 1:
        raise InvalidValueError.of("X", "vertices in one column", f"shape {table.shape}")
    return table[:, 0]
