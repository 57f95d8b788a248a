from __future__ import annotations

import functools

import numpy as np
import pytest
from river import checks, compose, linear_model, metrics, multiclass, preprocessing

from ripplevec import Embedder, InvalidValueError
from ripplevec.integrations.river import StreamEmbedder
from ripplevec.lab.datasets.synthetic import planted_partition

DATA = planted_partition(communities=3, size=40, inside=8, elsewhere=1.0, seed=1)
LABELS = DATA.labels.tolist()


def arrivals(count=120):
    """Return vertices in random order, each with its edges to earlier vertices, and its community."""
    rng = np.random.default_rng(0)
    position = rng.permutation(120)
    earlier = {int(vertex): [] for vertex in np.argsort(position)}
    for a, b in DATA.edges.tolist():
        new, old = (a, b) if position[a] > position[b] else (b, a)
        earlier[new].append(old)
    return [({"vertex": v, "neighbors": n}, LABELS[v]) for v, n in list(earlier.items())[:count]]


def applicable_checks():
    """Return the checks of River that do not contradict a growing graph."""
    return [
        check
        for check in checks.yield_checks(StreamEmbedder(dim=4))
        if check.__name__ not in StreamEmbedder()._unit_test_skips()
    ]


@pytest.mark.parametrize("check", applicable_checks(), ids=lambda check: check.__name__)
def test_stream_embedder_passes_the_checks_of_river(check):
    """Pass arrivals to checks that need data, because the data sets of River contain no vertices."""
    model = StreamEmbedder(dim=4)
    if isinstance(check, functools.partial):
        check.func(model, dataset=arrivals(60))
    else:
        check(model)


def test_stream_embedder_in_a_pipeline_learns_and_equals_an_embedder():
    classify = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    pipeline = StreamEmbedder(dim=8) | preprocessing.StandardScaler() | classify
    late = metrics.Accuracy()
    for number, (x, y) in enumerate(arrivals()):
        if number >= 80:
            late.update(y, pipeline.predict_one(x))
        pipeline.learn_one(x, y)
    assert late.get() > 0.8
    model = pipeline["StreamEmbedder"].model
    plain = Embedder(dim=8)
    for x, _ in arrivals():
        plain.add_vertex(x["vertex"], x["neighbors"])
    assert model.digest() == plain.digest()


def test_stream_embedder_can_be_combined_with_other_features():
    features = (compose.Select("vertex", "neighbors") | StreamEmbedder(dim=2)) + compose.Select("age")
    x = {"vertex": "a", "neighbors": ["b"], "age": 3}
    features.learn_one(x)
    assert features.transform_one(x).keys() == {0, 1, "age"}


def test_transform_one_of_a_new_vertex_equals_preview():
    step = StreamEmbedder(dim=4)
    step.model = Embedder(dim=4).fit(DATA.edges)
    before = step.model.digest()
    seen = step.transform_one({"vertex": "new", "neighbors": [0, "unknown", 1], "weights": [1, 9, 2]})
    assert step.model.digest() == before
    assert list(seen.values()) == step.model.preview([0, 1], [1, 2]).tolist()
    assert set(step.transform_one({"vertex": "newer"}).values()) == {0.0}
    step.learn_one({"vertex": "new", "neighbors": [0, 1], "weights": [1, 2]})
    assert list(step.transform_one({"vertex": "new"}).values()) == step.model["new"].tolist()
    assert step.model.neighbors("new") == [(1, 2.0), (0, 1.0)]


@pytest.mark.parametrize("method", ["learn_one", "transform_one"])
def test_stream_embedder_without_vertex_raises(method):
    with pytest.raises(InvalidValueError, match=r"arrival: expected .*vertex.*got {'node': 1}"):
        getattr(StreamEmbedder(), method)({"node": 1})


def test_stream_embedder_accepts_times_of_arrivals():
    embedder = StreamEmbedder(dim=2, half_life=10.0)
    embedder.learn_one({"vertex": "a", "neighbors": ["b"], "time": 0})
    embedder.learn_one({"vertex": "c", "neighbors": ["b"], "time": 20})
    assert embedder.model.neighbors("b") == [("c", 1.0), ("a", 0.25)]


@pytest.mark.parametrize("key", ["neighbors", "neighbours"])
def test_stream_embedder_accepts_either_spelling_of_neighbors(key):
    embedder = StreamEmbedder(dim=2)
    embedder.learn_one({"vertex": "a", key: ["b", "c"], "weights": [1, 2]})
    assert embedder.model.neighbors("a") == [("c", 2.0), ("b", 1.0)]
    preview = embedder.transform_one({"vertex": "new", key: ["b"]})
    assert list(preview.values()) == embedder.model.preview(["b"]).tolist()


@pytest.mark.parametrize("method", ["learn_one", "transform_one"])
@pytest.mark.parametrize(
    ("arrival", "message"),
    [
        ({"vertex": "a", "neighbors": ["b"], "neighbours": ["b"]}, 'one of "neighbors" and "neighbours", got'),
        (
            {"vertex": "a", "neigbors": ["b"]},
            r"only the keys vertex, neighbors, weights, time, attributes, got 'neigbors'\. Correct",
        ),
        ({"vertex": "a", "neighbors": ["b"], "age": 3}, r"got 'age'\. .*river\.compose\.Select"),
    ],
)
def test_stream_embedder_with_doubled_or_unknown_key_raises(method, arrival, message):
    embedder = StreamEmbedder(dim=2)
    with pytest.raises(InvalidValueError, match=message):
        getattr(embedder, method)(arrival)
    assert len(embedder.model) == 0


def test_arrival_with_attributes_is_learned_and_transformed():
    step = StreamEmbedder(dim=6, attribute_dim=3, start_size=4)
    for vertex in range(1, 12):
        step.learn_one({"vertex": vertex, "neighbors": [vertex // 2], "attributes": {f"tag{vertex % 2}": 1.0}})
    newcomer = {"vertex": "new", "attributes": {"tag1": 1.0}}
    expected = step.model.preview(attributes={"tag1": 1.0})
    assert list(step.transform_one(newcomer).values()) == expected.tolist()
    assert expected.any()
    assert "new" not in step.model
