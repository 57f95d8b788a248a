"""Pages and static files: the live page, the API page, and their scripts and style sheets. They contain no data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, Response

from ripplevec.service.responses import RejectedRequest

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the style sheet of Swagger UI contains its icons
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

_OWN_FOLDER, _VENDOR_FOLDER = "page", "vendor/swagger_ui"

router = APIRouter(include_in_schema=False)


@router.get("/")
def read_live_page() -> Response:
    """Return the live page."""
    return HTMLResponse((_folder(_OWN_FOLDER) / "index.html").read_text(encoding="utf-8"), headers=HEADERS)


@router.get("/docs")
def read_api_page() -> Response:
    """Return the API page: all endpoints by group, with forms to try them."""
    return HTMLResponse((_folder(_OWN_FOLDER) / "api.html").read_text(encoding="utf-8"), headers=HEADERS)


@router.get("/static/{name}")
def read_static_file(name: str) -> Response:
    """Return a script, style sheet or image of the pages."""
    path = _static_files().get(name)
    if path is None:
        raise RejectedRequest(404, "no such file")
    caching = {"Cache-Control": "max-age=86400"} if path.parent == _folder(_VENDOR_FOLDER) else {}
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix], headers={**HEADERS, **caching})


def _folder(name: str) -> Path:
    return Path(str(files("ripplevec.service") / name))


@cache
def _static_files() -> dict[str, Path]:
    paths = [path for name in (_OWN_FOLDER, _VENDOR_FOLDER) for path in _folder(name).iterdir()]
    return {path.name: path for path in paths if path.suffix in MEDIA_TYPES}
