"""Vectors that follow the stream are fresher than those of a nightly job, and the notebook matches the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.temporal import load_stream


@pytest.mark.timeout(1800)  # minutes on two free cores
def test_wikipedia_results_match_the_page(run_tutorial: Callable[[str], dict[str, Any]]) -> None:
    try:
        load_stream("tgbl-wiki")
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    results = run_tutorial("wikipedia")
    streamed, often, nightly, never = (results[name].mean() for name in ("streamed", "often", "nightly", "never"))
    assert streamed > often > nightly + 0.02
    assert nightly > never + 0.2
    first, later = results["is_first"], ~results["is_first"]
    assert results["streamed"][first].mean() == pytest.approx(results["nightly"][first].mean(), abs=0.03)
    assert results["streamed"][later].mean() > results["nightly"][later].mean() + 0.04
    assert results["one_night"] > 0.95
    assert len(results["maps"]) == 24


def test_wikipedia_notebook_has_the_cells_of_the_page(build: ModuleType) -> None:
    notebook = json.loads((build.PAGES / "wikipedia.ipynb").read_text())
    cells = build.parse_cells((build.SCRIPTS / "wikipedia.py").read_text())
    assert ["".join(cell["source"]) for cell in notebook["cells"]] == [cell.source for cell in cells]
    pictures = [
        kind for cell in notebook["cells"] for output in cell.get("outputs", ()) for kind in output.get("data", ())
    ]
    assert (pictures.count("image/png"), pictures.count("image/gif")) == (3, 1)
