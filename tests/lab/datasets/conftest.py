"""A local web server that serves one file and can simulate failures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ripplevec.lab.datasets.download import SourceFile

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Site:
    """Content of the server, the failures it simulates, and the `Range` headers it received."""

    origin: str = ""
    content: bytes = CONTENT
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    status: int = 200
    requested_ranges: list[str | None] = field(default_factory=list)

    def file(self, sha256: str = SHA256) -> SourceFile:
        return SourceFile("edges.txt", sha256, self.origin)


def handler_for(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested = self.headers.get("Range")
            site.requested_ranges.append(requested)
            first = int(requested.removeprefix("bytes=").removesuffix("-")) if requested and site.ranges else 0
            body = site.content[first:]
            if site.status != 200 or first >= len(site.content):
                self.send_error(site.status if site.status != 200 else 416)
                return
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: site.cuts.pop(0)] if site.cuts else body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_for(site)) as server:
        site.origin = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RIPPLEVEC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ripplevec"
