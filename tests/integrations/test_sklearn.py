from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ripplevec import Embedder, InvalidValueError, UnknownVertexError
from ripplevec.integrations.sklearn import VertexVectors
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=3, size=40, inside=8, elsewhere=1.0, seed=1)
IDS, LABELS = np.arange(120), DATA.labels


@pytest.fixture(scope="module")
def fitted():
    """Return a fitted model that all tests share; they must not change it."""
    return Embedder(dim=6).fit(DATA.edges)


def test_clone_of_an_embedder_copies_parameters_only(fitted):
    copy = clone(fitted.__class__(dim=5, seed=3, anchor_growth=0.5).fit(DATA.edges))
    assert (copy.dim, copy.seed, copy.anchor_growth, len(copy)) == (5, 3, 0.5, 0)
    assert clone(fitted).fit(DATA.edges).digest() == fitted.digest()


def test_pipeline_with_vertex_vectors_classifies_vertices(fitted):
    pipeline = make_pipeline(VertexVectors(fitted), StandardScaler(), LogisticRegression())
    before = fitted.digest()
    scores = cross_val_score(pipeline, IDS, LABELS, cv=3)
    assert scores.min() > 0.8
    assert fitted.digest() == before
    assert pipeline.fit(IDS, LABELS).score(IDS, LABELS) > 0.9
    assert list(pipeline[:-1].get_feature_names_out()) == [f"vertexvectors{column}" for column in range(6)]


def test_clone_of_vertex_vectors_shares_the_growing_model():
    model = Embedder(dim=4).fit(DATA.edges)
    copy = clone(make_pipeline(VertexVectors(model)))
    model.add_vertex("new", [0, 1])
    assert np.array_equal(copy.transform(["new", 5]), model.vectors(["new", 5]))


def test_grid_search_with_edges_searches_model_parameters(fitted):
    before = fitted.digest()
    pipeline = make_pipeline(VertexVectors(fitted, DATA.edges), LogisticRegression())
    search = GridSearchCV(pipeline, {"vertexvectors__model__dim": [1, 6]}, cv=3).fit(IDS, LABELS)
    assert search.best_params_ == {"vertexvectors__model__dim": 6}
    assert (fitted.digest(), search.best_estimator_[0].model_.digest()) == (before, before)
    one = VertexVectors(fitted, DATA.edges)
    with pytest.raises(NotFittedError):
        one.transform(IDS)
    with pytest.raises(NotFittedError):
        check_is_fitted(one)


def test_model_parameters_without_edges_are_refused(fitted):
    step = VertexVectors(fitted)
    assert step.get_params() == {"model": fitted, "edges": None, "attributes": None}
    with pytest.raises(InvalidValueError, match="model__dim: expected edges="):
        step.set_params(model__dim=3)
    assert len(fitted) == 120
    assert step.set_params(model=Embedder(dim=2)).get_feature_names_out().size == 2


@pytest.mark.parametrize(
    "vertices",
    [
        [3, 1],
        (3, 1),
        np.array([3, 1]),
        np.array([[3], [1]]),
        pd.Series([3, 1]),
        pd.DataFrame({"vertex": [3, 1]}),
        pl.Series([3, 1]),
        pl.DataFrame({"vertex": [3, 1]}),
    ],
)
def test_transform_accepts_lists_columns_and_tables(fitted, vertices):
    assert np.array_equal(VertexVectors(fitted).transform(vertices), fitted.vectors([3, 1]))


def test_transform_of_unknown_vertices_is_refused():
    model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
    step = VertexVectors(model)
    for vertices in (np.array(["c", "a"]), np.array(["c", "a"], object), pd.DataFrame({"v": ["c", "a"]})):
        assert np.array_equal(step.fit_transform(vertices), model.vectors(["c", "a"]))
    with pytest.raises(UnknownVertexError, match="'z'"):
        step.transform(["a", "z"])
    with pytest.raises(InvalidValueError, match=r"one column, got 'shape \(2, 2\)'"):
        step.transform(np.array([["a", "b"], ["b", "c"]]))


def test_vertex_vectors_in_a_column_transformer_gives_a_frame(fitted):
    frame = pd.DataFrame({"vertex": [3, 1], "age": [20.0, 30.0]})
    columns = make_column_transformer((VertexVectors(fitted), ["vertex"]), (StandardScaler(), ["age"]))
    made = columns.set_output(transform="pandas").fit_transform(frame)
    assert list(made.columns) == [*(f"vertexvectors__vertexvectors{c}" for c in range(6)), "standardscaler__age"]
    assert np.array_equal(made.to_numpy()[:, :6].astype(np.float32), fitted.vectors([3, 1]))


def test_pipeline_with_vertex_vectors_can_be_pickled(fitted):
    pipeline = make_pipeline(VertexVectors(fitted), LogisticRegression()).fit(IDS, LABELS)
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.predict_proba(IDS), pipeline.predict_proba(IDS))


def test_vertex_vectors_with_edges_and_attributes_fits_both():
    attributes = {int(vertex): {f"label{LABELS[vertex]}": 1.0} for vertex in IDS}
    transformer = clone(VertexVectors(Embedder(dim=6), DATA.edges, attributes)).fit()
    expected = Embedder(dim=6).fit(DATA.edges, attributes=attributes)
    assert np.array_equal(transformer.transform(IDS), expected.vectors(IDS))
    with pytest.raises(InvalidValueError, match="attributes without edges"):
        VertexVectors(expected, attributes=attributes).fit()
