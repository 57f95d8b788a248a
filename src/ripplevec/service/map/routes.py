"""The live page and what it asks for: the points of the map, how the stream goes, who is around a vertex."""

from __future__ import annotations

import re
import threading
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from ripplevec.batch import Id
from ripplevec.embedder import Embedder
from ripplevec.errors import MissingExtraError, UnknownVertexError
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.map import map_sample
from ripplevec.service.map.map_state import ChangeLog, LabelStore, MapState, json_id
from ripplevec.service.map.stream_stats import StreamStats
from ripplevec.service.metrics import Metrics
from ripplevec.service.reads import vertex_lookup
from ripplevec.service.responses import RejectedRequest, json_response

MAX_NEIGHBORHOOD = 100
"""How many neighbors of a vertex are shown, and how many that are near it."""

CONTENT_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",  # plotly.js draws into images of its own
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)
_making = threading.Lock()


class LivePage:
    """What the page is told of one model."""

    def __init__(self, model: Embedder, feed: ChangeLog, labels: LabelStore, metrics: Metrics) -> None:
        self.model, self.labels = model, labels
        self.shown = MapState(model, feed, labels)
        self.pulse = StreamStats(model, feed, metrics.latest)

    def map(self, epoch: int | None, tick: int | None) -> dict[str, Any]:
        """The points that have changed since, or all, and the size of what they are a sample of."""
        return {**self.shown.look(epoch, tick), "model": vertex_lookup.model_stats(self.model)}

    def around(self, text: str, kind: vertex_lookup.IdKind, k: int) -> dict[str, Any]:
        """A vertex with its neighbors and those near it, each with its place on the map; an id of null: unknown.

        Somebody who mistypes a name has not asked for anything that the browser should log as an error.
        """
        try:
            vertex = vertex_lookup.known(self.model, text, kind)
        except UnknownVertexError:
            return {"id": None}
        near = self.model.nearest(vertex, k)
        seen = map_sample.around(self.model, vertex, k)
        names = [vertex, *(name for name, _ in near), *(name for name, _ in seen.neighbors)]
        places = self.shown.place(list(dict.fromkeys(names)))
        return {
            **self._point(vertex, places),
            "arrival": seen.arrival,
            "degree": seen.degree,
            "nearest": [{**self._point(name, places), "cosine": round(cosine, 4)} for name, cosine in near],
            "neighbors": [{**self._point(name, places), "weight": weight} for name, weight in seen.neighbors],
        }

    def _point(self, vertex: Id, places: dict[Id, dict[str, Any]]) -> dict[str, Any]:
        return {"id": json_id(vertex), "label": self.labels.get(vertex), **places.get(vertex, {})}


def live(request: Request) -> LivePage:
    """What the page is told of the model of this service; made once, when it is first asked for."""
    state = request.app.state
    with _making:
        if not hasattr(state, "live"):
            runtime = state.runtime
            state.live = LivePage(runtime.model, runtime.feed, runtime.labels, runtime.metrics)
    return state.live


Page = Annotated[LivePage, Depends(live)]
Count = Annotated[int | None, Query(ge=0)]


@router.get("/v1/map")
async def read_map(request: Request, page: Page, epoch: Count = None, tick: Count = None) -> Response:
    """The points of the map: all of them, or those touched since a tick of this epoch."""
    runtime: Runtime = request.app.state.runtime
    runtime.response_budget.check_room()
    answer = await runtime.draw(lambda: json_response(page.map(epoch, tick)), receive=request.receive)
    return runtime.response_budget.track(answer)


@router.get("/v1/map/pulse")
async def read_pulse(request: Request, page: Page) -> Response:
    """The last two minutes of the stream, second by second."""
    runtime: Runtime = request.app.state.runtime
    return json_response(await runtime.read(page.pulse.read, receive=request.receive))


@router.get("/v1/map/around")
async def read_around(
    request: Request,
    page: Page,
    id: Annotated[str, Query(min_length=1, max_length=1024)],
    kind: vertex_lookup.IdKind = "auto",
    k: Annotated[int, Query(ge=1, le=MAX_NEIGHBORHOOD)] = 12,
) -> Response:
    """A vertex, its neighbors, and the vertices near it."""
    runtime: Runtime = request.app.state.runtime
    return json_response(await runtime.draw(page.around, id, kind, k, receive=request.receive))


@router.get("/")
def page() -> Response:
    """The page itself: it holds no data."""
    return HTMLResponse(_page(), headers=HEADERS)


@router.get("/static/{name}")
def asset(name: str) -> Response:
    """What the page is made of."""
    path = plotly_js() if name == "plotly.js" else _assets().get(name)
    if path is None:
        raise RejectedRequest(404, "there is no such file")
    kept = {"Cache-Control": "max-age=86400"} if name == "plotly.js" else {}
    return FileResponse(path, media_type=KINDS[path.suffix], headers={**HEADERS, **kept})


@cache
def _assets() -> dict[str, Path]:
    folder = Path(str(files("ripplevec.service") / "page"))
    return {path.name: path for path in folder.iterdir() if path.suffix in KINDS}


@cache
def _page() -> str:
    """The page with an element for every style that plotly.js brings along as text, which the policy would forbid.

    It brings such a style (of maps, which are not drawn here) only where no element has the style's name.
    """
    template = (files("ripplevec.service") / "page" / "index.html").read_text(encoding="utf-8")
    names = re.findall(r'getElementById\("([0-9a-f]{64})"\)', plotly_js().read_text(encoding="utf-8"))
    return template.replace("<!-- styles -->", "".join(f'<meta id="{name}">' for name in dict.fromkeys(names)))


@cache
def plotly_js() -> Path:
    """The copy of plotly.js that is installed with the package of the same name."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise MissingExtraError("the live page", "serve")
    return Path(spec.origin).parent / "package_data" / "plotly.min.js"
