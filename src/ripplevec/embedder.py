"""The embedder: vectors for a growing graph, from Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ripplevec.batch import (
    Batch,
    Id,
    IdColumn,
    Op,
    arrival_columns,
    id_column,
    ids_to_list,
    normalize_id,
    weight_column,
)
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.engine.engine import Engine
from ripplevec.engine.saved_state import MALFORMED_STATE_ERRORS, check_dim
from ripplevec.errors import FormatError, InvalidValueError, StateError, UnknownVertexError
from ripplevec.graph.graph import unit_weights
from ripplevec.parameters import Parameters, check_storage_dir
from ripplevec.search.searcher import Searcher
from ripplevec.util.checked_directory import RESTORE_HINT, read_arrays, write_arrays
from ripplevec.util.locks import ReadWriteLock
from ripplevec.views.base import Progress, View

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result")


class Embedder:
    """Keeps a vector for every vertex of a growing graph. One writer and many readers may share it.

    >>> model = Embedder(dim=4).fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> model.add_vertex("e", ["a", "b"]).shape
    (4,)
    """

    _recovery_hint = "Load a saved model, or begin again with fit"  # once a change was interrupted

    def __init__(
        self,
        *,
        dim: int = 128,
        rule: str = "ripple",
        depth: int | None = 1,
        views: str | Sequence[View] = "auto",
        anchor_growth: str | float = "auto",
        seed: int = 0,
        max_reads: int = 4096,
        storage: str = "auto",
        storage_dir: str | PathLike[str] | None = None,
        directed: bool = False,
        duplicates: str = "add",
        normalize: str | bool = "auto",
        start_size: str | int = "auto",
        change_threshold: float = 0.01,
        on_empty: str = "neighbors",
        normalization: str = "symmetric",
        reuse_influence: bool = False,
        threads: int | None = None,
        search: str = "auto",
        half_life: float | None = None,
        expire_after: float | None = None,
    ) -> None:
        self.dim = dim
        self.rule = rule
        self.depth = depth
        self.views = views
        self.anchor_growth = anchor_growth
        self.seed = seed
        self.max_reads = max_reads
        self.storage = storage
        self.storage_dir = storage_dir
        self.directed = directed
        self.duplicates = duplicates
        self.normalize = normalize
        self.start_size = start_size
        self.change_threshold = change_threshold
        self.on_empty = on_empty
        self.normalization = normalization
        self.reuse_influence = reuse_influence
        self.threads = threads
        self.search = search
        self.half_life = half_life
        self.expire_after = expire_after
        self._lock = ReadWriteLock()
        self._made_with = self._validated_parameters()
        self._engine = self._create_engine(self._made_with)
        self._search = Searcher(search, threads)

    # ------------------------------------------------------------------ what goes in

    def fit(self, edges: Any, *, progress: Progress | None = None) -> Embedder:
        """Begin anew with these edges as the initial graph; `progress(what, share done)` is called on long solves."""
        batch = Batch.from_any(edges, directed=self.directed)
        parameters = self._validated_parameters()
        engine = self._create_engine(parameters)
        engine.start(batch, progress)
        with self._lock.exclude_writers():
            self._put_in_place(_made_with=parameters, _engine=engine)
        engine.warn_self_loops()
        return self

    def partial_fit(self, edges: Any) -> Changes:
        """Apply a batch (edges in any form that `fit` takes, or a `Batch` with removals) and say what it changed."""
        batch = Batch.from_any(edges, directed=self.directed)
        return self._apply(batch)

    def add_vertex(
        self, vertex: Id, neighbors: Sequence[Id] = (), weights: Any = None, time: float | None = None
    ) -> NDArray[np.float32]:
        """Let a vertex arrive with its edges; its vector. A known vertex gets these edges in addition.

        Without a `time` it happens at the latest time that an event had.
        """
        neighbors, column, shares = arrival_columns(vertex, neighbors, weights)
        with self._lock.exclude_writers():
            row = self._arrive(column, shares) if time is None else -1
            if row < 0:
                self._apply_to_engine(Batch.arrival(vertex, neighbors, shares, time))
                row = self._row(vertex)
            vector = self._engine.get_vector(row)
            self._engine.warn_self_loops()
            return vector

    def add_edges(self, edges: Any) -> Changes:
        """Apply edges as a batch: `partial_fit` by another name."""
        return self.partial_fit(edges)

    def remove_edges(self, edges: Any) -> Changes:
        """Remove edges (pairs; weights are not looked at) as a batch."""
        batch = Batch.from_any(edges, op=Op.REMOVE, directed=self.directed)
        if len(batch) and (batch.op is None or (batch.op != Op.REMOVE).any()):
            raise InvalidValueError.of("edges", "pairs, or a batch of removals only", "a batch that does more")
        return self._apply(batch)

    def remove_vertex(self, vertex: Id) -> Changes:
        """Remove a vertex with all its edges."""
        batch = Batch.vertices([vertex], Op.REMOVE_VERTEX)
        return self._apply(batch)

    def anchor(self, *, gap: bool = False) -> Changes:
        """Correct all vectors now. Nothing happens under rule `paper`, nor on a graph without edges.

        With `gap` the changes say how much of its spectrum each view held before and after: `changes.spectrum`.
        """
        from ripplevec.lab.objective.gap import gaps  # the research side is imported on demand

        with self._lock.exclude_writers():
            possible = self.rule != "paper" and self._engine.edges > 0
            anchors = self._engine.anchors
            best: dict[Any, float] = {}  # of the graph, which an anchor leaves alone
            before = gaps(self._engine, best) if gap else []
            moved = self._change(lambda engine: engine.anchor()) if possible else np.empty(0, np.int64)
            anchored = self._engine.anchors > anchors  # not where its result was refused
            changes = self._engine.build_changes(BatchOutcome(moved, self._engine.next_arrival, [], anchored))
            if gap:
                changes.spectrum = [[found.share for found in state] for state in (before, gaps(self._engine, best))]
            return changes

    # ------------------------------------------------------------------ what comes out

    def __len__(self) -> int:
        return len(self._engine)

    def __contains__(self, vertex: object) -> bool:
        try:
            with self._lock.reading():
                return self._row(vertex) >= 0
        except InvalidValueError:
            return False

    def __getitem__(self, vertex: Id) -> NDArray[np.float32]:
        return self.vectors([vertex])[0]

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids)

    @property
    def ids(self) -> list[Id]:
        """All vertices in order of arrival."""
        with self._lock.reading():
            return ids_to_list(self._engine.id_column_of(self._engine.rows_by_arrival()))

    @property
    def sequence(self) -> int:
        """How many batches have been applied since the start."""
        return self._engine.sequence

    def vectors(self, ids: Any) -> NDArray[np.float32]:
        """The vectors of vertices, a row each; KeyError naming those that are not known."""
        column = id_column(ids)
        with self._lock.reading():
            return self._engine.get_vectors(self._engine.rows_of(column))

    def preview(self, neighbors: Sequence[Id], weights: Any = None) -> NDArray[np.float32]:
        """The vector a newcomer with these known neighbors would be placed at, before it moves any of them."""
        column = id_column(neighbors, "neighbors")
        shares = unit_weights(len(column)) if weights is None else weight_column(weights, len(column)).astype(np.float32)
        with self._lock.reading():
            return self._engine.preview(self._engine.rows_of(column), shares)

    def nearest(self, vertex: Id | NDArray[Any] | Sequence[float], k: int = 10) -> list[tuple[Id, float]]:
        """The `k` vertices of highest cosine with a vertex (itself left out) or with a raw vector, best first.

        Above 200,000 vertices an index answers if the extra `ann` is installed: cosines are exact, but a vertex may be
        missed now and then. `search="exact"` misses none.
        """
        return self.nearest_with_sequence(vertex, k)[1]

    def nearest_with_sequence(
        self, vertex: Id | NDArray[Any] | Sequence[float], k: int = 10
    ) -> tuple[int, list[tuple[Id, float]]]:
        """What `nearest` answers, behind the sequence number of the state that it was found in."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InvalidValueError.of("k", "a whole number ≥ 1", k)
        with self._search.open_search() as ask, self._lock.reading():
            sequence = self._engine.sequence
            rows, cosines = self._engine.nearest(ask, self._asked(vertex), int(k))
            names = self._engine.ids_of(rows)
        return sequence, list(zip(names, cosines.tolist(), strict=True))

    def degree(self, ids: Any) -> NDArray[np.int64]:
        """How many edges vertices have, in any direction."""
        column = id_column(ids)
        with self._lock.reading():
            return self._engine.degrees(self._engine.rows_of(column))

    def age(self, ids: Any) -> NDArray[np.int64]:
        """How many vertices have arrived after each of these."""
        column = id_column(ids)
        with self._lock.reading():
            engine = self._engine
            return engine.next_arrival - 1 - engine.arrival_numbers(engine.rows_of(column))

    def neighbors(self, vertex: Id, most: int | None = None) -> list[tuple[Id, float]]:
        """Who a vertex is connected to, with the weights of the edges, the latest first: all of them, or `most`."""
        column = id_column([vertex])
        with self._lock.reading():
            engine = self._engine
            rows, weights = engine.neighbors(int(engine.rows_of(column)[0]), most)
            return list(zip(engine.ids_of(rows), weights.tolist(), strict=True))

    def to_numpy(self) -> NDArray[np.float32]:
        """All vectors, in the order of `ids`."""
        with self._lock.reading():
            return self._engine.get_vectors(self._engine.rows_by_arrival())

    def to_arrow(self) -> pa.Table:
        """A table with the columns id and vector. Where ids are of both kinds, all are written as text."""
        column, vectors = self._all()
        names = column if not isinstance(column, list) else [str(name) for name in column]
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), self.dim)
        return pa.table({"id": pa.array(names), "vector": flat})

    def to_pandas(self) -> pd.DataFrame:
        """A data frame with a row per vertex (the index) and a column per coordinate."""
        import pandas as pd

        column, vectors = self._all()
        return pd.DataFrame(vectors, index=pd.Index(ids_to_list(column), name="id"))

    # ------------------------------------------------------------------ how it stands

    @property
    def engine(self) -> Engine:
        """The state itself. Read it under `lock`; changed it is by this class alone."""
        return self._engine

    @property
    def lock(self) -> ReadWriteLock:
        """Who may read the state, and when: `with model.lock.reading(): …`, and inside nothing else of the model."""
        return self._lock

    def diagnostics(
        self, *, objective: bool = False, gap: bool = False, since: Embedder | None = None
    ) -> dict[str, Any]:
        """Sizes, unplaced vertices, orthogonality error, growth since the last anchor, events and changes so far.

        `objective` adds the paper's losses: homophily now, smoothness `since` an earlier copy of the model (else 0).
        `gap` adds what they could be at best, and per view the share of its operator's spectrum that the vectors hold:
        an eigenproblem on the whole graph, which takes about as long as a start.
        """
        from ripplevec.lab.objective.gap import gaps, losses  # the research side is imported on demand

        earlier = None if since is None else since._engine
        with self._lock.reading():
            report = self._engine.diagnostics()
            if objective or gap:
                report["objective"] = losses(self._engine, earlier, bound=gap)
            if gap:
                report["spectrum"] = [found.share for found in gaps(self._engine)]
            return report

    def digest(self) -> str:
        """A hash of graph, vectors and sequence number: equal digests, equal models."""
        with self._lock.exclude_writers():
            return self._engine.digest()

    def check(self) -> None:
        """Raise where the state contradicts itself. For tests and for the suspicious."""
        with self._lock.exclude_writers():
            self._engine.check()

    def __repr__(self) -> str:
        engine = self._engine
        if isinstance(engine, UnusableEngine):
            return f"Embedder(dim={self.dim}, rule={self.rule!r}): unusable"
        return f"Embedder(dim={self.dim}, rule={self.rule!r}): {len(engine):,} vertices, {engine.edges:,} edges"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self.diagnostics().items())
        return f"<table><caption>Embedder, rule {self.rule}</caption>{rows}</table>"

    # ------------------------------------------------------------------ keeping it

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the model to a directory; an earlier model there is replaced, at once or not at all."""
        with self._lock.exclude_writers():
            arrays = self._engine.state()
            parameters = self._made_with.to_json()
        write_arrays(directory, arrays, {"parameters": parameters})

    @classmethod
    def load(cls, directory: str | PathLike[str], *, storage_dir: str | PathLike[str] | None = None) -> Embedder:
        """The model that `save` wrote; it goes on exactly as the saved one would have."""
        check_storage_dir(storage_dir)
        arrays, meta = read_arrays(directory)
        try:
            check_dim(meta["parameters"], arrays)
            model = cls(**Parameters.from_json(meta["parameters"]), storage_dir=storage_dir)
            model._engine.restore(arrays)
        except MALFORMED_STATE_ERRORS as error:
            raise FormatError(f"{directory}: not a saved model of this version ({error}); {RESTORE_HINT}") from error
        return model

    # ------------------------------------------------------------------ as scikit-learn wants it

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters the model was made with."""
        return {
            name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"
        }

    def set_params(self, **params: Any) -> Embedder:
        """Change parameters; the model begins anew, empty."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise InvalidValueError.of("parameter", "one of " + ", ".join(known), name)
        parameters = Parameters(**(known | params))
        engine = self._create_engine(parameters)
        search = Searcher(parameters.search, parameters.threads)
        with self._lock.exclude_writers():
            self._put_in_place(**params, _made_with=parameters, _engine=engine, _search=search)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """For copies and for other processes: parameters and arrays."""
        with self._lock.exclude_writers():
            return {"parameters": self._made_with.to_json(), "arrays": self._engine.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The model that `__getstate__` described."""
        type(self).__init__(self, **Parameters.from_json(state["parameters"]))
        self._engine.restore(state["arrays"])

    # ------------------------------------------------------------------ inside

    def _validated_parameters(self) -> Parameters:
        return Parameters(**self.get_params())

    def _create_engine(self, parameters: Parameters) -> Engine:
        """An empty engine. A subclass may make one of another kind: all that is asked of it are its methods."""
        return Engine(
            parameters.create_graph(),
            parameters.create_rule(),
            parameters.dim,
            anchor_growth=parameters.resolved_anchor_growth,
            start_size=parameters.resolved_start_size,
            change_threshold=parameters.change_threshold,
            directory=parameters.storage_dir,
            aging=parameters.create_edge_aging(),
        )

    def _put_in_place(self, **parts: Any) -> None:
        """Have another engine and what belongs to it, all at once, as the one who writes."""
        self._lock.run_exclusively(lambda: vars(self).update(parts))

    def _apply(self, batch: Batch) -> Changes:
        with self._lock.exclude_writers():
            outcome = self._apply_to_engine(batch)  # which may put another engine in place
            changes = self._engine.build_changes(outcome)
            self._engine.warn_self_loops()
            return changes

    def _apply_to_engine(self, batch: Batch) -> BatchOutcome:
        """Apply a batch, as the one who writes. Readers see the state before it until it is complete."""
        engine = self._engine
        if engine.may_trigger_anchor(batch):
            return self._change(lambda copy: copy.apply(batch))
        try:
            prepared = engine.prepare(batch)
            outcome = self._lock.run_exclusively(partial(self._complete, engine, engine.step, batch, prepared))
            engine.start_pending_anchor()
        except BaseException as error:
            self._give_up(engine, error)
            raise
        return outcome

    def _arrive(self, names: IdColumn, weights: NDArray[np.float64] | None) -> int:
        """Apply an arrival the short way, as the one who writes; its row, −1 where there is none."""
        engine = self._engine
        return self._lock.run_exclusively(partial(self._complete, engine, engine.apply_arrival, names, weights))

    def _complete(self, engine: Engine, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do a step of an engine that readers are kept from; where it is left incomplete, nobody gets to see that."""
        try:
            return work(*arguments)
        except BaseException as error:
            self._give_up(engine, error)
            raise

    def _change(self, work: Callable[[Engine], Result]) -> Result:
        """Change the state by work that takes long, as the one who writes; readers see a copy from before meanwhile."""
        before = self._engine
        try:
            shown, engine = before.fork_for_update()
            self._put_in_place(_engine=shown)
            result = work(engine)
            self._put_in_place(_engine=engine)
        except BaseException:  # with nothing changed
            self._put_in_place(_engine=before)
            raise
        return result

    def _give_up(self, engine: Engine, error: BaseException) -> None:
        """Refuse every further use if a change has been left incomplete."""
        if engine.update_incomplete:
            self._engine = cast(Engine, UnusableEngine(error, self._recovery_hint))

    def _all(self) -> tuple[IdColumn, NDArray[np.float32]]:
        """All names and their vectors, in order of arrival."""
        with self._lock.reading():
            rows = self._engine.rows_by_arrival()
            return self._engine.id_column_of(rows), self._engine.get_vectors(rows)

    def _row(self, vertex: Any) -> int:
        return self._engine.find_row(normalize_id(vertex, "vertex"))

    def _asked(self, vertex: Any) -> int | NDArray[np.float64]:
        """What to compare with: a row, or a vector."""
        if isinstance(vertex, int | str | np.integer):
            row = self._row(vertex)
            if row < 0:
                raise UnknownVertexError([vertex])
            return row
        try:
            vector = np.asarray(vertex, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidValueError.of("vertex", f"an id or a vector of {self.dim} numbers", vertex) from error
        if vector.shape != (self.dim,) or not np.isfinite(vector).all():
            raise InvalidValueError.of("vertex", f"an id or a vector of {self.dim} finite numbers", vertex)
        return vector


class UnusableEngine:
    """Stands in the place of an engine whose last change was interrupted: whatever is asked of it is refused."""

    def __init__(self, reason: BaseException, remedy: str) -> None:
        self._reason, self._recovery_hint = reason, remedy

    def __getattr__(self, name: str) -> NoReturn:
        message = f"the model is unusable: a change was interrupted ({self._reason!r}) and left it incomplete"
        raise StateError(f"{message}. {self._recovery_hint}.") from self._reason

    def __len__(self) -> NoReturn:
        self.__getattr__("__len__")


def load(directory: str | PathLike[str], *, storage_dir: str | PathLike[str] | None = None) -> Embedder:
    """The model that `Embedder.save` wrote to this directory; its vectors in files in `storage_dir`, if given."""
    return Embedder.load(directory, storage_dir=storage_dir)
