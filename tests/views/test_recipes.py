from __future__ import annotations

import pytest

from ripplevec import Embedder, SpectralView
from ripplevec.errors import InvalidValueError
from ripplevec.views.recipes import DENSE_MEAN_DEGREE, RECIPES, recipe_by_density

EDGES = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]


def test_recipes_are_ordered_by_their_number_of_views() -> None:
    counts = [len(views) for views in RECIPES.values()]
    assert counts == sorted(counts)


def test_recipe_by_density_of_a_dense_graph_has_a_hub_view_unless_it_is_bipartite() -> None:
    assert recipe_by_density(DENSE_MEAN_DEGREE - 0.01) == "sparse"
    assert len(RECIPES[recipe_by_density(DENSE_MEAN_DEGREE)]) == 2
    assert len(RECIPES[recipe_by_density(DENSE_MEAN_DEGREE, bipartite=True)]) == 1


@pytest.mark.parametrize("name", RECIPES)
def test_recipe_name_selects_its_views(name: str) -> None:
    model = Embedder(dim=4, views=name).fit(EDGES)
    assert tuple(model.engine.rule.coordinates.views) == tuple(RECIPES[name])  # type: ignore[union-attr]
    assert model.diagnostics()["views"] == name


@pytest.mark.parametrize("views", ["dense", {}, {"a": []}, {1: [SpectralView(tau=1)]}, {"a": "auto"}, [1], 5])
def test_invalid_views_raise(views: object) -> None:
    with pytest.raises(InvalidValueError, match="views"):
        Embedder(views=views).fit(EDGES)  # type: ignore[arg-type]
