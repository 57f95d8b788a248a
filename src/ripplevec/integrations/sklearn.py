"""A scikit-learn transformer from vertex ids to vectors."""

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
    """Transformer from vertex ids to their vectors, for scikit-learn pipelines.

    Parameters
    ----------
    model : Embedder
        The model that holds the vectors.
    edges : edge list, optional
        By default the model is used as it is, and clones share it: the folds of a cross-validation differ in labels,
        not in the graph, and a growing model is seen in its current state. With `edges`, `fit` embeds them with the
        parameters of the model, which can then be searched as `model__dim` and so on.
    attributes : mapping, pair or table, optional
        Attributes of vertices for `fit`, in any form that `Embedder.fit` accepts. Needs `edges`.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> model = Embedder(dim=4).fit([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)])
    >>> pipeline = make_pipeline(VertexVectors(model), LogisticRegression())
    >>> pipeline.fit([0, 1, 4, 5], ["left", "left", "right", "right"]).predict([2, 3]).shape
    (2,)
    """

    def __init__(self, model: Embedder, edges: Any = None, attributes: Any = None) -> None:
        self.model = model
        self.edges = edges
        self.attributes = attributes

    def fit(self, X: Any = None, y: Any = None) -> VertexVectors:
        """Embed `edges`, with `attributes`, if given; `X` and `y` are ignored."""
        if self.edges is None and self.attributes is not None:
            raise InvalidValueError.of("attributes", "none for a fitted model", "attributes without edges")
        fit_edges = self.edges is not None
        self.model_ = clone(self.model).fit(self.edges, attributes=self.attributes) if fit_edges else self.model
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the vectors of vertices.

        Parameters
        ----------
        X : list, column, or table with one column
            Ids of the vertices.

        Returns
        -------
        ndarray of shape (len(X), dim)
            One row per vertex.

        Raises
        ------
        UnknownVertexError
            If some vertices are unknown.
        """
        check_is_fitted(self)
        return self._fitted_model.vectors(_one_column(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of the model are included only if `fit` embeds `edges`."""
        return dict(super().get_params(deep=deep and self.edges is not None))

    def set_params(self, **params: Any) -> VertexVectors:
        """Set parameters. Model parameters need `edges`; otherwise a graph in use would be lost.

        Parameters
        ----------
        **params
            `model`, `edges`, `attributes`, or a parameter of the model with the prefix `model__`.

        Returns
        -------
        VertexVectors
            The transformer itself.
        """
        edges = params.get("edges", self.edges)
        model_parameters = [name for name in params if name.startswith("model__")]
        if model_parameters and edges is None:
            raise InvalidValueError.of(
                model_parameters[0], "edges=… to fit a new model with it", "a fitted model without edges"
            )
        super().set_params(**params)
        return self

    @property
    def _fitted_model(self) -> Embedder:
        return self.model if self.edges is None else self.model_

    @property
    def _n_features_out(self) -> int:
        return self._fitted_model.dim

    def __sklearn_is_fitted__(self) -> bool:
        return self.edges is None or hasattr(self, "model_")

    def __sklearn_clone__(self) -> VertexVectors:
        model = self.model if self.edges is None else clone(self.model)
        return VertexVectors(model, self.edges, self.attributes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.edges is not None
        tags.no_validation = True
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = False, True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _one_column(X: Any) -> Any:
    """Return the ids from the input of a pipeline: a column, or a table with one column."""
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    if getattr(table, "ndim", 1) == 1:
        return table
    if table.ndim != 2 or table.shape[1] != 1:
        raise InvalidValueError.of("X", "vertices in one column", f"shape {table.shape}")
    return table[:, 0]
