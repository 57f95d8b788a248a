"""Endpoints of the live page: points of the map, stream statistics, the neighborhood of a vertex."""

from __future__ import annotations

import threading
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from ripplevec.batch import Id
from ripplevec.embedder import Embedder
from ripplevec.errors import UnknownVertexError
from ripplevec.service import model_reads
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.map.map_state import LabelStore, MapState, RecentChanges, json_id, read_neighborhood
from ripplevec.service.map.stream_stats import StreamStats
from ripplevec.service.metrics import Metrics
from ripplevec.service.path_ids import IdKind
from ripplevec.service.responses import json_response

MAX_NEIGHBORHOOD = 100
"""Maximum number of neighbors, and of nearest vertices, that are shown for a vertex."""

router = APIRouter(include_in_schema=False)
_creation_lock = threading.Lock()


class LivePage:
    """Data of the live page for one model."""

    def __init__(self, model: Embedder, feed: RecentChanges, labels: LabelStore, metrics: Metrics) -> None:
        self.model, self.labels = model, labels
        self.map_state = MapState(model, feed, labels)
        self.stream_stats = StreamStats(model, metrics.recent_batches)

    def read_map(self, epoch: int | None, tick: int | None) -> dict[str, Any]:
        """Return all points, or those updated since a tick, and the statistics of the model."""
        return {**self.map_state.read(epoch, tick), "model": model_reads.read_model_stats(self.model)}

    def read_around(self, text: str, kind: IdKind, k: int) -> dict[str, Any]:
        """Return a vertex with its neighbors and nearest vertices, each with its position; an id of null if unknown.

        Not a 404: browsers would log a mistyped id as an error.
        """
        try:
            vertex = model_reads.resolve_id(self.model, text, kind)
        except UnknownVertexError:
            return {"id": None}
        nearest = self.model.nearest(vertex, k)
        by_attributes = self.model.nearest_by_attributes(vertex, k) if self.model.engine.attribute_dim else []
        neighborhood = read_neighborhood(self.model, vertex, k)
        ids = [vertex, *(other for other, _ in [*nearest, *by_attributes, *neighborhood.neighbors])]
        positions = self.map_state.locate(list(dict.fromkeys(ids)))
        return {
            **self._to_point(vertex, positions),
            "arrival": neighborhood.arrival,
            "degree": neighborhood.degree,
            "nearest": self._to_similar_points(nearest, positions),
            "nearest_by_attributes": self._to_similar_points(by_attributes, positions),
            "neighbors": [
                {**self._to_point(other, positions), "weight": weight} for other, weight in neighborhood.neighbors
            ],
        }

    def _to_similar_points(
        self, similar: list[tuple[Id, float]], positions: dict[Id, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        return [{**self._to_point(other, positions), "cosine": round(cosine, 4)} for other, cosine in similar]

    def _to_point(self, vertex: Id, positions: dict[Id, dict[str, Any]]) -> dict[str, Any]:
        return {"id": json_id(vertex), "label": self.labels.get(vertex), **positions.get(vertex, {})}


def get_live_page(request: Request) -> LivePage:
    """Return the live page data of this service, created on first use."""
    state = request.app.state
    with _creation_lock:
        if not hasattr(state, "live_page"):
            runtime = state.runtime
            state.live_page = LivePage(runtime.model, runtime.feed, runtime.labels, runtime.metrics)
    return state.live_page


Page = Annotated[LivePage, Depends(get_live_page)]
Count = Annotated[int | None, Query(ge=0)]


@router.get("/v1/map")
async def read_map(request: Request, page: Page, epoch: Count = None, tick: Count = None) -> Response:
    """Return the points of the map: all of them, or those updated since a tick of the current epoch."""
    runtime: Runtime = request.app.state.runtime
    runtime.response_budget.check_capacity()
    response = await runtime.run_map_read(lambda: json_response(page.read_map(epoch, tick)), receive=request.receive)
    return runtime.response_budget.track(response)


@router.get("/v1/map/pulse")
async def read_stream_stats(request: Request, page: Page) -> Response:
    """Return the statistics of the last two minutes per second."""
    runtime: Runtime = request.app.state.runtime
    return json_response(await runtime.run_read(page.stream_stats.read, receive=request.receive))


@router.get("/v1/map/around")
async def read_around(
    request: Request,
    page: Page,
    id: Annotated[str, Query(min_length=1, max_length=1024)],
    kind: IdKind = "auto",
    k: Annotated[int, Query(ge=1, le=MAX_NEIGHBORHOOD)] = 12,
) -> Response:
    """Return a vertex with its neighbors and its nearest vertices."""
    runtime: Runtime = request.app.state.runtime
    return json_response(await runtime.run_map_read(page.read_around, id, kind, k, receive=request.receive))
