"""Edges with a direction: what `directed` changes, what it does not, and what helps where directions matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ripplevec import Embedder
from ripplevec.lab import datasets
from ripplevec.lab.datasets.download import MissingDataError
from ripplevec.lab.evaluation import classify

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/bipartite-directed.md"
PAPERS, TOPICS, START = 2_000, 6, 1_000
SEEDS = (0, 1)

Edges = list[tuple[int, int]]


@cache
def citations(onwards: int, seed: int) -> tuple[Edges, NDArray[np.int64]]:
    """Papers that cite earlier ones of their own topic, or of the one so many further on; a quarter goes anywhere."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(TOPICS, size=PAPERS)
    edges: Edges = []
    for paper in range(5 * TOPICS, PAPERS):
        wanted = np.flatnonzero(topics[:paper] == (topics[paper] + onwards) % TOPICS)
        anywhere = rng.random(4) < 0.25
        cited = np.where(anywhere, rng.integers(paper, size=4), rng.choice(wanted, 4))
        edges += [(paper, other) for other in sorted(set(cited.tolist()))]
    return edges, topics


def streamed(model: Embedder, edges: Edges, named: Callable[[int, int], tuple[object, object]]) -> Embedder:
    """The first half of the papers as the start, the others twenty at a time."""
    model.fit([named(*edge) for edge in edges if edge[0] < START])
    for first in range(START, PAPERS, 20):
        model.partial_fit([named(*edge) for edge in edges if first <= edge[0] < first + 20])
    return model


def twice(citing: int, cited: int) -> tuple[object, object]:
    return f"{citing} cites", f"{cited} is cited"


def rows(model: Embedder, name: str) -> NDArray[np.float32]:
    names: list[int | str] = [name.format(paper) if name else paper for paper in range(PAPERS)]
    return np.array([model[paper] if paper in model else np.zeros(model.dim, np.float32) for paper in names])


def vectors(setting: str, edges: Edges) -> NDArray[np.float32]:
    if setting == "two vertices for each":
        model = streamed(Embedder(dim=16), edges, twice)
        return np.hstack([rows(model, "{} cites"), rows(model, "{} is cited")])
    directed = setting == "`directed=True`"
    return rows(streamed(Embedder(dim=32, directed=directed), edges, lambda *edge: edge), "")


@cache
def micro(setting: str, onwards: int) -> float:
    """Micro-F1 in % of a classifier trained on the start's papers, on the others, mean over the seeds."""
    scores = []
    for seed in SEEDS:
        edges, topics = citations(onwards, seed)
        found = vectors(setting, edges)
        scores.append(classify(found, topics, np.arange(START), np.arange(START, PAPERS)).micro)
    return float(100 * np.mean(scores))


SETTINGS = ("`directed=False` (the default)", "`directed=True`", "two vertices for each")


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_page_says_how_well_topics_are_told(setting: str) -> None:
    ((own, onwards),) = re.findall(rf"^\| {re.escape(setting)} \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.M)
    assert [float(own), float(onwards)] == pytest.approx([micro(setting, 0), micro(setting, 1)], abs=2.0)


def test_two_vertices_for_each_help_where_directions_carry_the_meaning_and_only_there() -> None:
    default, directed, two = SETTINGS
    assert micro(two, 1) > micro(default, 1) + 10
    assert micro(two, 0) < micro(default, 0)
    for onwards in (0, 1):
        assert micro(directed, onwards) == pytest.approx(micro(default, onwards), abs=2.0)


def share_told(onwards: int, seed: int) -> float:
    """How often, of citations left out, the cosine is higher in their direction than in the other."""
    edges, _ = citations(onwards, seed)
    out = np.random.default_rng(seed).random(len(edges)) < 0.1
    model = Embedder(dim=32).fit([twice(*edge) for edge, left in zip(edges, out, strict=True) if not left])
    asked = [edge for edge, left in zip(edges, out, strict=True) if left]
    asked = [(a, b) for a, b in asked if all(name in model for name in (*twice(a, b), *twice(b, a)))]
    forwards, backwards = (
        np.array([model[citing] @ model[cited] for citing, cited in pairs])
        for pairs in ([twice(a, b) for a, b in asked], [twice(b, a) for a, b in asked])
    )
    return float(100 * np.mean(forwards > backwards))


def test_two_vertices_for_each_tell_which_way_an_edge_goes() -> None:
    (said,) = re.findall(r"in (\d+) % of the citations left out", PAGE.read_text())
    assert float(said) == pytest.approx(np.mean([share_told(1, seed) for seed in SEEDS]), abs=4.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_on_cora_directions_make_no_difference_to_the_classes(seed: int) -> None:
    try:
        labels, pairs = datasets.load("cora").labels, np.loadtxt(datasets.fetch("cora")[0], dtype=np.int64)
    except MissingDataError as error:
        pytest.skip(f"set RIPPLEVEC_DATA to run this: {error}")
    place = np.argsort(np.random.default_rng(seed).permutation(len(labels)))
    pairs, half = pairs[np.argsort(place[pairs].max(axis=1))], len(labels) // 2
    begun = int((place[pairs].max(axis=1) < half).sum())
    scores, parts = [], (np.flatnonzero(place < half), np.flatnonzero(place >= half))
    for directed in (False, True):
        model = Embedder(dim=90, directed=directed).fit(pairs[:begun])
        for first in range(begun, len(pairs), 10):
            model.partial_fit(pairs[first : first + 10])
        scores.append(classify(model.vectors(range(len(labels))), labels, *parts))
    assert scores[1].micro == pytest.approx(scores[0].micro, abs=0.02)
    assert scores[0].micro > 0.79
