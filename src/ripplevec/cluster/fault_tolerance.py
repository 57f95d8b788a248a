"""An engine that outlives its shards: the last snapshot and the batches since bring back what a lost shard knew.

Shards forget everything when their process or machine goes. All of them then go back to the snapshot and take the same
batches again, to the same bits; the batch that was interrupted is taken as if for the first time.
"""

from __future__ import annotations

import logging
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from os import PathLike
from tempfile import mkdtemp
from typing import Any

from numpy.typing import NDArray

from ripplevec.cluster.checkpoint import lazy_state
from ripplevec.cluster.engine import ClusterEngine, Result
from ripplevec.cluster.transport import ShardLostError, Transport
from ripplevec.parameters import Parameters
from ripplevec.util.checked_directory import read_arrays, write_arrays
from ripplevec.util.locks import ReadWriteLock

SNAPSHOT_EVERY = 250_000
"""Events between two snapshots, or a tenth of the graph's edges where that is more."""

ATTEMPTS = 5
"""How often in a row shards may be lost at the same batch before it is given up."""

_KIND = "shards"
_OWN = ("transport", "parameters", "anchor_lag", "_warned")  # what is not part of the state
_log = logging.getLogger("ripplevec.cluster")


class FaultTolerantEngine(ClusterEngine):
    """A cluster engine whose shards may go at any time.

    Whoever asks holds off whoever brings shards back, and waits for him: nobody is told what holds halfway.
    """

    def __init__(
        self,
        transport: Transport,
        parameters: Parameters,
        *,
        snapshot_every: int = SNAPSHOT_EVERY,
        snapshot_dir: str | PathLike[str] | None = None,
    ) -> None:
        self.snapshot_every = snapshot_every
        self.recoveries = 0  # how often shards had to be brought back
        self._directory = mkdtemp(prefix="ripplevec-", dir=snapshot_dir)
        weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._has_snapshot, self._kept_events = False, 0
        self._since: list[Callable[[ClusterEngine], Any]] = []  # what has been done since the snapshot
        self._asking = ReadWriteLock()
        self._changing = threading.RLock()
        self._changed_by: int | None = None  # the thread that is in the middle of a change
        self._asked_by = threading.local()
        self._broken = False  # whether the shards may stand elsewhere than the model does
        super().__init__(transport, parameters)

    # ------------------------------------------------------------------ who asks

    def query(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        """What every shard says; where one is lost, all are brought back first."""
        return self._asked(partial(super().query, method, *columns, **constants))

    def submit(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        """The same, without a look at the answers: it may be seen later that one is lost."""
        return self._asked(partial(super().submit, method, *columns, **constants))

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything as plain arrays."""
        return self._asked(super().state)

    def check(self) -> None:
        """Raise where a shard contradicts itself or another, or what is known here of all of them."""
        self._asked(super().check)

    def fetch_changed_vectors(self, answers: list[Any], asked: list[Any], sequence: int) -> list[Any]:
        """What shards answered; where an answer was lost, it is asked for again as long as no other batch came."""
        try:
            return super().fetch_changed_vectors(answers, asked, sequence)
        except ShardLostError:
            if self._stands_at(sequence):
                again = self.query("read_rows", asked, what="vectors")
                if self._stands_at(sequence):
                    return again
            raise

    def _stands_at(self, sequence: int) -> bool:
        return self._changed_by is None and self.sequence == sequence

    def _asked(self, question: Callable[[], Result]) -> Result:
        if self._changed_by == threading.get_ident() or getattr(self._asked_by, "me", False):
            return question()
        for _ in range(ATTEMPTS):
            recoveries = self.recoveries
            if self._broken:
                self._recover_shards(recoveries)
            try:
                with self._asking.reading(), self._by_me():
                    return question()
            except ShardLostError as error:
                _log.warning("%s", error)
                self._recover_shards(recoveries)
        raise ShardLostError(f"shards were lost {ATTEMPTS} times in a row")

    @contextmanager
    def _by_me(self) -> Iterator[None]:
        self._asked_by.me = True
        try:
            yield
        finally:
            self._asked_by.me = False

    # ------------------------------------------------------------------ what changes it

    def run_atomically(self, work: Callable[[ClusterEngine], Result]) -> Result:
        """Do what changes the state, however often it takes: once in the end, or, where it fails, not at all."""
        result = self._done(work)
        if self.events - self._kept_events >= max(self.snapshot_every, self.edges // 10):
            self._snapshot()
        return result

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave, on as many shards as there were; from now on it is what they go back to."""
        self._done(partial(ClusterEngine.restore, state=state))
        self._keep(state)

    def _done(self, work: Callable[[ClusterEngine], Result]) -> Result:
        for attempt in range(ATTEMPTS):
            try:
                result = self._doing(work)
                break
            except ShardLostError:
                if attempt + 1 == ATTEMPTS:
                    raise
        self._since.append(work)
        return result

    def _doing(self, work: Callable[[ClusterEngine], Result]) -> Result:
        with self._changing:
            if self._broken:
                self._recover_shards(self.recoveries)
            self._changed_by = threading.get_ident()
            try:
                return work(self)
            except BaseException as error:  # whatever it was, the shards may have come halfway
                _log.warning("%s", error)
                self._broken = True
                self._recover_shards(self.recoveries)
                raise
            finally:
                self._changed_by = None

    def _snapshot(self) -> None:
        try:
            self._keep(self._asked(partial(lazy_state, self)))
        except ShardLostError as error:  # there will be another occasion
            _log.warning("no snapshot of the shards: %s", error)

    def _keep(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Have a state on disk, instead of what led to it."""
        try:
            write_arrays(self._directory, state, {}, kind=_KIND)
        except OSError as error:
            _log.warning("no snapshot of the shards: %s", error)
            return
        self._has_snapshot, self._kept_events = True, self.events
        self._since.clear()

    # ------------------------------------------------------------------ what brings it back

    def _recover_shards(self, seen: int) -> None:
        """Bring all shards back to where the model stands; once, for however many have noticed."""
        with self._asking.exclude_writers():
            self._asking.run_exclusively(partial(self._mend_alone, seen))

    def _mend_alone(self, seen: int) -> None:
        if self.recoveries != seen:
            return
        if not self._changing.acquire(blocking=False):  # a change may wait for this reader: it cannot be waited for
            raise ShardLostError("a shard is lost, and comes back with the batch that is on its way: ask again")
        try:
            self._broken = True
            self._begin_again()
            self._broken, self.recoveries = False, self.recoveries + 1
        finally:
            self._changing.release()

    def _begin_again(self) -> None:
        _log.warning("all shards begin again, with the last %d batches to take", len(self._since))
        for attempt in range(ATTEMPTS):
            try:
                again = self._replayed()
                break
            except ShardLostError:
                if attempt + 1 == ATTEMPTS:
                    raise
        vars(self).update({name: value for name, value in vars(again).items() if name not in _OWN})

    def _replayed(self) -> ClusterEngine:
        """The model brought back, in an engine of its own: those who read the numbers of this one see no change."""
        self.transport.reset()
        again = ClusterEngine(self.transport, self.parameters)
        if self._has_snapshot:
            again.restore(read_arrays(self._directory, kind=_KIND, mapped=True)[0])
        for work in self._since:
            work(again)
        return again
