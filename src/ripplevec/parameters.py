"""The parameters of an Embedder: their defaults, what each may be, and what "auto" means for each rule."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ripplevec.batch import MAX_TIME
from ripplevec.errors import InvalidValueError, check_choice
from ripplevec.graph.adjacency import DUPLICATE_POLICIES
from ripplevec.graph.graph import Graph
from ripplevec.rules.base import Rule
from ripplevec.rules.paper import ON_EMPTY, PaperRule
from ripplevec.rules.ripple import RippleRule
from ripplevec.search.searcher import check_search_method
from ripplevec.temporal.edge_aging import EdgeAging
from ripplevec.util.parallel import resolve_threads
from ripplevec.views.base import View
from ripplevec.views.laplacian import NORMALIZATIONS
from ripplevec.views.spectral import SpectralView, auto_views

STORAGE_DTYPES: dict[str, type[np.floating[Any]]] = {"auto": np.float32, "float32": np.float32, "float16": np.float16}
DEFAULT_ANCHOR_GROWTH = 0.05
MOST_COLUMNS = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """A checked set of parameters."""

    dim: int
    rule: str
    depth: int | None
    views: str | Sequence[View]
    anchor_growth: str | float
    seed: int
    max_reads: int
    storage: str
    storage_dir: str | PathLike[str] | None = None  # of this machine: it is not saved
    directed: bool
    duplicates: str
    normalize: str | bool
    start_size: str | int
    change_threshold: float
    on_empty: str
    normalization: str
    reuse_influence: bool
    threads: int | None
    search: str
    half_life: float | None = None
    expire_after: float | None = None

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_choice("duplicates", self.duplicates, DUPLICATE_POLICIES)
        check_choice("on_empty", self.on_empty, ON_EMPTY)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_search_method(self.search)
        check_choice("storage", self.storage, STORAGE_DTYPES)
        _whole("dim", self.dim, 1, MOST_COLUMNS)
        _whole("max_reads", self.max_reads, 1, 2**31 - 1)
        _whole("seed", self.seed, 0, 2**63 - 1)
        if self.depth is not None:
            _whole("depth", self.depth, 0, 2**31 - 1)
        if self.threads is not None:
            _whole("threads", self.threads, 1)
        if self.start_size != "auto":
            _whole("start_size", self.start_size, 2)
        if self.anchor_growth != "auto":
            _number("anchor_growth", self.anchor_growth)
        _number("change_threshold", self.change_threshold)
        for name in ("directed", "reuse_influence"):
            _flag(name, getattr(self, name))
        if self.normalize != "auto":
            _flag("normalize", self.normalize)
        check_storage_dir(self.storage_dir)
        for name in ("half_life", "expire_after"):
            self._check_span(name, getattr(self, name))
        self._check_views()
        self._check_paper()

    def _check_span(self, name: str, value: Any) -> None:
        good = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if value is not None and not (good and 1 / MAX_TIME <= value <= sys.float_info.max):
            raise InvalidValueError.of(name, "None, or a number > 0 in the unit of the times of events", value)
        if value is not None and self.rule != "ripple":
            raise InvalidValueError.of(name, f'None with rule "{self.rule}": only "ripple" forgets', value)

    def _check_views(self) -> None:
        if isinstance(self.views, str):
            check_choice("views", self.views, ("auto",))
        elif not isinstance(self.views, Sequence) or not self.views:
            raise InvalidValueError.of("views", '"auto" or a list of views', self.views)
        elif not all(isinstance(view, SpectralView) for view in self.views):
            raise InvalidValueError.of("views", "views such as SpectralView(tau=0.5)", self.views)

    def _check_paper(self) -> None:
        if self.rule != "paper":
            if self.reuse_influence:
                raise InvalidValueError.of("reuse_influence", 'False unless rule is "paper"', True)
            return
        if self.views != "auto":
            raise InvalidValueError.of("views", '"auto" with rule "paper", which has one view of its own', self.views)
        if self.anchor_growth not in ("auto", 0):
            raise InvalidValueError.of("anchor_growth", '0 or "auto" with rule "paper"', self.anchor_growth)
        if self.storage != "auto":
            raise InvalidValueError.of("storage", '"auto" with rule "paper", which needs float64', self.storage)
        if self.normalize not in ("auto", False):
            raise InvalidValueError.of("normalize", 'False or "auto" with rule "paper"', self.normalize)

    @property
    def resolved_anchor_growth(self) -> float:
        """By which share the graph grows between anchors; 0: there are none."""
        if self.anchor_growth == "auto":
            return DEFAULT_ANCHOR_GROWTH if self.rule == "ripple" else 0.0
        return float(self.anchor_growth)

    @property
    def resolved_start_size(self) -> int:
        """How many vertices with edges a model that began empty needs for its start."""
        return 2 * self.dim if self.start_size == "auto" else int(self.start_size)

    def create_graph(self) -> Graph:
        """An empty graph."""
        return Graph(directed=self.directed, duplicates=self.duplicates)

    def create_edge_aging(self) -> EdgeAging | None:
        """What the graph forgets as time goes by; None where it keeps everything."""
        if self.half_life is None and self.expire_after is None:
            return None
        return EdgeAging(self.half_life, self.expire_after, directed=self.directed)

    def create_rule(self) -> Rule:
        """The rule, having learned nothing yet."""
        return RULES[self.rule](self)

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON has them, without those that belong to a machine."""
        plain = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name != "storage_dir"}
        if not isinstance(self.views, str):
            plain["views"] = [
                {name: _plain(value) for name, value in asdict(view).items()}  # type: ignore[call-overload]
                for view in self.views
            ]
        return plain

    @staticmethod
    def from_json(plain: dict[str, Any]) -> dict[str, Any]:
        """The arguments of an Embedder that `to_json` wrote."""
        views = plain["views"]
        return plain | {"views": views if isinstance(views, str) else [SpectralView(**view) for view in views]}


def _ripple(given: Parameters) -> Rule:
    views = given.views
    return RippleRule(
        given.dim,
        auto_views if isinstance(views, str) else lambda _: views,
        normalize=given.normalize in ("auto", True),
        depth=given.depth,
        seed=given.seed,
        max_reads=given.max_reads,
        threads=resolve_threads(given.threads),
        precision=STORAGE_DTYPES[given.storage],
        directory=given.storage_dir,
    )


def _paper(given: Parameters) -> Rule:
    return PaperRule(
        given.dim,
        depth=given.depth,
        seed=given.seed,
        on_empty=given.on_empty,
        normalization=given.normalization,
        reuse_influence=given.reuse_influence,
    )


RULES: dict[str, Callable[[Parameters], Rule]] = {"ripple": _ripple, "paper": _paper}
"""Every rule by its name: how it is made of the parameters it heeds."""


def check_storage_dir(value: str | PathLike[str] | None) -> None:
    """Refuse a place for vectors that is not there."""
    if value is not None and not Path(value).is_dir():
        raise InvalidValueError.of("storage_dir", "a directory that exists", value)


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and ≤ {most:,}"
        raise InvalidValueError.of(name, f"a whole number ≥ {least}{limit}", value)


def _number(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= float(value) < float("inf"):
        raise InvalidValueError.of(name, "a number ≥ 0", value)


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidValueError.of(name, "True or False", value)
