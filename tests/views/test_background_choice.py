from __future__ import annotations

import os

import numpy as np
import pytest

from ripplevec.lab.datasets.synthetic import planted_partition
from ripplevec.views import background_choice
from ripplevec.views.background_choice import BackgroundChoice, restore_choice
from ripplevec.views.graph_sample import SampledGraph
from ripplevec.views.recipes import RECIPES
from ripplevec.views.view_choice import reconsider_views

DATA = planted_partition(communities=6, size=50, inside=8, elsewhere=1, seed=0)
GRAPH = SampledGraph(DATA.vertices, DATA.edges, np.ones(len(DATA.edges), np.float32))


def test_background_choice_equals_a_choice_in_the_foreground() -> None:
    assert BackgroundChoice(GRAPH, RECIPES, "communities", 8, 0).result() == reconsider_views(
        GRAPH, RECIPES, "communities", 8, 0, 1
    )


def test_saved_background_choice_is_restored() -> None:
    choice = BackgroundChoice(GRAPH, RECIPES, "sparse", 8, 0)
    restored = restore_choice(choice.state(), RECIPES, "sparse", 8, 0)
    assert restored is not None
    assert restored.result() == choice.result()
    assert restore_choice({}, RECIPES, "sparse", 8, 0) is None


def test_background_choice_in_a_forked_process_is_computed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = BackgroundChoice(GRAPH, RECIPES, "sparse", 8, 0)
    expected = choice.result()
    monkeypatch.setattr(choice, "_future", None)  # a child has no thread that completes it
    monkeypatch.setattr(background_choice, "getpid", lambda: os.getpid() + 1)
    assert choice.result() == expected
