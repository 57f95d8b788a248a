"""British spelling in the search index of the site."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs/_hooks"
SPELLINGS = """
analyze analyse, behavior behaviour, canceled cancelled, center centre, centered centred, centering centring,
colors colours, factorization factorisation, factorized factorised, favor favour, generalize generalise, gray grey,
initialize initialise, labeled labelled, maximizing maximising, minimize minimise, modeling modelling,
neighborhood neighbourhood, normalization normalisation, normalizing normalising, optimization optimisation,
orthonormalize orthonormalise, recognizing recognising, regularization regularisation, serialize serialise,
standardized standardised, summarize summarise, symmetrize symmetrise, synchronize synchronise, unlabeled unlabelled,
unnormalized unnormalised, vectorize vectorise, visualization visualisation
"""
PAIRS = [tuple(pair.split()) for pair in SPELLINGS.split(",")]  # US and British spelling
Translate = Callable[[str], list[str]]


@pytest.fixture
def translate(monkeypatch: pytest.MonkeyPatch) -> Translate:
    """Return the function that translates the words of a page."""
    monkeypatch.syspath_prepend(HOOKS)
    function: Translate = import_module("search_spelling").translate
    return function


@pytest.mark.parametrize(("american", "british"), PAIRS)
def test_translate_returns_the_british_spelling(translate: Translate, american: str, british: str) -> None:
    assert any(word.startswith(british) for word in translate(american.capitalize()))


def test_translate_returns_all_forms_of_a_verb(translate: Translate) -> None:
    assert translate("unnormalized") == translate("unnormalizing")
    assert translate("Normalize") == ["normalisations", "normalised", "normaliser", "normalises", "normalising"]


def test_translate_leaves_words_that_have_one_spelling(translate: Translate) -> None:
    text = "size batch_size figsize resized prize horizon orthonormal collaborator laboratory modeled_once center_of"
    assert translate(text) == ["centre", "modelled"]


def test_search_finds_british_spelling(site: Path) -> None:
    sections = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {section["location"] for section in sections if "neighbours" in section["text"]}
    assert "concepts.html" in {location.partition("#")[0] for location in found}
    for american, british in PAIRS:
        texts = [section["text"].lower() for section in sections]
        written = [text for text in texts if re.search(rf"\b{american}\b", text)]
        assert [text for text in written if not re.search(rf"\b{british}", text)] == [], british
