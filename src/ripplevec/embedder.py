"""The `Embedder`: vectors for the vertices of a growing graph."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeAlias, TypeVar, cast, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from ripplevec.attributes.input import AttributesLike, attach_attributes, read_attributes, read_one, read_values
from ripplevec.batch import (
    NO_NEIGHBORS,
    AttributeRows,
    Batch,
    EdgeListLike,
    Id,
    IdColumn,
    IdsLike,
    Op,
    arrival_columns,
    id_column,
    ids_to_list,
    normalize_id,
    read_pairs,
    read_removals,
    resolve_neighbors,
    weight_column,
)
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.engine.attributed_engine import AttributedEngine
from ripplevec.engine.attributed_reads import AttributedReads
from ripplevec.engine.engine import Engine
from ripplevec.engine.link_reads import Newcomer, Recommender, preview_newcomers, score_pairs
from ripplevec.engine.state_validation import MALFORMED_STATE_ERRORS, check_dim
from ripplevec.errors import FormatError, InvalidValueError, MissingExtraError, StateError, ZeroVectorsWarning
from ripplevec.graph.graph import unit_weights
from ripplevec.parameters import (
    AnchorPace,
    DuplicatePolicy,
    EmptyInfluence,
    LaplacianComponents,
    LaplacianNormalization,
    Parameters,
    RuleName,
    SearchMethod,
    Storage,
    ViewsLike,
    check_storage_dir,
)
from ripplevec.search.searcher import Searcher
from ripplevec.times import TimeLike
from ripplevec.util.checked_directory import RESTORE_HINT, read_arrays, write_arrays
from ripplevec.util.compilation import report_compilation
from ripplevec.util.locks import ReadWriteLock
from ripplevec.vector_reads import ID_TYPES, VectorReads
from ripplevec.views.base import Progress

if TYPE_CHECKING:
    import pandas as pd

VectorLike: TypeAlias = NDArray[Any] | Sequence[float]
Recommendations: TypeAlias = list[tuple[Id, float]]
Newcomers: TypeAlias = Mapping[Id, IdsLike]
Result = TypeVar("Result")

_ZERO_ADVICE = "Fit a larger graph, or add vertices with partial_fit: the next anchor computes all vectors"


@dataclass(kw_only=True, eq=False, repr=False)
class Embedder(VectorReads):
    """Vectors for the vertices of a growing graph, updated with every batch.

    `fit` embeds an initial graph (the *start*). `partial_fit` and `add_vertex` apply a *batch* or a single *arrival*
    (a vertex with its edges) and update the affected vectors. An *anchor*, a correction of all vectors, runs whenever
    the graph has grown by `anchor_growth`. One writer and many readers may use a model from several threads.

    Parameters
    ----------
    dim : int, default 128
        Number of dimensions of a vector. More dimensions hold more of the graph and cost memory (four bytes each per
        vertex) and time in proportion. 64 are enough for many dense graphs; classification on sparse graphs gains up to
        about 200; clustering of sparse graphs is better with fewer (32). Cannot be changed later.
    rule : {"ripple", "paper"}, default "ripple"
        Rule that moves vectors when the graph changes. "ripple" refreshes the vectors near a change and relies on
        anchors. "paper" is the algorithm of *Streaming Network Embedding through Local Actions*, for comparison: it has
        no anchors and supports fewer of the other parameters.
    depth : int or None, default 1
        Rounds of influence per arrival. None: until no further vertex is reached. One is enough with anchors; more
        rounds move more vectors per arrival, and each is a change that consumers have to store.
    views : str, list of SpectralView, or dict of such lists, default "auto"
        Spectral views that the dimensions of a vector come from, for rule "ripple". "auto" chooses a recipe at the
        start: the one whose vectors best predict hidden edges. Others: the name of a recipe ("sparse", "communities",
        "communities+hubs", "communities+strong-hubs", "fine-communities+hubs"), views, or named views to choose from.
    anchor_growth : "auto" or float, default "auto"
        Growth of the graph between anchors, as a share of its size; 0: no anchors. "auto" is 0 for rule "paper", and
        for rule "ripple" 0.05 up to 8,000 vertices; larger graphs, if anchors are gradual, are corrected after more
        growth (0.38 at 100,000 vertices, at most 0.7). Use 0 only if you call `anchor` yourself.
    anchor_pace : {"gradual", "immediate"}, default "gradual"
        Whether an anchor is computed little by little, or completely with the batch that makes it due. No batch waits
        for a gradual anchor: the batches before it is due each compute a part of it. Has no effect on rule "paper".
    seed : int, default 0
        Seed of every random draw. The same seed, parameters and batches give the same bits.
    max_reads : int, default 4096
        Bound on the rows read and neighbors tested per arrival, beyond its own edges. Vertices with more neighbors than
        that are sampled. Lower it to bound the latency in graphs with hubs.
    storage : {"auto", "float32", "float16"}, default "auto"
        Number format of stored vectors; "float16" halves the memory. "auto" is float32 for rule "ripple" and float64
        for rule "paper". Arithmetic is in float32 at least.
    storage_dir : path or None, default None
        Directory for the vectors, if they exceed the memory. They are kept in a file that is deleted when the process
        ends. Not saved with the model.
    directed : bool, default False
        Whether influence follows the direction of edges. The vectors themselves are those of the symmetrized graph.
    duplicates : {"add", "ignore", "replace"}, default "add"
        Effect of a repeated edge. "add" adds its weight (purchases, messages), "ignore" keeps the edge as it is
        (friendships), "replace" sets the weight (measurements).
    normalize : "auto" or bool, default "auto"
        Whether vectors have length one. "auto" is True for rule "ripple" and False for rule "paper". With False, the
        length tells how clearly a vertex belongs to one place in the graph.
    start_size : "auto" or int, default "auto"
        Number of vertices with edges at which a model that began empty gets its start. "auto" is twice `dim`. Until
        then vectors are zero and `nearest` returns an empty list.
    change_threshold : float, default 0.01
        Smallest movement that counts as a change at an anchor. Raise it to report fewer changes to consumers.
    on_empty : {"neighbors", "zero", "resample"}, default "neighbors"
        Replacement for an empty influenced set, for rule "paper". "neighbors" takes all neighbors, "zero" gives the
        arrival a zero vector and moves no other vertex, "resample" draws again.
    late_placement : bool, default True
        Whether a vertex that arrived without a placed neighbor is placed later, for rule "paper". Then the next
        arrival that is connected to it places it; otherwise its vector stays zero.
    normalization : {"symmetric", "random-walk", "unnormalized"}, default "symmetric"
        Normalization of the Laplacian, for rule "paper".
    components : {"together", "separate"}, default "together"
        Treatment of connected components at the start, for rule "paper". "together" gives the eigenvectors of the
        whole graph, of which the first tell components apart; "separate" leaves these out.
    reuse_influence : bool, default False
        Whether influenced sets of earlier arrivals are reused, for rule "paper". Faster, and approximate: only the
        first round is drawn anew.
    threads : int or None, default None
        Number of threads for large batches, anchors and search; does not change the result. None: all cores.
    search : {"auto", "exact", "ann"}, default "auto"
        Method that `nearest` searches with. "exact" compares with every vertex; "ann" uses an approximate index, which
        needs the extra `ann`; "auto" is exact up to 200,000 vertices and uses an index above, if it is installed.
    half_life : float or None, default None
        Time after which the weight of an edge has halved, in the unit of the times in batches. None: weights do not
        decay. For rule "ripple".
    expire_after : float or None, default None
        Time after which an edge that was not repeated is removed, in the unit of the times in batches. None: edges
        stay. For rule "ripple".
    max_time_jump : float or None, default None
        How far one event may advance the time of the model, in the unit of the times in batches. An event further in
        the future is refused, because a wrong time would age all edges for good. None: 100 times the smaller of
        `half_life` and `expire_after`. Has an effect with one of these only.
    attribute_dim : "auto" or int, default "auto"
        Number of the `dim` dimensions that hold attributes of vertices, for rule "ripple". "auto" is half of them if
        `fit` is given attributes, and none otherwise. Give a number if the model begins empty.
    attribute_weight : "auto" or float, default "auto"
        Weight of the attribute part of a vector relative to its edge part. "auto" is 0.5, unless 0.25, 1 or 2 predicts
        hidden edges clearly better. It is chosen once, at the start, and then stays as it is.
    keep_attributes : bool, default True
        Whether sparse attributes are kept, to compute attribute parts anew when the projection has changed. False saves
        their memory, eight bytes per non-zero value. Dense attributes are not kept.

    Raises
    ------
    InvalidValueError
        If a parameter has a value that cannot be used.
    MissingExtraError
        If `search="ann"` and the extra `ann` is not installed.

    Examples
    --------
    >>> from ripplevec import Embedder
    >>> model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> model.add_vertex("e", ["a", "b"]).shape
    (4,)
    >>> len(model), "e" in model
    (5, True)
    """

    dim: int = 128
    rule: RuleName = "ripple"
    depth: int | None = 1
    views: ViewsLike = "auto"
    anchor_growth: Literal["auto"] | float = "auto"
    anchor_pace: AnchorPace = "gradual"
    seed: int = 0
    max_reads: int = 4096
    storage: Storage = "auto"
    storage_dir: str | PathLike[str] | None = None
    directed: bool = False
    duplicates: DuplicatePolicy = "add"
    normalize: Literal["auto"] | bool = "auto"
    start_size: Literal["auto"] | int = "auto"
    change_threshold: float = 0.01
    on_empty: EmptyInfluence = "neighbors"
    late_placement: bool = True
    normalization: LaplacianNormalization = "symmetric"
    components: LaplacianComponents = "together"
    reuse_influence: bool = False
    threads: int | None = None
    search: SearchMethod = "auto"
    half_life: float | None = None
    expire_after: float | None = None
    max_time_jump: float | None = None
    attribute_dim: Literal["auto"] | int = "auto"
    attribute_weight: Literal["auto"] | float = "auto"
    keep_attributes: bool = True

    # Advice in the error after an interrupted update. Not annotated, so the dataclass does not make it a parameter.
    _recovery_hint = "Load a saved model, or start over with fit"

    def __post_init__(self) -> None:
        report_compilation()
        self._lock = ReadWriteLock()
        self._active_parameters = self._validated_parameters()
        self._engine = self._create_engine(self._active_parameters)
        self._searcher = Searcher(self.search, self.threads)

    # ------------------------------------------------------------------ changing the model

    def fit(
        self,
        edges: EdgeListLike,
        *,
        src: Any = None,
        dst: Any = None,
        weight: Any = None,
        time: Any = None,
        attributes: AttributesLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Start over with an initial graph.

        Parameters
        ----------
        edges : edge list
            The edges of the initial graph, in any form that `Batch.from_any` accepts: pairs or triples, a NumPy array,
            a sparse matrix, a table, a graph of another library, or a `Batch`.
        src, dst, weight, time : label of a column, optional
            Names of the columns of a table, if they are not called like that; see `Batch.from_any`. `time` may also be
            a list, array or series with one time per edge.
        attributes : mapping, pair or table, optional
            Attributes of vertices, sparse or dense: `{id: {name: value}}`, `{id: numbers}`, a pair `(ids, values)` with
            an array or a SciPy sparse matrix, or a pandas, polars or PyArrow table with an id column. Vertices without
            edges are added.
        progress : callable, optional
            Called as `progress(step, share)` during long solves, with the step's name and the share done so far.

        Returns
        -------
        Embedder
            The model itself.

        Raises
        ------
        InvalidValueError
            If `edges` cannot be used. The model stays as it was.

        Warns
        -----
        ZeroVectorsWarning
            If the graph has edges and all vectors are zero, as those of a single edge, a triangle, any other complete
            graph, or a star. A graph without edges gives no warning: the model begins empty.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d", 2.5)])
        Embedder(dim=2, rule='ripple'): 4 vertices, 3 edges
        """
        batch = Batch.from_any(edges, directed=self.directed, src=src, dst=dst, weight=weight, time=time)
        if attributes is not None:
            batch = attach_attributes(batch, read_attributes(attributes))
        parameters = self._validated_parameters()
        if batch.attributes is not None:
            parameters = parameters.with_attributes(batch.attributes.width)
        engine = self._create_engine(parameters)
        engine.check_attributes(batch.attributes)
        engine.open_admission().admit(batch)
        engine.start(batch, progress)
        zero_graph = f"vertices={len(engine)} edges={engine.edges}" if _has_only_zero_vectors(engine) else None
        with self._lock.exclude_writers():
            self._replace_attributes(_active_parameters=parameters, _engine=engine)
        engine.warn_self_loops()
        if zero_graph is not None:
            message = (
                f"All vectors are zero, because the graph has no structure to embed: {zero_graph}. {_ZERO_ADVICE}."
            )
            warnings.warn(message, ZeroVectorsWarning, stacklevel=2)
        return self

    def partial_fit(
        self,
        edges: EdgeListLike,
        *,
        src: Any = None,
        dst: Any = None,
        weight: Any = None,
        time: Any = None,
        attributes: AttributesLike | None = None,
    ) -> Changes:
        """Apply a batch: all of it, or none of it if it cannot be applied.

        Parameters
        ----------
        edges : edge list
            Edges to add, in any form that `fit` accepts, or a `Batch`, which can also remove edges and vertices.
            Unknown vertices are created. Self-loops are ignored, with one warning per model.
        src, dst, weight, time : label of a column, optional
            Names of the columns of a table, as for `fit`.
        attributes : mapping, pair or table, optional
            Attributes of vertices, in any form that `fit` accepts. They replace earlier ones, and unknown vertices are
            created.

        Returns
        -------
        Changes
            The vertices whose vectors moved.

        Raises
        ------
        InvalidValueError
            If `edges` cannot be used.
        UnknownVertexError, UnknownEdgeError
            If a vertex or an edge to be removed is not in the model.

        Examples
        --------
        >>> from ripplevec import Batch, Embedder, Op
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")])
        >>> model.partial_fit(Batch.of(["a", "e"], ["c", "d"], op=[Op.REMOVE, Op.ADD])).sequence
        1
        """
        batch = Batch.from_any(edges, directed=self.directed, src=src, dst=dst, weight=weight, time=time)
        return self._apply(batch if attributes is None else attach_attributes(batch, read_attributes(attributes)))

    def set_attributes(self, ids: IdsLike, attributes: Any) -> Changes:
        """Set the attributes of vertices, and replace those that they had.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            Vertices of the model, each once.
        attributes : array, sparse matrix or list of {name: value}
            One row per vertex. An empty row removes the attributes of a vertex.

        Returns
        -------
        Changes
            The vertices whose vectors moved.

        Raises
        ------
        UnknownVertexError
            If a vertex is not in the model.
        InvalidValueError
            If the attributes cannot be used, or the model has no dimensions for them. Nothing changes.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> tags = {"a": {"red": 1}, "b": {"red": 1}, "c": {"blue": 1}}
        >>> model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "d")], attributes=tags)
        >>> "d" in model.set_attributes(["d"], [{"blue": 2, "green": 1}]).ids
        True
        """
        rows = read_values(ids, attributes)
        with self._lock.reading():
            self._engine.rows_of(rows.ids)
        return self._apply(attach_attributes(Batch.of([], []), rows))

    def add_vertex(
        self,
        vertex: Id,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: ArrayLike | None = None,
        time: TimeLike | None = None,
        *,
        attributes: Any = None,
        neighbours: IdsLike | None = None,
    ) -> NDArray[np.float32]:
        """Apply one arrival: add a vertex with its edges. A known vertex gets the edges in addition.

        Parameters
        ----------
        vertex : int or str
            The vertex.
        neighbors : list, array, series or Arrow array of int or str, default ()
            The vertices it has edges to. Unknown ones are created.
        weights : array_like of float, optional
            Positive edge weights. By default 1.
        time : float, datetime, datetime64, pandas.Timestamp or str, optional
            Time of the arrival. By default the latest time in the model.
        attributes : {name: value} or vector of numbers, optional
            Attributes of the vertex, which replace earlier ones.
        neighbours : list, array, series or Arrow array of int or str, optional
            British spelling of `neighbors`; giving both is an error.

        Returns
        -------
        float32 array of shape (dim,)
            The vector of the vertex.

        Raises
        ------
        InvalidValueError
            If a value cannot be used. The model stays as it was.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.add_vertex("e", ["a", "b"], weights=[1.0, 0.5]).shape
        (2,)
        """
        adjacent, column, edge_weights = arrival_columns(vertex, resolve_neighbors(neighbors, neighbours), weights)
        rows = None if attributes is None else read_one(vertex, attributes)
        with self._lock.exclude_writers():
            if rows is not None:
                self._engine.check_attributes(rows)
            row = self._apply_arrival(column, edge_weights, rows) if time is None else -1
            if row < 0:
                batch = Batch.arrival(vertex, adjacent, edge_weights, time)
                if rows is not None:
                    batch = attach_attributes(batch, rows)
                self._engine.open_admission().admit(batch)
                self._apply_to_engine(batch)
                row = self._find_row(vertex)
            vector = self._engine.get_vector(row)
            self._engine.warn_self_loops()
            return vector

    def add_edges(self, edges: EdgeListLike) -> Changes:
        """Add edges. The same as `partial_fit`.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `fit` accepts.

        Returns
        -------
        Changes
            The vertices whose vectors moved.

        Raises
        ------
        InvalidValueError
            If `edges` cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
        >>> model.add_edges([("c", "d")]).removed
        []
        """
        return self.partial_fit(edges)

    def remove_edges(self, edges: EdgeListLike) -> Changes:
        """Remove edges.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `fit` accepts; weights are ignored.

        Returns
        -------
        Changes
            The vertices whose vectors moved.

        Raises
        ------
        InvalidValueError
            If `edges` cannot be used, or is a `Batch` with other operations than removals.
        UnknownEdgeError
            If an edge is not in the model. Nothing is removed.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a")])
        >>> model.remove_edges([("a", "b")]).sequence
        1
        """
        return self._apply(read_removals(edges, directed=self.directed))

    def remove_vertex(self, vertex: Id) -> Changes:
        """Remove a vertex with all its edges.

        Parameters
        ----------
        vertex : int or str
            The vertex.

        Returns
        -------
        Changes
            The vertices whose vectors moved; `removed` contains the vertex.

        Raises
        ------
        UnknownVertexError
            If the vertex is not in the model.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "a")])
        >>> model.remove_vertex("a").removed
        ['a']
        """
        batch = Batch.vertices([vertex], Op.REMOVE_VERTEX)
        return self._apply(batch)

    def anchor(self, *, gap: bool = False) -> Changes:
        """Run an anchor now: correct all vectors.

        Does nothing for rule "paper", and for a graph without edges.

        Parameters
        ----------
        gap : bool, default False
            Whether `spectrum` of the result reports the share of the attainable spectrum that each view captured before
            and after. This solves an eigenproblem on the whole graph, which takes about as long as a start.

        Returns
        -------
        Changes
            The vertices that moved by at least `change_threshold`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2, anchor_growth=0).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> _ = model.add_vertex("e", ["a", "b"])
        >>> model.anchor().anchored
        True
        """
        with self._lock.exclude_writers():
            possible = self.rule != "paper" and (self._engine.edges > 0 or self._engine.attribute_dim > 0)
            anchors_before = self._engine.anchors
            attainable: dict[Any, float] = {}  # depends on the graph, which an anchor does not change
            before = _spectrum_shares(self._engine, attainable) if gap else []
            moved = self._update_copy(lambda engine: engine.anchor()) if possible else np.empty(0, np.int64)
            anchored = self._engine.anchors > anchors_before  # False if the anchor found no usable vectors
            changes = self._engine.build_changes(BatchOutcome(moved, self._engine.next_arrival, [], anchored))
            if gap:
                changes.spectrum = [before, _spectrum_shares(self._engine, attainable)]
            return changes

    # ------------------------------------------------------------------ reading the model

    def __len__(self) -> int:
        return len(self._engine)

    def __contains__(self, vertex: object) -> bool:
        try:
            with self._lock.reading():
                return self._find_row(vertex) >= 0
        except InvalidValueError:
            return False

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids)

    @property
    def ids(self) -> list[Id]:
        """Ids of all vertices, in order of arrival."""
        with self._lock.reading():
            return ids_to_list(self._engine.id_column_of(self._engine.rows_by_arrival()))

    @property
    def sequence(self) -> int:
        """Number of batches applied since the start."""
        return self._engine.sequence

    def vectors(self, ids: IdsLike) -> NDArray[np.float32]:
        """Return the vectors of vertices.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices. `model[id]` returns the vector of one vertex, `model[[a, b]]` those of several.

        Returns
        -------
        float32 array of shape (len(ids), dim)
            One row per id. Vertices without a placed neighbor have a zero vector.

        Raises
        ------
        UnknownVertexError
            If vertices are not in the model; its `missing` lists all of them.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.vectors(["a", "c"]).shape
        (2, 2)
        """
        column = id_column(ids)
        with self._lock.reading():
            return self._engine.get_vectors(self._engine.rows_of(column))

    def preview(
        self,
        neighbors: IdsLike = NO_NEIGHBORS,
        weights: ArrayLike | None = None,
        *,
        attributes: Any = None,
        neighbours: IdsLike | None = None,
    ) -> NDArray[np.float32]:
        """Return the vector that a new vertex with these neighbors would get. The model does not change.

        Parameters
        ----------
        neighbors : list, array, series or Arrow array of int or str, default ()
            Vertices of the model.
        weights : array_like of float, optional
            Positive edge weights. By default 1.
        attributes : {name: value} or vector of numbers, optional
            Attributes of the vertex.
        neighbours : list, array, series or Arrow array of int or str, optional
            British spelling of `neighbors`; giving both is an error.

        Returns
        -------
        float32 array of shape (dim,)
            The vector, before the arrival would move its neighbors. With rule "paper" it depends on random draws:
            they are those of the next arrival.

        Raises
        ------
        UnknownVertexError
            If a neighbor is not in the model.
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.preview(["a", "b"]).shape, len(model)
        ((2,), 4)
        """
        column = id_column(resolve_neighbors(neighbors, neighbours), "neighbors")
        count = len(column)
        edge_weights = unit_weights(count) if weights is None else weight_column(weights, count).astype(np.float32)
        rows = None if attributes is None else read_one("newcomer", attributes)
        with self._lock.reading():
            self._engine.check_attributes(rows)
            return self._engine.preview(self._engine.rows_of(column), edge_weights, rows)

    def nearest(
        self, vertex: Id | VectorLike, k: int = 10, *, among: IdsLike | Callable[[Id], bool] | None = None
    ) -> list[tuple[Id, float]]:
        """Return the vertices most similar to a vertex or a vector.

        Parameters
        ----------
        vertex : int, str or vector of length dim
            A vertex, which is left out of the result, or any vector.
        k : int, default 10
            Number of vertices.
        among : ids or callable, optional
            The vertices to choose from: their ids, or a function that tells for an id whether it qualifies. All of them
            are compared. By default all vertices.

        Returns
        -------
        list of (id, cosine) pairs
            The `k` vertices of highest cosine similarity, highest first; fewer if the model has fewer vertices with a
            vector. Above 200,000 vertices an approximate index may miss a vertex now and then, if the extra `ann` is
            installed; the cosines are exact. `search="exact"` misses none.

        Raises
        ------
        UnknownVertexError
            If the vertex is not in the model.
        InvalidValueError
            If `k` or the vector cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> len(model.nearest("a", k=2))
        2
        >>> [vertex for vertex, cosine in model.nearest("a", among=["c", "d"])]
        ['c', 'd']
        """
        return self.nearest_with_sequence(vertex, k, among=among)[1]

    def nearest_by_attributes(
        self, attributes: Any, k: int = 10, *, among: IdsLike | None = None
    ) -> list[tuple[Id, float]]:
        """Return the vertices whose attributes are most similar to the given ones, whatever their edges.

        Parameters
        ----------
        attributes : {name: value}, vector of numbers, int or str
            Attributes, in the form that `add_vertex` accepts. Or a vertex: its attributes, or those of its neighbors if
            it has none, are compared with all others.
        k : int, default 10
            Number of vertices.
        among : list, array, series or Arrow array of int or str, optional
            The vertices to choose from. By default all vertices.

        Returns
        -------
        list of (id, cosine) pairs
            The `k` vertices with attributes whose attribute parts have the highest cosine similarity, highest first.

        Raises
        ------
        InvalidValueError
            If `k` or the attributes cannot be used.
        UnknownVertexError
            If a vertex is not in the model.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> tags = {"a": {"red": 1}, "b": {"blue": 1}, "d": {"blue": 2}}
        >>> model = Embedder(dim=4).fit([("a", "b"), ("b", "c")], attributes=tags)
        >>> [vertex for vertex, cosine in model.nearest_by_attributes({"blue": 1}, k=2)]
        ['b', 'd']
        >>> [vertex for vertex, cosine in model.nearest_by_attributes("d", k=1)]
        ['b']
        """
        return self.nearest_by_attributes_with_sequence(attributes, k, among=among)[1]

    def nearest_by_attributes_with_sequence(
        self, attributes: Any, k: int = 10, *, among: IdsLike | None = None
    ) -> tuple[int, list[tuple[Id, float]]]:
        """Return the result of `nearest_by_attributes` together with the sequence number of its state.

        Parameters
        ----------
        attributes : {name: value}, vector of numbers, int or str
            See `nearest_by_attributes`.
        k : int, default 10
            See `nearest_by_attributes`.
        among : list, array, series or Arrow array of int or str, optional
            See `nearest_by_attributes`.

        Returns
        -------
        sequence : int
            Number of batches that had been applied.
        result : list of (id, cosine) pairs
            See `nearest_by_attributes`.

        Raises
        ------
        UnknownVertexError, InvalidValueError
            See `nearest_by_attributes`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=4).fit([("a", "b")], attributes={"a": {"red": 1}, "b": {"blue": 1}})
        >>> model.nearest_by_attributes_with_sequence({"blue": 1}, k=1)[0]
        0
        """
        _check_count(k)
        of_vertex = isinstance(attributes, ID_TYPES) and not isinstance(attributes, bool)
        query = id_column([attributes]) if of_vertex else read_one("query", attributes)
        column = None if among is None else id_column(among, "among")
        with self._lock.reading():
            engine = self._engine
            if not isinstance(engine, AttributedReads):
                raise InvalidValueError(
                    "attributes: expected a model with dimensions for them, got one without. "
                    "Give attributes to fit, or create the model with attribute_dim=…"
                )
            if isinstance(query, AttributeRows):
                engine.check_attributes(query)
            like = query if isinstance(query, AttributeRows) else int(engine.rows_of(query)[0])
            candidates = None if column is None else np.unique(engine.rows_of(column))
            found, cosines = engine.nearest_by_attributes(like, int(k), candidates)
            return engine.sequence, list(zip(engine.ids_of(found), cosines.tolist(), strict=True))

    def nearest_many(
        self,
        vertices: IdsLike | NDArray[np.floating[Any]],
        k: int = 10,
        *,
        among: IdsLike | Callable[[Id], bool] | None = None,
    ) -> list[list[tuple[Id, float]]]:
        """Return the vertices most similar to each of several vertices or vectors, all of one state.

        Parameters
        ----------
        vertices : ids, or array of shape (m, dim)
            The vertices or vectors.
        k, among
            See `nearest`.

        Returns
        -------
        list of lists of (id, cosine) pairs
            One result of `nearest` per vertex or vector.

        Raises
        ------
        UnknownVertexError, InvalidValueError
            See `nearest`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> [len(found) for found in model.nearest_many(["a", "b"], k=2)]
        [2, 2]
        """
        is_matrix = isinstance(vertices, np.ndarray) and vertices.ndim == 2
        queries: Any = vertices if is_matrix else ids_to_list(id_column(cast(IdsLike, vertices), "vertices"))
        return self.nearest_many_with_sequence(queries, k, among=among)[1]

    def nearest_many_with_sequence(
        self, queries: Sequence[Id] | Sequence[VectorLike], k: int = 10, *, among: Any = None
    ) -> tuple[int, list[list[tuple[Id, float]]]]:
        """Return the result of `nearest_many` together with the sequence number of its state.

        Parameters
        ----------
        queries : sequence of ids or of vectors
            The vertices or vectors.
        k, among
            See `nearest`.

        Returns
        -------
        sequence : int
            Number of batches that had been applied.
        result : list of lists of (id, cosine) pairs
            See `nearest_many`.

        Raises
        ------
        UnknownVertexError, InvalidValueError
            See `nearest`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.nearest_many_with_sequence(["a"], k=1)[0]
        0
        """
        return self._search(queries, k, among)

    def nearest_with_sequence(
        self, vertex: Id | VectorLike, k: int = 10, *, among: IdsLike | Callable[[Id], bool] | None = None
    ) -> tuple[int, list[tuple[Id, float]]]:
        """Return the result of `nearest` together with the sequence number of the state it was computed from.

        Parameters
        ----------
        vertex : int, str or vector of length dim
            See `nearest`.
        k : int, default 10
            See `nearest`.
        among : ids or callable, optional
            See `nearest`.

        Returns
        -------
        sequence : int
            Number of batches that had been applied.
        result : list of (id, cosine) pairs
            See `nearest`.

        Raises
        ------
        UnknownVertexError, InvalidValueError
            See `nearest`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.nearest_with_sequence("a", k=1)[0]
        0
        """
        sequence, (result,) = self._search([vertex], k, among)
        return sequence, result

    def score(self, pairs: EdgeListLike, *, newcomers: Newcomers | None = None) -> NDArray[np.float32]:
        """Return how expected each candidate edge is: the cosine of its two vectors.

        Parameters
        ----------
        pairs : edge list
            Pairs of vertices, in any form that `fit` accepts; weights are ignored.
        newcomers : mapping of id to neighbors, optional
            Vertices that are not in the model, each with its neighbors. They may occur in `pairs` and have the vector
            that `preview` returns. The model does not change.

        Returns
        -------
        float32 array
            One score per pair, from −1 to 1; 0 if one of the two vertices has no vector. `LinkScorer` also uses the
            history of an edge, and returns a probability.

        Raises
        ------
        UnknownVertexError
            If vertices are neither in the model nor among the newcomers.
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.score([("a", "c"), ("new", "d")], newcomers={"new": ["a", "b"]}).shape
        (2,)
        """
        batch = read_pairs(pairs)
        with self._lock.reading():
            return score_pairs(self._engine, batch.src, batch.dst, self._preview_newcomers(newcomers))

    @overload
    def recommend(  # type: ignore[overload-overlap]  # a str is a sequence, too: the first signature applies
        self,
        vertex: Id,
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = "neighbors",
        newcomers: Newcomers | None = None,
    ) -> Recommendations: ...

    @overload
    def recommend(
        self,
        vertex: Sequence[Id],
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = "neighbors",
        newcomers: Newcomers | None = None,
    ) -> list[Recommendations]: ...

    def recommend(
        self,
        vertex: Id | Sequence[Id],
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = "neighbors",
        newcomers: Newcomers | None = None,
    ) -> Recommendations | list[Recommendations]:
        """Return the most expected new edges of a vertex, or of each of several vertices.

        Parameters
        ----------
        vertex : int, str or list of int or str
            A vertex, or a list of vertices.
        k : int, default 10
            Number of recommended vertices.
        among : list, array, series or Arrow array of int or str, optional
            Candidates, for example the products of a shop. By default all vertices of the model.
        exclude : "neighbors" or None, default "neighbors"
            Whether vertices that already have an edge with the vertex are left out. The vertex itself always is.
        newcomers : mapping of id to neighbors, optional
            Vertices that are not in the model, each with its neighbors, as in `score`.

        Returns
        -------
        list of (id, score) pairs
            The `k` candidates of highest score, as `score` defines it, highest first; fewer if fewer have a vector. For
            a list of vertices, a list with one such list per vertex.

        Raises
        ------
        UnknownVertexError
            If a vertex is neither in the model nor among the newcomers.
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> [name for name, score in model.recommend("a", k=2, among=["b", "d"])]
        ['d']
        >>> len(model.recommend(["a", "new"], newcomers={"new": ["c"]}))
        2
        """
        single = isinstance(vertex, ID_TYPES)
        vertices = [vertex] if single else vertex
        found = self.recommend_with_sequence(vertices, k, among=among, exclude=exclude, newcomers=newcomers)[1]  # type: ignore[arg-type]
        return found[0] if single else found

    def recommend_with_sequence(
        self,
        vertices: Sequence[Id],
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = "neighbors",
        newcomers: Newcomers | None = None,
    ) -> tuple[int, list[Recommendations]]:
        """Return the results of `recommend` with the sequence number of the state they were computed from.

        Parameters
        ----------
        vertices : list of int or str
            The vertices.
        k, among, exclude, newcomers
            See `recommend`.

        Returns
        -------
        sequence : int
            Number of batches that had been applied.
        results : list
            For each vertex, the result of `recommend`.

        Raises
        ------
        UnknownVertexError, InvalidValueError
            See `recommend`.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.recommend_with_sequence(["a", "b"], k=1)[0]
        0
        """
        _check_count(k)
        names = ids_to_list(id_column(vertices, "vertices"))
        candidates = None if among is None else id_column(among, "among")
        if exclude not in ("neighbors", None):
            raise InvalidValueError.of("exclude", '"neighbors" or None', exclude)
        with self._searcher.open_search() as search, self._lock.reading():
            recommender = Recommender(
                self._engine,
                search,
                candidates,
                self._preview_newcomers(newcomers),
                exclude_neighbors=exclude is not None,
            )
            return self._engine.sequence, [recommender.recommend(vertex, int(k)) for vertex in names]

    def degree(self, ids: Id | IdsLike) -> NDArray[np.int64] | int:
        """Return the number of edges of vertices, in any direction.

        Parameters
        ----------
        ids : id, or list, array, series or Arrow array of int or str
            One vertex, or several.

        Returns
        -------
        int, or int64 array
            The number of edges; for several vertices one number per id.

        Raises
        ------
        UnknownVertexError
            If vertices are not in the model.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).degree(["a", "b"])
        array([1, 2])
        """
        if isinstance(ids, ID_TYPES):
            return int(self.degree([ids])[0])  # type: ignore[index]
        column = id_column(ids)
        with self._lock.reading():
            return self._engine.degrees(self._engine.rows_of(column))

    def age(self, ids: IdsLike) -> NDArray[np.int64]:
        """Return the number of vertices that arrived after each of these vertices.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.

        Returns
        -------
        int64 array
            One number per id.

        Raises
        ------
        UnknownVertexError
            If vertices are not in the model.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).age(["a", "c"])
        array([2, 0])
        """
        column = id_column(ids)
        with self._lock.reading():
            engine = self._engine
            return engine.next_arrival - 1 - engine.arrival_numbers(engine.rows_of(column))

    def neighbors(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex with the weights of the edges, latest edge first.

        Parameters
        ----------
        vertex : int or str
            The vertex.
        limit : int, optional
            Maximum number of neighbors. By default all.

        Returns
        -------
        list of (id, weight) pairs
            The neighbors.

        Raises
        ------
        UnknownVertexError
            If the vertex is not in the model.
        InvalidValueError
            If `limit` cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c", 2.5)]).neighbors("b")
        [('c', 2.5), ('a', 1.0)]
        """
        if limit is not None:
            _check_count(limit, "limit", 0)
        column = id_column([vertex])
        with self._lock.reading():
            engine = self._engine
            rows, weights = engine.neighbors(int(engine.rows_of(column)[0]), limit)
            return list(zip(engine.ids_of(rows), weights.tolist(), strict=True))

    def neighbours(self, vertex: Id, limit: int | None = None) -> list[tuple[Id, float]]:
        """Return the neighbors of a vertex. British spelling of `neighbors`."""
        return self.neighbors(vertex, limit)

    def to_numpy(self) -> NDArray[np.float32]:
        """Return all vectors, in the order of `ids`.

        Returns
        -------
        float32 array of shape (len(model), dim)
            One row per vertex.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).to_numpy().shape
        (3, 2)
        """
        with self._lock.reading():
            return self._engine.get_vectors(self._engine.rows_by_arrival())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors for `numpy.asarray(model)`. `copy` is accepted and ignored: the array is always new."""
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def to_arrow(self) -> pa.Table:
        """Return all vectors as an Arrow table.

        Returns
        -------
        pyarrow.Table
            The columns `id` and `vector`. If the model has both int and str ids, all ids are written as text.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).to_arrow().column_names
        ['id', 'vector']
        """
        column, vectors = self._ids_and_vectors()
        ids = column if not isinstance(column, list) else [str(vertex) for vertex in column]
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), self.dim)
        return pa.table({"id": pa.array(ids), "vector": lists})

    def to_pandas(self) -> pd.DataFrame:
        """Return all vectors as a data frame.

        Returns
        -------
        pandas.DataFrame
            One row per vertex, with the ids as index, and one column per coordinate.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).to_pandas().shape
        (3, 2)
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("Embedder.to_pandas", "pandas") from error

        column, vectors = self._ids_and_vectors()
        return pd.DataFrame(vectors, index=pd.Index(ids_to_list(column), name="id"))

    def plot(self, labels: Mapping[Id, Any] | None = None, *, ax: Any = None) -> Any:
        """Draw a map of the vectors: their two principal components, with matplotlib.

        Parameters
        ----------
        labels : mapping of ids to labels, optional
            Vertices with equal labels have one color; those without a label are gray. By default all have one color.
        ax : matplotlib.axes.Axes, optional
            The axes to draw on. By default those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")])
        >>> model.plot({"a": "red team"}).figure.savefig("map.png")  # doctest: +SKIP
        """
        from ripplevec.map_plot import draw_map  # matplotlib, imported on demand

        column, vectors = self._ids_and_vectors()
        return draw_map(vectors, [(labels or {}).get(vertex) for vertex in ids_to_list(column)], ax)

    # ------------------------------------------------------------------ state and diagnostics

    @property
    def engine(self) -> Engine:
        """The state of the model. Read it while holding `lock`; only the model may modify it."""
        return self._engine

    @property
    def lock(self) -> ReadWriteLock:
        """The lock of the state, for several reads of the same state: `with model.lock.reading(): …`.

        Inside the block read from `engine`, and do not call methods that change the model.
        """
        return self._lock

    def diagnostics(
        self, *, objective: bool = False, gap: bool = False, since: Embedder | None = None
    ) -> dict[str, Any]:
        """Return sizes, counters and quality measures of the model.

        Parameters
        ----------
        objective : bool, default False
            Whether to add the losses of the paper: homophily, and smoothness relative to `since`.
        gap : bool, default False
            Whether to add the best possible losses, and the share of the attainable spectrum that each view captures.
            This solves an eigenproblem on the whole graph, which takes about as long as a start.
        since : Embedder, optional
            An earlier copy of the model, for the smoothness loss. By default the loss is 0.

        Returns
        -------
        dict
            Numbers of vertices and edges, unplaced vertices, orthogonality error, growth since the last anchor, numbers
            of anchors, batches, events and changes, bytes of memory, the chosen views with the scores of all recipes
            (how well each predicts hidden edges; empty if nothing was compared), and the requested measures.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> report = Embedder(dim=2).fit([("a", "b"), ("b", "c")]).diagnostics()
        >>> report["vertices"], report["edges"], report["ready"]
        (3, 2, True)
        """
        earlier = None if since is None else since._engine
        with self._lock.reading():
            report = self._engine.diagnostics()
            if objective or gap:
                from ripplevec.lab.objective.gap import evaluate_losses  # research code, imported on demand

                report["objective"] = evaluate_losses(self._engine, earlier, bound=gap)
            if gap:
                report["spectrum"] = _spectrum_shares(self._engine)
            return report

    def digest(self) -> str:
        """Return a hash of the complete state: graph, vectors, coordinates and sequence number.

        Returns
        -------
        str
            32 hexadecimal digits. Models with equal digests are equal.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> edges = [("a", "b"), ("b", "c")]
        >>> Embedder(dim=2).fit(edges).digest() == Embedder(dim=2).fit(edges).digest()
        True
        """
        with self._lock.exclude_writers():
            engine = self._engine
            if engine.correction is not None:  # an interrupt may have prevented the slices of the last batch
                self._continue_correction(engine)
            return engine.digest()

    def check(self) -> None:
        """Check internal invariants.

        Raises
        ------
        RipplevecError
            If an invariant does not hold.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).check()
        """
        with self._lock.exclude_writers():
            self._engine.check()

    def __repr__(self) -> str:
        engine = self._engine
        if isinstance(engine, UnusableState):
            return f"Embedder(dim={self.dim}, rule={self.rule!r}): unusable"
        edges = f"{engine.edges:,} edge{'' if engine.edges == 1 else 's'}"
        vertices = f"{len(engine):,} {'vertex' if len(engine) == 1 else 'vertices'}"
        return f"Embedder(dim={self.dim}, rule={self.rule!r}): {vertices}, {edges}"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self.diagnostics().items())
        return f"<table><caption>Embedder, rule {self.rule}</caption>{rows}</table>"

    # ------------------------------------------------------------------ saving and loading

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the model to a directory.

        A model that is already there is replaced atomically: after a crash the directory holds the old model or the new
        one.

        Parameters
        ----------
        directory : path
            The directory; created if it does not exist.

        Raises
        ------
        FormatError
            If the directory contains anything else than a saved model.

        Examples
        --------
        >>> import tempfile
        >>> from ripplevec import Embedder, load
        >>> model = Embedder(dim=2).fit([("a", "b"), ("b", "c")])
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     model.save(f"{parent}/model")
        ...     load(f"{parent}/model").digest() == model.digest()
        True
        """
        with self._lock.exclude_writers():
            arrays = self._engine.state()
            parameters = self._active_parameters.to_json()
        write_arrays(directory, arrays, {"parameters": parameters})

    @classmethod
    def load(cls, directory: str | PathLike[str], *, storage_dir: str | PathLike[str] | None = None) -> Self:
        """Load a model that `save` wrote. It continues exactly as the saved model would have.

        Parameters
        ----------
        directory : path
            The directory of the saved model.
        storage_dir : path, optional
            The parameter `storage_dir` of the loaded model, which is not saved.

        Returns
        -------
        Embedder
            The model.

        Raises
        ------
        FormatError
            If the directory does not contain a saved model, or the model is damaged.

        Examples
        --------
        >>> import tempfile
        >>> from ripplevec import Embedder
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     Embedder(dim=2).fit([("a", "b"), ("b", "c")]).save(f"{parent}/model")
        ...     Embedder.load(f"{parent}/model")
        Embedder(dim=2, rule='ripple'): 3 vertices, 2 edges
        """
        check_storage_dir(storage_dir)
        arrays, meta = read_arrays(directory)
        try:
            check_dim(meta["parameters"], arrays)
            model = cls(**Parameters.from_json(meta["parameters"]), storage_dir=storage_dir)
            model._engine.restore(arrays)
        except MALFORMED_STATE_ERRORS as error:
            raise FormatError(f"{directory}: not a saved model of this version ({error}). {RESTORE_HINT}") from error
        return model

    # ------------------------------------------------------------------ scikit-learn interface and pickling

    def fit_transform(self, edges: EdgeListLike, y: object = None, **columns: Any) -> NDArray[np.float32]:
        """Fit the model and return all vectors, in the order of `ids`.

        Parameters
        ----------
        edges : edge list
            See `fit`.
        y : object, optional
            Ignored; for compatibility with scikit-learn.
        **columns
            Names of the columns of a table; see `fit`.

        Returns
        -------
        float32 array of shape (len(model), dim)
            One row per vertex.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit_transform([("a", "b"), ("b", "c")]).shape
        (3, 2)
        """
        return self.fit(edges, **columns).to_numpy()

    def transform(self, ids: IdsLike) -> NDArray[np.float32]:
        """Return the vectors of vertices. The same as `vectors`, under the name of scikit-learn.

        Parameters
        ----------
        ids : list, array, series or Arrow array of int or str
            The vertices.

        Returns
        -------
        float32 array of shape (len(ids), dim)
            One row per id.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=2).fit([("a", "b"), ("b", "c")]).transform(["c", "a"]).shape
        (2, 2)
        """
        return self.vectors(ids)

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the model has vertices, for `sklearn.utils.validation.check_is_fitted`."""
        return len(self) > 0

    def __sklearn_tags__(self) -> Any:
        """Return the properties of the model that scikit-learn asks for."""
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=TransformerTags())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the model.

        Parameters
        ----------
        deep : bool, default True
            Ignored; for compatibility with scikit-learn.

        Returns
        -------
        dict
            The parameters by name.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=8).get_params()["dim"]
        8
        """
        return {field.name: getattr(self, field.name) for field in fields(Embedder)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters. The model starts over, empty.

        Parameters
        ----------
        **params
            Parameters of `Embedder` by name; the others stay as they are.

        Returns
        -------
        Embedder
            The model itself.

        Raises
        ------
        InvalidValueError
            If a name or a value cannot be used. The model stays as it was.

        Examples
        --------
        >>> from ripplevec import Embedder
        >>> Embedder(dim=8).set_params(dim=16).dim
        16
        """
        current = self.get_params()
        for name in params:
            if name not in current:
                raise InvalidValueError.of("parameter", "one of " + ", ".join(current), name)
        parameters = self._validated_parameters(**params)
        engine = self._create_engine(parameters)
        searcher = Searcher(parameters.search, parameters.threads)
        with self._lock.exclude_writers():
            self._replace_attributes(**params, _active_parameters=parameters, _engine=engine, _searcher=searcher)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and arrays, for copying and pickling."""
        with self._lock.exclude_writers():
            return {"parameters": self._active_parameters.to_json(), "arrays": dict(self._engine.state())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the model that `__getstate__` returned."""
        type(self).__init__(self, **Parameters.from_json(state["parameters"]))
        self._engine.restore(state["arrays"])

    # ------------------------------------------------------------------ internals
    # "For the writer" means: the caller holds `self._lock.exclude_writers()`.

    def _validated_parameters(self, **changes: Any) -> Parameters:
        """Return the parameters of the model with some changes."""
        return Parameters(**(self.get_params() | changes))

    def _create_engine(self, parameters: Parameters) -> Engine:
        """Create an empty engine. A subclass may return another class with the same methods."""
        columns = parameters.resolved_attribute_dim
        create: Callable[..., Engine] = Engine
        if columns:
            create = partial(AttributedEngine, settings=parameters.attribute_settings)
        return create(
            parameters.create_graph(),
            parameters.create_rule(),
            parameters.dim - columns,
            anchor_growth=parameters.resolved_anchor_growth,
            gradual=parameters.anchor_pace == "gradual",
            scale_interval=parameters.anchor_growth == "auto" and parameters.anchor_pace == "gradual",
            start_size=parameters.resolved_start_size,
            change_threshold=parameters.change_threshold,
            directory=parameters.storage_dir,
            aging=parameters.create_edge_aging(),
        )

    def _replace_attributes(self, **attributes: Any) -> None:
        """Set several attributes at once, while no reader is active. For the writer."""
        self._lock.run_exclusively(lambda: vars(self).update(attributes))

    def _apply(self, batch: Batch) -> Changes:
        with self._lock.exclude_writers():
            self._engine.check_attributes(batch.attributes)
            self._engine.open_admission().admit(batch)
            outcome = self._apply_to_engine(batch)  # may replace self._engine
            changes = self._engine.build_changes(outcome)
            self._engine.warn_self_loops()
            return changes

    def _apply_to_engine(self, batch: Batch) -> BatchOutcome:
        """Apply a batch. Readers see the state before it until it is complete. For the writer."""
        engine = self._engine
        if engine.may_trigger_anchor(batch):
            return self._update_copy(lambda copy: copy.apply(batch))
        outcome = self._lock.run_exclusively(partial(engine.apply, batch), partial(self._disable_if_incomplete, engine))
        if engine.correction is not None:
            self._continue_correction(engine)
        return outcome

    def _apply_arrival(
        self, ids: IdColumn, weights: NDArray[np.float64] | None, attributes: AttributeRows | None = None
    ) -> int:
        """Apply an arrival by the fast path; return its row, or −1 if it must be applied as a batch. For the writer."""
        engine = self._engine
        row = self._lock.run_exclusively(
            partial(engine.apply_arrival, ids, weights, attributes), partial(self._disable_if_incomplete, engine)
        )
        if engine.correction is not None:
            self._continue_correction(engine)
        return row

    def _continue_correction(self, engine: Engine) -> None:
        """Compute the slices of a correction that the last update has paid for, while readers read. For the writer."""
        try:
            engine.continue_correction()
        except BaseException as error:
            self._lock.run_exclusively(partial(self._disable_if_incomplete, engine, error))
            raise

    def _update_copy(self, update: Callable[[Engine], Result]) -> Result:
        """Run a long update on one copy of the state while readers see the other. For the writer."""
        before = self._engine
        try:
            readable, engine = before.fork_for_update()
            self._replace_attributes(_engine=readable)
            result = update(engine)
            self._replace_attributes(_engine=engine)
        except BaseException as error:  # `before` is as it was, unless there was no copy
            self._replace_attributes(_engine=before)
            self._disable_if_incomplete(before, error)
            raise
        return result

    def _disable_if_incomplete(self, engine: Engine, error: BaseException) -> None:
        """Make every further use an error if an update was left incomplete."""
        if engine.update_incomplete:
            self._engine = cast(Engine, UnusableState(error, self._recovery_hint))

    def _ids_and_vectors(self) -> tuple[IdColumn, NDArray[np.float32]]:
        """Return all ids and their vectors, in order of arrival."""
        with self._lock.reading():
            rows = self._engine.rows_by_arrival()
            return self._engine.id_column_of(rows), self._engine.get_vectors(rows)

    def _search(
        self, queries: Any, k: int, among: IdsLike | Callable[[Id], bool] | None
    ) -> tuple[int, list[list[tuple[Id, float]]]]:
        """Return the sequence number of one state, and the nearest vertices of every query in it."""
        _check_count(k)
        results = []
        with self._searcher.open_search() as search, self._lock.reading():
            engine = self._engine
            if among is not None:
                ids = filter(among, engine.ids_of(engine.rows_by_arrival())) if callable(among) else among
                candidates = np.unique(engine.rows_of(id_column(ids, "among")))
            for vertex in queries:
                query = self._resolve_query(vertex)
                if among is None:
                    rows, cosines = engine.nearest(search, query, int(k))
                else:
                    rows, cosines = engine.nearest_among(candidates, query, int(k))
                results.append(list(zip(engine.ids_of(rows), cosines.tolist(), strict=True)))
            return engine.sequence, results

    def _find_row(self, vertex: Any) -> int:
        return self._engine.find_row(normalize_id(vertex, "vertex"))

    def _preview_newcomers(self, newcomers: Newcomers | None) -> dict[Id, Newcomer]:
        """Return the vectors of newcomers, given the neighbors of each. For a reader."""
        columns = {
            normalize_id(vertex, "newcomers"): id_column(neighbors, "newcomers")
            for vertex, neighbors in (newcomers or {}).items()
        }
        return preview_newcomers(self._engine, columns)

    def _resolve_query(self, vertex: Any) -> int | NDArray[np.float64]:
        """Return the row of a vertex, or a checked vector."""
        if isinstance(vertex, ID_TYPES):
            return int(self._engine.rows_of(id_column([normalize_id(vertex, "vertex")]))[0])
        try:
            vector = np.asarray(vertex, np.float64)
        except (TypeError, ValueError) as error:
            expected = f"an id or a vector of {self.dim} numbers (for several of them: nearest_many)"
            raise InvalidValueError.of("vertex", expected, vertex) from error
        if vector.shape != (self.dim,) or not np.isfinite(vector).all():
            expected = f"an id or a vector of {self.dim} finite numbers (for several of them: nearest_many)"
            raise InvalidValueError.of("vertex", expected, vertex)
        return vector


class UnusableState:
    """Replacement for a state whose last update was interrupted: every use raises `StateError`."""

    update_incomplete = False  # it is replaced already

    def __init__(self, reason: BaseException, hint: str, subject: str = "model") -> None:
        self._reason, self._hint, self._subject = reason, hint, subject

    def __getattr__(self, name: str) -> NoReturn:
        message = f"an update was interrupted ({self._reason!r}) and left it incomplete. {self._hint}."
        raise StateError(f"the {self._subject} is unusable: {message}") from self._reason

    def __len__(self) -> NoReturn:
        self.__getattr__("__len__")


def load(directory: str | PathLike[str], *, storage_dir: str | PathLike[str] | None = None) -> Embedder:
    """Load a model that `Embedder.save` wrote.

    Parameters
    ----------
    directory : path
        The directory of the saved model.
    storage_dir : path, optional
        Directory for the vectors, if they exceed the memory. See `Embedder`.

    Returns
    -------
    Embedder
        The model. It continues exactly as the saved model would have.

    Raises
    ------
    FormatError
        If the directory does not contain a saved model, or the model is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from ripplevec import Embedder, load
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     Embedder(dim=2).fit([("a", "b"), ("b", "c")]).save(f"{parent}/model")
    ...     load(f"{parent}/model").ids
    ['a', 'b', 'c']
    """
    return Embedder.load(directory, storage_dir=storage_dir)


def _check_count(value: Any, name: str = "k", minimum: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InvalidValueError.of(name, f"a whole number ≥ {minimum}", value)


def _spectrum_shares(engine: Engine, attainable: dict[Any, float] | None = None) -> list[float]:
    """Return the share of the attainable spectrum that each view captures; `attainable` caches the denominators."""
    from ripplevec.lab.objective.gap import measure_spectrum_shares  # research code, imported on demand

    return [view.share for view in measure_spectrum_shares(engine, attainable)]


def _has_only_zero_vectors(engine: Engine) -> bool:
    """Return whether a graph with edges has only zero vectors. Usually the first rows tell."""
    if not engine.edges:
        return False  # the model begins empty
    rows = engine.rows_by_arrival()
    return not any(engine.get_vectors(rows[first : first + 1024]).any() for first in range(0, len(rows), 1024))
