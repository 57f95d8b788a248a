"""Engine that recovers lost shards from the last snapshot and the updates applied since.

A shard loses its state when its process or machine fails. Then all shards return to the snapshot and apply the same
updates again, with bit-identical results; an update that was interrupted is applied as if for the first time.
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

from ripplevec.cluster.engine import ClusterEngine, RemoteVectors, Result
from ripplevec.cluster.mesh import ShardLostError
from ripplevec.cluster.read_snapshot import RECOVERING
from ripplevec.cluster.state_arrays import lazy_state
from ripplevec.cluster.transport import Transport
from ripplevec.parameters import Parameters
from ripplevec.util.checked_directory import read_arrays, write_arrays
from ripplevec.util.locks import ReadWriteLock

SNAPSHOT_EVERY = 250_000
"""Events between two snapshots, or a tenth of the graph's edges if that is more."""

MAX_ATTEMPTS = 5
"""Number of times in a row that shards may be lost during one update before it fails."""

_KIND = "shards"  # of the snapshot directory
_NOT_RECOVERED = ("transport", "parameters", "anchor_lag", "_warned")  # attributes that are not part of the state
_log = logging.getLogger("ripplevec.cluster")

Update = Callable[[ClusterEngine], Result]
"""A function that updates the state of an engine; it can be repeated on another engine."""


