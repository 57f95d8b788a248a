"""The application: everything put together, and what happens to errors on the way out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Match, Route

from ripplevec._version import __version__
from ripplevec.errors import RipplevecError
from ripplevec.service.api_docs import CONTENT_SECURITY_POLICY, render_api_docs
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.logs import RequestLogMiddleware, log
from ripplevec.service.map import routes
from ripplevec.service.reads.fast_read import FastReadMiddleware
from ripplevec.service.responses import error_response, exception_response
from ripplevec.service.routes import changes, operations, vertices, writes
from ripplevec.service.security import OPEN, AuthMiddleware
from ripplevec.service.settings import Settings

_ROUTERS = (vertices.router, writes.router, changes.router, operations.router, routes.router)  # often asked: first


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
        title="Ripplevec",
        summary="Vectors for a growing graph, one arrival at a time",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestLogMiddleware, metrics=runtime.metrics, access_log=settings.access_log),
            Middleware(AuthMiddleware, tokens=settings.tokens, names=settings.names),
            Middleware(FastReadMiddleware, runtime=runtime, route=vertices.VERTEX),
        ],
    )
    app.state.runtime = runtime
    for router in _ROUTERS:
        app.include_router(router)
    _complete_description(app, runtime)
    _add_reference(app)
    _add_handlers(app)
    return app


def _add_reference(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(
            render_api_docs(app.openapi()), headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        )


def _add_handlers(app: FastAPI) -> None:
    """Every error is answered in the same form: `{"error": reason}`."""

    @app.exception_handler(RipplevecError)
    async def of_ours(request: Request, error: RipplevecError) -> Response:
        answer = exception_response(error)
        if answer.status_code == 500:
            log.error("unexpected error", exc_info=error)
        return answer

    @app.exception_handler(RequestValidationError)
    async def of_parameters(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return error_response(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
        return error_response(error.status_code, str(error.detail), headers)


def _allowed(request: Request) -> str:
    """All methods of an address: several routes may have the same one, of which the error names the first."""
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, Route)]
    found = {
        method
        for route in routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(found)) or "GET"


def _complete_description(app: FastAPI, runtime: Runtime) -> None:
    """Add to the description of all endpoints what depends on this service: its tokens, the size of its vectors."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        described = describe()
        if runtime.settings.tokens:
            described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            described["security"] = [{"token": []}]
            for path in OPEN & described["paths"].keys():
                described["paths"][path]["get"]["security"] = []
        if runtime.status == "ready":
            body = described["paths"]["/v1/nearest"]["post"]["requestBody"]["content"]["application/json"]
            vector = body["schema"]["properties"]["vector"]
            vector["minItems"] = vector["maxItems"] = runtime.model.dim
        return described

    app.openapi = openapi  # type: ignore[method-assign]
