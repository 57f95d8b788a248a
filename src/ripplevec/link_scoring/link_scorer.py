"""The `LinkScorer`: the probability of an edge, learned online from the vectors of a model and the history of edges."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ripplevec.batch import Batch, EdgeListLike, Id, IdColumn, IdsLike, Op, id_column, ids_to_list, select_rows
from ripplevec.changes import Changes
from ripplevec.embedder import Embedder, UnusableState
from ripplevec.engine.engine import Engine
from ripplevec.engine.state_validation import MALFORMED_STATE_ERRORS, check_dim
from ripplevec.errors import FormatError, InvalidValueError, StateError, check_choice
from ripplevec.graph.graph import strip_prefix
from ripplevec.influence._kernels import draw_key
from ripplevec.link_scoring import _kernels as kernels
from ripplevec.link_scoring._calibration import compute_correction
from ripplevec.link_scoring._kernels import FEATURES, Candidates
from ripplevec.link_scoring.scorer_state import EnteredBatch, Examples, Rows, ScorerState
from ripplevec.parameters import Parameters
from ripplevec.util.checked_directory import RESTORE_HINT, read_arrays, write_arrays
from ripplevec.util.locks import ReadWriteLock

CandidatesLike: TypeAlias = IdsLike | NDArray[Any]

SAVED_KIND = "link scorer"
"""Kind of the directories that `LinkScorer.save` writes."""

SCORER_VERSION = 3  # 1: no calibration
"""Version of the saved scorer. The model in it has a version of its own."""

WITHOUT_REMOVALS = 2
"""Version without `History.begin`: the scorer never forgot a vertex."""

_RECOVERY_HINT = "Load a saved scorer, or build the scorer again from its stream"

MAX_NEGATIVES = 10_000
"""Largest number of random targets that an event is compared with."""


class Prediction(NamedTuple):
    """The result of `LinkScorer.partial_fit`.

    Attributes
    ----------
    changes : Changes
        The vertices whose vectors moved.
    scores : float64 array
        For each added edge, in order, the score that it had just before it was observed.
    candidate_scores : float64 array of shape (edges, candidates)
        The scores of the given candidates at the same time.
    """

    changes: Changes
    scores: NDArray[np.float64]
    candidate_scores: NDArray[np.float64]


class LinkScorer:
    """Probabilities of edges in a stream, learned online while a model follows the stream.

    The score of a pair is the probability that the next event of its source goes to its target. It is a logistic
    function of a few features: the cosine of the two vectors, how often and how recently the pair has occurred, how
    popular the target is, and their common neighbors. The weights are learned from the stream: every event is a
    positive example, and other targets are negative ones. A monotone correction, learned from the same examples,
    calibrates the probabilities. A vertex costs about 350 bytes until it is removed; counters decay, and time is
    counted in events.

    Parameters
    ----------
    model : Embedder
        The model whose vectors are used, and to which `partial_fit` applies the batches.
    apply : callable, optional
        Function that applies a batch to the model and returns its changes; by default `model.partial_fit`. For the
        model of a session, give `session.apply`.
    negatives : int, default 8
        Number of random targets that an event is compared with.
    seed : int, default 0
        Seed of their selection. The same seed and batches give the same bits.
    update : "event" or "batch", default "event"
        Whether an edge is predicted, and learned from, with the history up to the edge before it, or with that before
        its batch. Use "batch" if you ask for scores between batches: then the weights are learned for what is known at
        that time.

    Examples
    --------
    >>> from ripplevec import Embedder, LinkScorer
    >>> scorer = LinkScorer(Embedder(dim=4))
    >>> for day in range(20):
    ...     _ = scorer.partial_fit([("ann", "tea"), ("bob", "milk"), ("eve", "tea"), ("joe", "milk")])
    >>> tea, milk = scorer.score([("ann", "tea"), ("ann", "milk")])
    >>> bool(tea > milk)
    True
    """

    def __init__(
        self,
        model: Embedder,
        *,
        apply: Callable[[Batch], Changes] | None = None,
        negatives: int = 8,
        seed: int = 0,
        update: Literal["event", "batch"] = "event",
    ) -> None:
        for name, value, least, most in (("negatives", negatives, 1, MAX_NEGATIVES), ("seed", seed, 0, 2**63 - 1)):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidValueError.of(name, f"a whole number from {least} to {most:,}", value)
        check_choice("update", update, ("event", "batch"))
        self.model, self.negatives, self.seed, self.update = model, negatives, seed, update
        self._apply = model.partial_fit if apply is None else apply
        self._lock, self._state = ReadWriteLock(), ScorerState()

    # ------------------------------------------------------------------ following the stream

    def partial_fit(
        self, edges: EdgeListLike, *, learn: bool = True, candidates: CandidatesLike | None = None
    ) -> Prediction:
        """Apply a batch to the model; score its edges one after the other, and learn from each.

        An edge is scored with the history up to the edge before it, or with that before the batch if `update` is
        "batch", and with the vectors before the batch.

        Parameters
        ----------
        edges : edge list
            Edges in any form that `Embedder.partial_fit` accepts, or a `Batch`. Only added edges are scored.
        learn : bool, default True
            Whether the weights are updated. The history is updated in any case.
        candidates : ids, or array of ids of shape (edges, candidates), optional
            Targets to score with the source of each edge, just before the edge is observed: the same ones for all
            edges, or one line per edge.

        Returns
        -------
        Prediction
            The changes of the model, and the scores.

        Raises
        ------
        RipplevecError
            If the batch or the candidates cannot be used. Model and scorer stay as they were.
        StateError
            If an earlier batch was interrupted and left the model or the scorer incomplete.

        Examples
        --------
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> prediction = scorer.partial_fit([("a", "x"), ("b", "x")], candidates=["x", "y"])
        >>> prediction.scores.shape, prediction.candidate_scores.shape
        ((2,), (2, 2))
        """
        batch = Batch.from_any(edges, directed=self.model.directed)
        added = batch if batch.op is None else select_rows(batch, np.flatnonzero(batch.op == Op.ADD))
        shared, own = _candidate_column(candidates, len(added))
        with self._lock.exclude_writers():
            changes, scores = self._follow(
                batch, added, lambda entered: self._prepare(entered, added.src, learn, shared, own)
            )
        return Prediction(changes, scores[:, 0], scores[:, 1:])

    def _follow(
        self, batch: Batch, added: Batch, prepare: Callable[[EnteredBatch], Examples]
    ) -> tuple[Changes, NDArray[np.float64]]:
        """Apply a batch to the model and observe it; return the changes and the scores. For the writer."""
        state, sequence = self._state, self.model.sequence
        observe: Callable[[], None] | None = None
        try:
            entered = self._lock.run_exclusively(partial(state.enter, added))
            examples = prepare(entered)
            observe = partial(self._observe, state, examples, batch)
            changes = self._apply(batch)
            self._lock.run_exclusively(observe)
        except BaseException as error:
            self._lock.run_exclusively(partial(self._recover, state, sequence, observe, error))
            raise
        return changes, examples.scores

    def _prepare(
        self, entered: EnteredBatch, sources: IdColumn, learn: bool, shared: IdColumn, own: int | None
    ) -> Examples:
        """Read everything that depends on the vectors before the batch."""
        src, dst = entered.src, entered.dst
        cosines = self._read_cosines(src, dst[:, None])[:, 0]
        alternatives = self._choose_alternatives(src if learn else src[:0], len(src), entered.targets)
        candidates = self._find_candidates(sources, shared, own)
        scores = np.empty((len(src), 1 + candidates.rows.shape[1]))
        importance = len(entered.targets) / self.negatives
        return Examples(cosines, alternatives, importance, candidates, self.update == "batch", scores)

    def _observe(self, state: ScorerState, examples: Examples, batch: Batch) -> None:
        """Observe a batch that the model has applied, and forget the vertices that it removed."""
        removed = np.empty(0, np.int64)
        if batch.op is not None and (batch.op == Op.REMOVE_VERTEX).any():
            ids = select_rows(batch, np.flatnonzero(batch.op == Op.REMOVE_VERTEX)).src
            with self.model.lock.reading():
                gone = self.model.engine.find_rows(ids) < 0  # the others have been added again
            rows = np.unique(state.ids.find_rows(ids)[gone])
            removed = rows[rows >= 0]
        state.observe(examples, removed)

    def _recover(
        self, state: ScorerState, sequence: int, observe: Callable[[], None] | None, error: BaseException
    ) -> None:
        """Bring the scorer to the state of the model after an error in a batch, or make every further use an error."""
        try:
            if state.update_incomplete and state.entered is not None:
                applied = self._read_sequence()
                if applied == sequence:
                    state.withdraw()
                elif applied is not None and observe is not None:  # a warning or a listener, raised after the batch
                    observe()
        finally:
            if state.update_incomplete:
                self._state = cast(ScorerState, UnusableState(error, _RECOVERY_HINT, "scorer"))

    def _read_sequence(self) -> int | None:
        """Return the sequence number of the model, None if the model is unusable."""
        with suppress(StateError):
            return self.model.sequence
        return None

    def _choose_alternatives(self, src: Rows, events: int, targets: Rows) -> Candidates:
        """Choose the negative examples of events from targets, given their sources; none if there are no sources."""
        if not len(src):
            return Candidates(np.empty((events, 0), np.int64), np.empty((events, 0), np.float32))
        key = draw_key(self.seed, 0, 0)
        rows = kernels.choose_alternatives(self._state.history, targets, src, self._state.events, key, self.negatives)
        return Candidates(rows, self._read_cosines(src, rows))

    def _find_candidates(self, sources: IdColumn, ids: IdColumn, own: int | None) -> Candidates:
        """Return the candidates of sources with their cosines: `own` ids for each, or all ids for all."""
        rows = self._state.ids.find_rows(ids)
        if own is not None:
            rows = rows.reshape(len(sources), own)
            return Candidates(rows, self._read_cosines(self._state.ids.find_rows(sources), rows))
        cosines = self._unit_vectors(sources) @ self._unit_vectors(ids).T
        return Candidates(np.broadcast_to(rows, cosines.shape), cosines)

    # ------------------------------------------------------------------ reading

    @property
    def weights(self) -> dict[str, float]:
        """The learned weight of each feature."""
        return dict(zip(FEATURES, self._state.regression.weights.tolist(), strict=True))

    def score(self, pairs: EdgeListLike) -> NDArray[np.float64]:
        """Return, for each pair, the probability that the next event of its source goes to its target.

        Parameters
        ----------
        pairs : edge list
            Pairs (source, target), in any form that `Embedder.fit` accepts. Unknown vertices are allowed: they have
            neither a vector nor a history.

        Returns
        -------
        float64 array
            One probability per pair.

        Raises
        ------
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> _ = scorer.partial_fit([("a", "x"), ("b", "x")])
        >>> scorer.score([("a", "x"), ("a", "unknown")]).shape
        (2,)
        """
        batch = Batch.from_any(pairs)
        with self._lock.reading():
            units = [self._unit_vectors(column) for column in (batch.src, batch.dst)]
            cosines = np.einsum("ij,ij->i", *units)[:, None]
            src, dst = (self._state.ids.find_rows(column) for column in (batch.src, batch.dst))
            return self._score(src, dst[:, None], cosines)[:, 0]

    def score_candidates(self, sources: IdsLike, candidates: CandidatesLike) -> NDArray[np.float64]:
        """Return the scores of many candidates of each source.

        Parameters
        ----------
        sources : list, array, series or Arrow array of int or str
            The sources.
        candidates : ids, or array of ids of shape (sources, candidates)
            The targets: the same ones for all sources, or one line per source.

        Returns
        -------
        float64 array of shape (sources, candidates)
            The probabilities that `score` returns for the pairs.

        Raises
        ------
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> _ = scorer.partial_fit([("a", "x"), ("b", "y")])
        >>> scorer.score_candidates(["a", "b"], ["x", "y", "z"]).shape
        (2, 3)
        """
        column = id_column(sources, "sources")
        shared, own = _candidate_column(candidates, len(column))
        with self._lock.reading():
            found = self._find_candidates(column, shared, own)
            return self._score(self._state.ids.find_rows(column), *found)

    def surprise(self, pairs: EdgeListLike) -> NDArray[np.float64]:
        """Return how surprising each edge would be: −log of its score, in nats.

        Parameters
        ----------
        pairs : edge list
            Pairs (source, target), as in `score`.

        Returns
        -------
        float64 array
            One number ≥ 0 per pair.

        Examples
        --------
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> _ = scorer.partial_fit([("a", "x"), ("b", "x")])
        >>> bool(scorer.surprise([("a", "x")])[0] > 0)
        True
        """
        return -np.log(np.maximum(self.score(pairs), np.finfo(np.float64).tiny))

    def recommend(
        self,
        vertex: Id,
        k: int = 10,
        *,
        among: IdsLike | None = None,
        exclude: Literal["neighbors"] | None = None,
    ) -> list[tuple[Id, float]]:
        """Return the most probable targets of the next event of a vertex.

        Parameters
        ----------
        vertex : int or str
            The source; it may be unknown.
        k : int, default 10
            Number of targets.
        among : list, array, series or Arrow array of int or str, optional
            Candidates. By default all targets of events so far.
        exclude : "neighbors" or None, default None
            Whether vertices that already have an edge with the vertex are left out.

        Returns
        -------
        list of (id, probability) pairs
            At most `k` candidates, the most probable first.

        Raises
        ------
        InvalidValueError
            If a value cannot be used.

        Examples
        --------
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> _ = scorer.partial_fit([("a", "x"), ("a", "x"), ("b", "y")])
        >>> [target for target, _ in scorer.recommend("a", 1)]
        ['x']
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise InvalidValueError.of("k", "a whole number ≥ 1", k)
        if exclude not in ("neighbors", None):
            raise InvalidValueError.of("exclude", '"neighbors" or None', exclude)
        excluded = {name for name, _ in self.model.neighbors(vertex)} if exclude and vertex in self.model else set()
        with self._lock.reading():
            ids = self._state.ids.to_column(self._state.targets) if among is None else id_column(among, "among")
            scores = self.score_candidates([vertex], ids)[0]
        names = ids_to_list(ids)
        kept = [i for i in np.argsort(-scores, kind="stable").tolist() if names[i] not in excluded | {vertex}]
        return [(names[i], float(scores[i])) for i in kept[:k]]

    def _score(self, src: Rows, dst: Rows, cosines: NDArray[np.float32]) -> NDArray[np.float64]:
        state, scores = self._state, np.empty(dst.shape)
        correction, weights = compute_correction(state.calibration), state.regression.weights
        kernels.score_rows(state.history, weights, correction, src, dst, state.events, cosines, scores)
        return scores

    def _unit_vectors(self, ids: IdColumn) -> NDArray[np.float32]:
        """Return the vectors of vertices, scaled to length one; zero for vertices without a vector."""
        units = np.zeros((len(ids), self.model.dim), np.float32)
        with self.model.lock.reading():
            engine = self.model.engine
            rows = engine.find_rows(ids)
            known = np.flatnonzero(rows >= 0)
            units[known] = engine.unit_vectors(rows[known])
        return units

    def _read_cosines(self, src: Rows, dst: Rows) -> NDArray[np.float32]:
        """Return the cosines of rows of the history: of each source with each of its candidates."""
        used, position = np.unique(np.concatenate([src, dst.ravel(), [-1]]), return_inverse=True)
        units = self._unit_vectors(self._state.ids.to_column(used[1:]))
        position -= 1  # of the vertex in `units`
        cosines = np.empty(dst.shape, np.float32)
        kernels.fill_cosines(units, position[: len(src)], position[len(src) : -1].reshape(dst.shape), cosines)
        return cosines

    # ------------------------------------------------------------------ saving and loading

    def save(self, directory: str | PathLike[str]) -> None:
        """Write the scorer and its model to a directory, together and atomically.

        Parameters
        ----------
        directory : path
            The directory; created if it does not exist. A saved scorer that is already there is replaced.

        Raises
        ------
        FormatError
            If the directory contains anything else than a saved scorer.
        InvalidValueError
            If the model is on shards.

        Examples
        --------
        >>> import tempfile
        >>> from ripplevec import Embedder, LinkScorer
        >>> scorer = LinkScorer(Embedder(dim=4))
        >>> _ = scorer.partial_fit([("a", "x"), ("b", "x")])
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     scorer.save(f"{parent}/scorer")
        ...     bool((LinkScorer.load(f"{parent}/scorer").score([("a", "x")]) == scorer.score([("a", "x")])).all())
        True
        """
        if not isinstance(self.model.engine, Engine | UnusableState):
            raise InvalidValueError.of("model", "an Embedder on one machine", type(self.model).__name__)
        with self._lock.exclude_writers():
            saved = self.model.__getstate__()
            arrays = {f"model_{name}": array for name, array in saved["arrays"].items()} | self._state.to_arrays()
            meta = {
                "parameters": saved["parameters"],
                "negatives": self.negatives,
                "seed": self.seed,
                "update": self.update,
                "events": self._state.events,
                "scorer_version": SCORER_VERSION,
            }
        write_arrays(directory, arrays, meta, kind=SAVED_KIND)

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> LinkScorer:
        """Load a scorer and its model. They continue exactly as the saved ones would have.

        Parameters
        ----------
        directory : path
            A directory that `save` wrote.

        Returns
        -------
        LinkScorer
            The scorer; its model is an `Embedder`.

        Raises
        ------
        FormatError
            If the directory does not contain a saved scorer, or the scorer is damaged.
        """
        arrays, meta = read_arrays(directory, kind=SAVED_KIND)
        if (version := meta.get("scorer_version", 1)) not in (WITHOUT_REMOVALS, SCORER_VERSION):
            raise FormatError(
                f"{directory}: expected a scorer of version {SCORER_VERSION}, got version {version!r}. "
                f"Build the scorer again from its stream, or load it with the Ripplevec that saved it."
            )
        try:
            state = strip_prefix("model_", arrays)
            check_dim(meta["parameters"], state)
            model = Embedder(**Parameters.from_json(meta["parameters"]))
            model.engine.restore(state)
            scorer = cls(model, negatives=meta["negatives"], seed=meta["seed"], update=meta["update"])
            if version == WITHOUT_REMOVALS:
                arrays["history_begin"] = np.zeros(len(arrays["ids_end"]), np.int64)
            scorer._state = ScorerState.from_arrays(arrays, meta["events"])
        except MALFORMED_STATE_ERRORS as error:
            raise FormatError(f"{directory}: not a saved scorer of this version ({error}). {RESTORE_HINT}") from error
        return scorer


def _candidate_column(candidates: CandidatesLike | None, sources: int) -> tuple[IdColumn, int | None]:
    """Return the ids of candidates as one column, and their number per source; None if all sources share them."""
    if candidates is None:
        return np.empty(0, np.int64), None
    if isinstance(candidates, np.ndarray) and candidates.ndim == 2:
        if len(candidates) != sources:
            raise InvalidValueError.of("candidates", f"{sources:,} lines, one per source", f"{len(candidates):,}")
        return id_column(candidates.ravel(), "candidates"), candidates.shape[1]
    return id_column(candidates, "candidates"), None
