"""FastAPI application: middleware, routes, error handlers and the OpenAPI description."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Match, Route

from ripplevec._version import __version__
from ripplevec.errors import RipplevecError, shorten
from ripplevec.service import schemas, static_files
from ripplevec.service.fast_read import FastReadMiddleware
from ripplevec.service.lifecycle import Runtime
from ripplevec.service.logs import RequestLogMiddleware, log
from ripplevec.service.map import routes as map_routes
from ripplevec.service.responses import error_response, exception_response
from ripplevec.service.routes import changes, labels, operations, vertices, writes
from ripplevec.service.security import PUBLIC_PATHS, AuthMiddleware
from ripplevec.service.settings import Settings

# The most frequent requests first: routes are matched in order.
_ROUTERS = (
    vertices.router,
    writes.router,
    labels.router,
    changes.router,
    operations.router,
    map_routes.router,
    static_files.router,
)


def create_app(
    settings: Settings,
    on_failure: Callable[[BaseException], None] | None = None,
    on_ready: Callable[[], None] | None = None,
) -> FastAPI:
    """Create the application for one state directory.

    Parameters
    ----------
    settings
        State directory, address, limits and model parameters.
    on_failure
        Called with the error if the state cannot be recovered or becomes unusable.
    on_ready
        Called once the state is recovered.

    Returns
    -------
    FastAPI
        The application; recovery starts with its lifespan.
    """
    runtime = Runtime(settings, on_failure, on_ready)

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
        description=schemas.DESCRIPTION,
        openapi_tags=schemas.TAGS,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestLogMiddleware, metrics=runtime.metrics, access_log=settings.access_log),
            Middleware(AuthMiddleware, tokens=settings.tokens, allowed_hosts=settings.allowed_hosts),
            Middleware(FastReadMiddleware, runtime=runtime, route=vertices.VERTEX_ROUTE),
        ],
    )
    app.state.runtime = runtime
    for router in _ROUTERS:
        app.include_router(router)
    _extend_openapi(app, runtime)
    _add_error_handlers(app)
    return app


_NO_ENDPOINT = "path: expected an endpoint of the service, got another path. /docs lists all endpoints"


def _add_error_handlers(app: FastAPI) -> None:
    """Answer every error with the same body: `{"error": reason}`."""

    @app.exception_handler(RipplevecError)
    async def handle_library_error(request: Request, error: RipplevecError) -> Response:
        response = exception_response(error)
        if response.status_code == 500:
            log.error("unexpected error", exc_info=error)
        return response

    @app.exception_handler(RequestValidationError)
    async def handle_invalid_parameters(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:] or first["loc"]))  # without "query", "path" or "header"
        return error_response(422, f"{place}: {first['msg']}, got {shorten(first['input'])}")

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            allowed = _allowed_methods(request)
            expected = allowed.replace(", ", " or ")
            return error_response(405, f"method: expected {expected}, got {request.method}", {"Allow": allowed})
        reason = _NO_ENDPOINT if (error.status_code, error.detail) == (404, "Not Found") else str(error.detail)
        return error_response(error.status_code, reason, error.headers)


def _allowed_methods(request: Request) -> str:
    """Return all methods of a path: several routes may share it, and the error names only those of the first."""
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, Route)]
    methods = {
        method
        for route in routes
        if route.matches(request.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods)) or "GET"


def _extend_openapi(app: FastAPI, runtime: Runtime) -> None:
    """Add to the OpenAPI description summaries, what success means, tokens and the vector dimension."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        description = generate()
        if runtime.settings.tokens:
            description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            description["security"] = [{"token": []}]
            for path in PUBLIC_PATHS & description["paths"].keys():
                description["paths"][path]["get"]["security"] = []
        for operation in (operation for methods in description["paths"].values() for operation in methods.values()):
            first = re.split(r"[.:](?:\s|$)", operation["description"])[0]
            operation["summary"] = first.replace("\n", " ").replace("`", "")  # a summary has no markup
            if operation["responses"]["200"]["description"] == "Successful Response":  # set by FastAPI
                written = "writes" in operation["tags"]
                operation["responses"]["200"]["description"] = "The batch is on disk." if written else "The answer."
        if runtime.status == "ready":
            body = description["paths"]["/v1/nearest"]["post"]["requestBody"]["content"]["application/json"]
            vector = body["schema"]["properties"]["vector"]
            vector["minItems"] = vector["maxItems"] = runtime.model.dim
        return description

    app.openapi = openapi  # type: ignore[method-assign]