class FaultTolerantEngine(ClusterEngine):
    """A cluster engine whose shards may be lost at any time.

    Reads block recovery, and recovery blocks reads, so a reader never sees a partly recovered state.

    Parameters
    ----------
    transport
        The shards.
    parameters
        Parameters of the model.
    snapshot_every
        Events between two snapshots.
    snapshot_dir
        Directory for snapshots; by default, the system's directory for temporary files.
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
        self.recoveries = 0  # number of times that the shards were recovered
        self._directory = mkdtemp(prefix="ripplevec-", dir=snapshot_dir)
        weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        self._has_snapshot, self._snapshot_events = False, 0
        self._updates: list[Update[Any]] = []  # applied since the snapshot
        self._recovery_lock = ReadWriteLock()
        self._update_lock = threading.RLock()
        self._updating_thread: int | None = None
        self._reader = threading.local()
        self._needs_recovery = False  # whether the state of the shards may differ from that of the driver
        super().__init__(transport, parameters)

    # ------------------------------------------------------------------ reads

    def query(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        """Call a method on every shard and wait for the results; recover the shards first if one is lost."""
        return self._read(partial(super().query, method, *columns, **constants))

    def submit(self, method: str, *columns: Any, **constants: Any) -> list[Any]:
        """Call a method on every shard and wait; a lost shard may be noticed only when the results are resolved."""
        return self._read(partial(super().submit, method, *columns, **constants))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays."""
        return self._read(super().state)

    def check(self) -> None:
        """Check the invariants of every shard, of every pair of shards, and of all together; raise if one fails."""
        self._read(super().check)

    def fetch_changed_vectors(self, remote: RemoteVectors) -> list[NDArray[Any]]:
        """Return changed vectors; if they were lost, read them again unless another batch was applied since."""
        try:
            return super().fetch_changed_vectors(remote)
        except ShardLostError:
            if self._is_idle_at(remote.sequence):
                vectors = self.query("read_rows", [part.rows for part in remote.moved], attribute="vectors")
                if self._is_idle_at(remote.sequence):
                    return vectors
            raise

    def _is_idle_at(self, sequence: int) -> bool:
        return self._updating_thread is None and self.sequence == sequence

    def _read(self, read: Callable[[], Result]) -> Result:
        """Perform a read; recover the shards and repeat it if one is lost."""
        if self._updating_thread == threading.get_ident() or getattr(self._reader, "active", False):
            return read()  # nested in an update or in another read, which handles a lost shard
        for _ in range(MAX_ATTEMPTS):
            recoveries = self.recoveries
            if self._needs_recovery:
                self._recover_shards(recoveries)
            try:
                with self._recovery_lock.reading(), self._mark_reader():
                    return read()
            except ShardLostError as error:
                _log.warning("shard lost during a read: error=%s", error)
                self._recover_shards(recoveries)
        raise ShardLostError(f"Shards were lost {MAX_ATTEMPTS} times in a row during one read. Check the cluster.")

    @contextmanager
    def _mark_reader(self) -> Iterator[None]:
        self._reader.active = True
        try:
            yield
        finally:
            self._reader.active = False

    # ------------------------------------------------------------------ updates

    def run_atomically(self, update: Update[Result]) -> Result:
        """Apply an update exactly once, with retries if shards are lost; if it fails, the state is unchanged."""
        result = self._apply_with_retries(update)
        if self.events - self._snapshot_events >= max(self.snapshot_every, self.edges // 10):
            self._take_snapshot()
        return result

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Replace the state by one that `state` returned for the same number of shards; it becomes the snapshot."""
        self._apply_with_retries(partial(ClusterEngine.restore, state=state))
        self._write_snapshot(state)

    def _apply_with_retries(self, update: Update[Result]) -> Result:
        for attempt in range(MAX_ATTEMPTS):
            try:
                result = self._apply_once(update)
                break
            except ShardLostError:
                if attempt + 1 == MAX_ATTEMPTS:
                    raise
        self._updates.append(update)
        return result

    def _apply_once(self, update: Update[Result]) -> Result:
        with self._update_lock:
            if self._needs_recovery:
                self._recover_shards(self.recoveries)
            self._updating_thread = threading.get_ident()
            try:
                return update(self)
            except BaseException as error:  # after any error, some shards may have applied a part of the update
                _log.warning("update failed on the shards: error=%s", error)
                self._needs_recovery = True
                self._recover_shards(self.recoveries)
                raise
            finally:
                self._updating_thread = None

    def _take_snapshot(self) -> None:
        try:
            self._write_snapshot(self._read(partial(lazy_state, self)))
        except ShardLostError as error:  # the next update tries again
            _log.warning("snapshot of the shards failed: error=%s", error)

    def _write_snapshot(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Write a state to disk and forget the updates that led to it."""
        try:
            write_arrays(self._directory, state, {}, kind=_KIND)
        except OSError as error:
            _log.warning("snapshot of the shards failed: error=%s", error)
            return
        self._has_snapshot, self._snapshot_events = True, self.events
        self._updates.clear()

    # ------------------------------------------------------------------ recovery

    def _recover_shards(self, recoveries_seen: int) -> None:
        """Bring all shards to the state of the driver, once for all threads that noticed the same loss."""
        with self._recovery_lock.exclude_writers():
            self._recovery_lock.run_exclusively(partial(self._recover_exclusively, recoveries_seen))

    def _recover_exclusively(self, recoveries_seen: int) -> None:
        if self.recoveries != recoveries_seen:
            return
        # Waiting here could deadlock: an update in another thread may itself wait for this reader.
        if not self._update_lock.acquire(blocking=False):
            raise ShardLostError(RECOVERING)
        try:
            self._needs_recovery = True
            self._rebuild_shards()
            self._needs_recovery, self.recoveries = False, self.recoveries + 1
        finally:
            self._update_lock.release()

    def _rebuild_shards(self) -> None:
        _log.warning("recovering all shards: updates=%d", len(self._updates))
        for attempt in range(MAX_ATTEMPTS):
            try:
                recovered = self._replay()
                break
            except ShardLostError:
                if attempt + 1 == MAX_ATTEMPTS:
                    raise
        vars(self).update({name: value for name, value in vars(recovered).items() if name not in _NOT_RECOVERED})

    def _replay(self) -> ClusterEngine:
        """Restore the snapshot and repeat the updates since, in a separate engine.

        Until that engine is complete, threads that read the counters of this one see the old values.
        """
        self.transport.reset()
        recovered = ClusterEngine(self.transport, self.parameters)
        if self._has_snapshot:
            recovered.restore(read_arrays(self._directory, kind=_KIND, mapped=True)[0])
        for update in self._updates:
            update(recovered)
        return recovered
