"""Anchors and starts on shards: `RippleRule.anchor` and `RippleRule.start` for vectors that stay on their shards."""

from __future__ import annotations

from typing import Any

from ripplevec.cluster.distributed_matrix import DistributedGraph, copy_for_solver
from ripplevec.cluster.shard_matrices import ColumnSlice
from ripplevec.cluster.transport import Transport
from ripplevec.graph.adjacency import RowArray
from ripplevec.rules.anchor import CorrectionError, align_to_products, bases_from_scratch
from ripplevec.rules.ripple import RippleRule, export_coordinates
from ripplevec.views.base import Basis, Progress
from ripplevec.views.coordinates import Coordinates
from ripplevec.views.solvers import MAX_DENSE_SIZE


class TooSmallError(CorrectionError):
    """A graph is too small to be solved from scratch on shards and must be solved on the driver."""


def anchor(transport: Transport, rule: RippleRule, sequence: int, threshold: float) -> list[RowArray]:
    """Correct all vectors, aligned with the vectors served before.

    The caller has to send the new coordinates of the rule to the shards.

    Returns
    -------
    list
        For each shard, the rows whose served vectors moved by more than the threshold.
    """
    with DistributedGraph(transport, rule.dim, rule.precision) as graph:
        vectors: Any = graph.vectors
        stats, coordinates, bases = rule.solve_anchor(graph, vectors, sequence, copy_for_solver, _solve_from_scratch)
        columns = _columns(bases)
        before_alignment = export_coordinates(stats, coordinates)
        products = graph.sum_over_shards("alignment_products", bases=columns, saved=before_alignment)
        align_to_products(coordinates, bases, products)
        new: dict[str, Any] = {"bases": columns, "saved": export_coordinates(stats, coordinates)}
        moved = transport.get(graph.submit_step("find_moved_rows", **new, threshold=threshold))
        transport.get(graph.submit_step("store_vectors", **new))
    rule.set_coordinates(stats, coordinates)
    return moved


def start(transport: Transport, rule: RippleRule, progress: Progress | None) -> None:
    """Embed the graph from scratch; the caller has to send the coordinates of the rule to the shards."""
    with DistributedGraph(transport, rule.dim, rule.precision) as graph:
        stats, coordinates, bases = rule.solve_start(graph, graph.rows, progress)
        saved = export_coordinates(stats, coordinates)
        transport.get(graph.submit_step("store_vectors", bases=_columns(bases), saved=saved))
    rule.set_coordinates(stats, coordinates)


def _solve_from_scratch(coordinates: Coordinates, graph: Any, rows: int, threads: int) -> list[Basis]:
    active, needed = graph.totals().active, 2 * coordinates.dim + MAX_DENSE_SIZE
    if active <= needed:
        raise TooSmallError(
            f"Graph too small to solve from scratch on shards: expected more than {needed:,} vertices with edges, "
            f"got {active:,}."
        )
    return bases_from_scratch(coordinates, graph, rows, threads)


def _columns(bases: list[Basis]) -> list[ColumnSlice]:
    handles: list[Any] = [basis.rows for basis in bases]
    return [handle.columns for handle in handles]
