"""Engine of a model with attributes on several shards, with the methods of the single-machine `AttributedEngine`.

Results equal those of one machine in the same sense as those of `ClusterEngine`. After vertices were removed, parts are
computed again in another order, so a refit of the projection takes effect on some vertices earlier or later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ripplevec.attributes.input import detach_attributes
from ripplevec.attributes.state_check import check_attributes
from ripplevec.attributes.store import AttributeStore
from ripplevec.batch import Batch, Id, Op, take_ids
from ripplevec.changes import BatchOutcome, Changes
from ripplevec.cluster.driver_reads import GatheredState, ReadSnapshot, ShardReads, scatter_lists
from ripplevec.cluster.engine import ClusterEngine
from ripplevec.cluster.remote_attributes import RemoteAttributes
from ripplevec.cluster.state_arrays import split_state
from ripplevec.cluster.transport import Transport
from ripplevec.engine.attributed_engine import AttributeUpdates
from ripplevec.engine.attributed_reads import PREFIX, AttributedReads, LocalAttributedReads
from ripplevec.engine.digest import HashedArray
from ripplevec.engine.reads import EngineReads
from ripplevec.graph.adjacency import RowArray
from ripplevec.graph.graph import strip_prefix
from ripplevec.parameters import Parameters
from ripplevec.views.base import Progress


class AttributedShardReads(AttributedReads, ShardReads):
    """Read methods of a model with attributes on shards."""

    attributes: RemoteAttributes

    def _find_nearest_joined(
        self, query: NDArray[np.float64], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        constants = {"query": query, "count": count, "weight": self.attribute_weight}
        results = self.query("search_joined", self.row_on_owner(exclude), **constants)
        return self.merge_nearest(results, count)

    def _find_nearest_parts(
        self, part: NDArray[np.float32], count: int, exclude: int
    ) -> tuple[RowArray, NDArray[np.float32]]:
        results = self.query("search_parts", self.row_on_owner(exclude), part=part, count=count)
        return self.merge_nearest(results, count)

    def sizes(self) -> dict[str, int]:
        """Return the sums over all shards, and the bytes of the projection."""
        sizes = super().sizes()
        return sizes | {"bytes": sizes["bytes"] + self.attributes.projection.nbytes}

    def gather(self) -> GatheredState:
        """Gather the whole model on the driver; raise an error if it is too large."""
        return GatheredAttributes(self)

    def attribute_digest_arrays(self) -> dict[str, NDArray[Any] | HashedArray]:
        """Return the arrays of `select_attribute_arrays`; kept attributes are all read."""
        rows = self.rows_by_arrival()
        parts, positions = self.query_rows("read_kept", rows)
        lists = [(np.diff(part["begin"]), part["columns"], part["values"]) for part in parts]
        counts, columns, values = scatter_lists(lists, positions)
        arrays = {
            **self.attributes.projection_state(),
            "parts": self._read_parts(rows),
            "status": self.read_rows(rows, "attribute_status"),
            "kept_begin": np.append(0, np.cumsum(counts)),
            "kept_columns": columns.astype(np.int64),
            "kept_values": values,
        }
        return {f"{PREFIX}{name}": array for name, array in arrays.items()}


class GatheredAttributes(LocalAttributedReads, GatheredState):
    """The gathered state of a model with attributes."""

    def __init__(self, engine: AttributedShardReads) -> None:
        super().__init__(engine)
        self.attribute_dim = engine.attribute_dim
        remote, rows = engine.attributes, engine.rows_by_arrival()
        self.attributes = AttributeStore(self.graph, remote.settings)
        self.attributes.restore_projection(remote.projection_state())
        self.attributes.parts[: rows.size] = engine.read_rows(rows, "attribute_parts")
        self.attributes.status[: rows.size] = engine.read_rows(rows, "attribute_status")


class AttributedReadSnapshot(AttributedShardReads, ReadSnapshot):
    """The state that an engine with attributes had when this snapshot was created."""

    def __init__(self, engine: AttributedClusterEngine) -> None:
        super().__init__(engine)
        self.attribute_dim = engine.attribute_dim
        self.attributes = engine.attributes.for_reads(self)


class AttributedClusterEngine(AttributedShardReads, AttributeUpdates, ClusterEngine):
    """The engine of a model with attributes on shards."""

    def __init__(self, transport: Transport, parameters: Parameters, **options: Any) -> None:
        super().__init__(transport, parameters.edge_parameters, **options)
        self.attribute_dim = parameters.resolved_attribute_dim
        self.attributes = RemoteAttributes(self, parameters.attribute_settings)

    def start(self, batch: Batch, progress: Progress | None = None) -> None:
        """Apply a batch as the initial graph and embed it from scratch."""
        super().start(batch, progress)
        if batch.attributes is not None:
            with self._updating():
                choose = self._weight_chooser if self.ready else None
                self.attributes.set_start(self.rows_of(batch.attributes.ids), batch.attributes, choose)

    def _update(self, batch: Batch) -> tuple[RowArray, list[Id], int]:
        if batch.op is not None and (removals := np.flatnonzero(batch.op == Op.REMOVE_VERTEX)).size:
            rows = np.unique(self.find_rows(take_ids(batch.src, removals)))
            self.attributes.clear(rows[rows >= 0])
        return super()._update(detach_attributes(batch)[0])

    def anchor(self) -> RowArray:
        """Correct all vectors now, and choose the weight if it is still to be chosen; return the rows that moved."""
        with self._updating():
            return np.union1d(self._anchor_in_batch(), self._choose_weight())

    def build_changes(self, outcome: BatchOutcome) -> Changes:
        """Return the changes of the last batch or anchor, with both parts of the vectors."""
        return EngineReads.build_changes(self, outcome)

    def fork_for_update(self) -> tuple[ReadSnapshot, ClusterEngine]:
        """Return a snapshot for readers during a long update, and the engine to update."""
        return AttributedReadSnapshot(self), self

    def attribute_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of attributes that are on the driver."""
        return {f"{PREFIX}{name}": array for name, array in self.attributes.projection_state().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Replace the state by one that `state` returned for the same number of shards."""
        driver, columns = strip_prefix(PREFIX, state), self.attribute_dim
        for shard in split_state(state, self.transport.size):
            saved = driver | strip_prefix(PREFIX, shard)
            check_attributes(saved, len(shard["placed"]), columns, refresh_end=int(state["next_arrival"]))
        super().restore(state)
        self.attributes = RemoteAttributes(self, self.attributes.settings)
        self.attributes.restore_projection(driver)


def create_cluster_engine(transport: Transport, parameters: Parameters, **options: Any) -> ClusterEngine:
    """Return the empty engine of a model on shards, with attributes if the parameters have dimensions for them."""
    create = AttributedClusterEngine if parameters.resolved_attribute_dim else ClusterEngine
    return create(transport, parameters, **options)
