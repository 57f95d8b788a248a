"""Validation of the `Embedder` parameters, and the meaning of "auto" for each rule.

Names, types, defaults and descriptions are declared by `Embedder`. To add a parameter, add the field and its docstring
entry there, and the field and its check here; a test compares the two.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ripplevec.attributes.store import AttributeSettings
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
from ripplevec.views.laplacian import COMPONENTS, NORMALIZATIONS
from ripplevec.views.recipes import RECIPES, Recipes
from ripplevec.views.spectral import SpectralView

RuleName: TypeAlias = Literal["ripple", "paper"]
DuplicatePolicy: TypeAlias = Literal["add", "ignore", "replace"]
AnchorPace: TypeAlias = Literal["gradual", "immediate"]
Storage: TypeAlias = Literal["auto", "float32", "float16"]
SearchMethod: TypeAlias = Literal["auto", "exact", "ann"]
EmptyInfluence: TypeAlias = Literal["neighbors", "zero", "resample"]
LaplacianNormalization: TypeAlias = Literal["symmetric", "random-walk", "unnormalized"]
LaplacianComponents: TypeAlias = Literal["together", "separate"]
ViewsLike: TypeAlias = str | Sequence[SpectralView] | Mapping[str, Sequence[SpectralView]]
"""Views: "auto", the name of a recipe, views, or named views to choose from."""

STORAGE_DTYPES: dict[str, type[np.floating[Any]]] = {"auto": np.float32, "float32": np.float32, "float16": np.float16}
ANCHOR_PACES = ("gradual", "immediate")
DEFAULT_ANCHOR_GROWTH = 0.05
MAX_DIM = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Validated parameters of an `Embedder`."""

    dim: int
    rule: RuleName
    depth: int | None
    views: ViewsLike
    anchor_growth: Literal["auto"] | float
    anchor_pace: AnchorPace
    seed: int
    max_reads: int
    storage: Storage
    storage_dir: str | PathLike[str] | None = None  # not saved: the directory depends on the machine
    directed: bool
    duplicates: DuplicatePolicy
    normalize: Literal["auto"] | bool
    start_size: Literal["auto"] | int
    change_threshold: float
    on_empty: EmptyInfluence
    late_placement: bool
    normalization: LaplacianNormalization
    components: LaplacianComponents
    reuse_influence: bool
    threads: int | None
    search: SearchMethod
    half_life: float | None = None
    expire_after: float | None = None
    max_time_jump: float | None = None
    attribute_dim: Literal["auto"] | int = "auto"
    attribute_weight: Literal["auto"] | float = "auto"
    keep_attributes: bool = True

    def __post_init__(self) -> None:
        check_choice("rule", self.rule, RULES)
        check_choice("duplicates", self.duplicates, DUPLICATE_POLICIES)
        check_choice("on_empty", self.on_empty, ON_EMPTY)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("components", self.components, COMPONENTS)
        check_search_method(self.search)
        check_choice("storage", self.storage, STORAGE_DTYPES)
        _check_integer("dim", self.dim, 1, MAX_DIM)
        _check_integer("max_reads", self.max_reads, 1, 2**31 - 1)
        _check_integer("seed", self.seed, 0, 2**63 - 1)
        if self.depth is not None:
            _check_integer("depth", self.depth, 0, 2**31 - 1)
        if self.threads is not None:
            _check_integer("threads", self.threads, 1)
        if self.start_size != "auto":
            _check_integer("start_size", self.start_size, 2)
        if self.anchor_growth != "auto":
            _check_nonnegative("anchor_growth", self.anchor_growth)
        check_choice("anchor_pace", self.anchor_pace, ANCHOR_PACES)
        _check_nonnegative("change_threshold", self.change_threshold)
        for name in ("directed", "late_placement", "reuse_influence"):
            _check_bool(name, getattr(self, name))
        if self.normalize != "auto":
            _check_bool("normalize", self.normalize)
        check_storage_dir(self.storage_dir)
        for name in ("half_life", "expire_after", "max_time_jump"):
            self._check_duration(name, getattr(self, name))
        self._check_views()
        self._check_rule_combinations()
        self._check_attribute_parameters()

    def _check_attribute_parameters(self) -> None:
        _check_bool("keep_attributes", self.keep_attributes)
        if self.attribute_weight != "auto":
            _check_nonnegative("attribute_weight", self.attribute_weight)
            if not self.attribute_weight:
                raise InvalidValueError.of("attribute_weight", "a number > 0", self.attribute_weight)
        if self.attribute_dim != "auto":
            _check_integer("attribute_dim", self.attribute_dim, 0, self.dim - 1)
        if not self.resolved_attribute_dim:
            return
        for name, unsupported in (("rule", "paper"), ("normalize", False), ("search", "ann")):
            if getattr(self, name) == unsupported:
                raise InvalidValueError.of(name, "another value in a model with attributes", unsupported)

    def _check_duration(self, name: str, value: Any) -> None:
        if value is None:
            return
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not (is_number and 1 / MAX_TIME <= value <= sys.float_info.max):
            raise InvalidValueError.of(name, "None, or a number > 0 in the unit of the times in batches", value)
        if self.rule != "ripple":
            raise InvalidValueError.of(name, f'None with rule "{self.rule}": only "ripple" supports it', value)

    def _check_views(self) -> None:
        if isinstance(self.views, str):
            check_choice("views", self.views, ("auto", *RECIPES))
        elif isinstance(self.views, Mapping):
            if not self.views or not all(isinstance(name, str) for name in self.views):
                raise InvalidValueError.of("views", "lists of views by name", self.views)
            for views in self.views.values():
                _check_view_list(views)
        else:
            _check_view_list(self.views)

    def _check_rule_combinations(self) -> None:
        if self.rule != "paper":
            if self.reuse_influence:
                raise InvalidValueError.of("reuse_influence", 'False unless rule is "paper"', True)
            return
        if self.views != "auto":
            raise InvalidValueError.of("views", '"auto" with rule "paper", which has a fixed view', self.views)
        if self.anchor_growth not in ("auto", 0):
            raise InvalidValueError.of("anchor_growth", '0 or "auto" with rule "paper"', self.anchor_growth)
        if self.storage != "auto":
            raise InvalidValueError.of("storage", '"auto" with rule "paper", which uses float64', self.storage)
        if self.normalize not in ("auto", False):
            raise InvalidValueError.of("normalize", 'False or "auto" with rule "paper"', self.normalize)

    @property
    def resolved_anchor_growth(self) -> float:
        """Growth of the graph between anchors, as a share of its size; 0: no anchors."""
        if self.anchor_growth == "auto":
            return DEFAULT_ANCHOR_GROWTH if self.rule == "ripple" else 0.0
        return float(self.anchor_growth)

    @property
    def resolved_start_size(self) -> int:
        """Number of vertices with edges at which a model that began empty gets its start."""
        return 2 * self.dim if self.start_size == "auto" else int(self.start_size)

    @property
    def resolved_attribute_dim(self) -> int:
        """Number of dimensions of the attribute part; 0: the model has no attributes."""
        return 0 if self.attribute_dim == "auto" else int(self.attribute_dim)

    @property
    def attribute_settings(self) -> AttributeSettings:
        """Settings of the attribute part."""
        weight = None if self.attribute_weight == "auto" else float(self.attribute_weight)
        return AttributeSettings(self.resolved_attribute_dim, self.seed, self.keep_attributes, weight)

    def with_attributes(self, width: int | None) -> Parameters:
        """Return the parameters of a model whose initial graph has attributes, of this width if they are dense."""
        if self.attribute_dim != "auto":
            return self
        if self.dim < 2:
            raise InvalidValueError.of("dim", "at least 2 in a model with attributes", self.dim)
        return replace(self, attribute_dim=min(self.dim // 2, width or self.dim))

    @property
    def recipes(self) -> Recipes:
        """The views to choose from, by name; one entry if they are given."""
        if self.views == "auto":
            return RECIPES
        if isinstance(self.views, str):
            return {self.views: RECIPES[self.views]}
        return self.views if isinstance(self.views, Mapping) else {"given": self.views}

    def create_graph(self) -> Graph:
        """Create an empty graph."""
        return Graph(directed=self.directed, duplicates=self.duplicates, threads=resolve_threads(self.threads))

    def create_edge_aging(self) -> EdgeAging | None:
        """Create the decay and expiry of edges; None if edges neither decay nor expire."""
        if self.half_life is None and self.expire_after is None:
            return None
        return EdgeAging(self.half_life, self.expire_after, directed=self.directed, max_time_jump=self.max_time_jump)

    @property
    def edge_parameters(self) -> Parameters:
        """The parameters of the edge part of vectors, as a model without attributes has them."""
        dim = self.dim - self.resolved_attribute_dim
        return replace(self, dim=dim, attribute_dim="auto", start_size=self.resolved_start_size)

    def create_rule(self) -> Rule:
        """Create the rule, before its start."""
        return RULES[self.rule](self.edge_parameters)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values, without those that depend on the machine."""
        values = {
            field.name: _to_python(getattr(self, field.name)) for field in fields(self) if field.name != "storage_dir"
        }
        if isinstance(self.views, Mapping):
            values["views"] = {name: _views_to_json(views) for name, views in self.views.items()}
        elif not isinstance(self.views, str):
            values["views"] = _views_to_json(self.views)
        return values

    @staticmethod
    def from_json(values: dict[str, Any]) -> dict[str, Any]:
        """Convert the result of `to_json` to arguments of `Embedder`."""
        values = {"anchor_pace": "immediate"} | values  # the only pace of earlier versions
        views = values["views"]
        if isinstance(views, dict):
            return values | {"views": {name: [SpectralView(**view) for view in part] for name, part in views.items()}}
        return values | {"views": views if isinstance(views, str) else [SpectralView(**view) for view in views]}


def _create_ripple(parameters: Parameters) -> Rule:
    return RippleRule(
        parameters.dim,
        parameters.recipes,
        normalize=parameters.normalize in ("auto", True),
        depth=parameters.depth,
        seed=parameters.seed,
        max_reads=parameters.max_reads,
        threads=resolve_threads(parameters.threads),
        precision=STORAGE_DTYPES[parameters.storage],
        directory=parameters.storage_dir,
    )


def _create_paper(parameters: Parameters) -> Rule:
    return PaperRule(
        parameters.dim,
        depth=parameters.depth,
        seed=parameters.seed,
        on_empty=parameters.on_empty,
        late_placement=parameters.late_placement,
        normalization=parameters.normalization,
        components=parameters.components,
        reuse_influence=parameters.reuse_influence,
        directed=parameters.directed,
    )


RULES: dict[str, Callable[[Parameters], Rule]] = {"ripple": _create_ripple, "paper": _create_paper}
"""Factory of each rule, by the rule's name."""


def check_storage_dir(value: str | PathLike[str] | None) -> None:
    """Raise `InvalidValueError` if the directory for vectors does not exist."""
    if value is not None and not Path(value).is_dir():
        raise InvalidValueError.of("storage_dir", "an existing directory", value)


def _check_view_list(views: Any) -> None:
    if isinstance(views, str) or not isinstance(views, Sequence) or not views:
        expected = f'"auto", one of {", ".join(RECIPES)}, a list of views, or such lists by name'
        raise InvalidValueError.of("views", expected, views)
    if not all(isinstance(view, SpectralView) for view in views):
        raise InvalidValueError.of("views", "views such as SpectralView(tau=0.5)", views)


def _views_to_json(views: Sequence[SpectralView]) -> list[dict[str, Any]]:
    return [{name: _to_python(value) for name, value in asdict(view).items()} for view in views]


def _to_python(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number; return other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    valid = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not valid or value < minimum or (maximum is not None and value > maximum):
        upper_bound = "" if maximum is None else f" and ≤ {maximum:,}"
        raise InvalidValueError.of(name, f"a whole number ≥ {minimum}{upper_bound}", value)


def _check_nonnegative(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= float(value) < float("inf"):
        raise InvalidValueError.of(name, "a number ≥ 0", value)


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidValueError.of(name, "True or False", value)
