"""The application: everything put together, and what happens to errors on the way out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from ripplet._version import __version__
from ripplet.errors import RippletError
from ripplet.service import live
from ripplet.service.answers import refusal, refusal_of
from ripplet.service.express import Express
from ripplet.service.logs import Observer, log
from ripplet.service.reference import POLICY, reference
from ripplet.service.routes import changes, operations, vertices, writes
from ripplet.service.runtime import Runtime
from ripplet.service.security import Guard
from ripplet.service.settings import Settings


def create_app(
    settings: Settings,
    failed: Callable[[BaseException], None] | None = None,
    ready: Callable[[], None] | None = None,
) -> FastAPI:
    """A service over one state directory; told is when its state is there (`ready`), or cannot be (`failed`)."""
    runtime = Runtime(settings, failed, ready)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        runtime.start()
        try:
            yield
        finally:
            await anyio.to_thread.run_sync(runtime.stop)

    app = FastAPI(
        title="Ripplet",
        summary="Vectors for a growing graph, one arrival at a time",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Observer, metrics=runtime.metrics, access_log=settings.access_log),
            Middleware(Guard, tokens=settings.tokens, names=settings.names),
            Middleware(Express, runtime=runtime, route=vertices.VERTEX),
        ],
    )
    app.state.runtime = runtime
    for router in (
        vertices.router,
        writes.router,
        changes.router,
        operations.router,
        live.router,
    ):  # often asked: first
        app.include_router(router)
    _add_reference(app)
    _add_handlers(app)
    return app


def _add_reference(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(reference(app.openapi()), headers={"Content-Security-Policy": POLICY})


def _add_handlers(app: FastAPI) -> None:
    """Every error is answered in the same form: `{"error": reason}`."""

    @app.exception_handler(RippletError)
    async def of_ours(request: Request, error: RippletError) -> Response:
        answer = refusal_of(error)
        if answer.status_code == 500:
            log.error("unexpected error", exc_info=error)
        return answer

    @app.exception_handler(RequestValidationError)
    async def of_parameters(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return refusal(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        return refusal(error.status_code, str(error.detail), error.headers)
