"""The pages over HTTP: their files and security policy, and the description that the API page shows."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from ripplevec.service import schemas, static_files
from ripplevec.service.security import Tokens
from ripplevec.service.static_files import MEDIA_TYPES

PAGE_FILES = ["main.js", "api.js", "charts.js", "colors.js", "health.js", "highlight_layer.js", "map_view.js"]
PAGE_FILES += ["point_layer.js", "point_store.js", "vertex_panel.js", "viewport.js", "page.css", "ripplevec.svg"]
API_FILES = ["api_page.js", "api_page.css", "api.js", "ripplevec.svg"]
OWN_FILES = list(dict.fromkeys([*PAGE_FILES, *API_FILES]))
VENDORED_FILES = {  # of swagger-ui-dist 5.34.1
    "swagger-ui-bundle.js": "36eeb4d5640b9c036b1d0f854499af1cceebbdb260b790a03a18be5e8488fbf5",
    "swagger-ui.css": "c3cfe8248c4b0b89673600fb829924eafbac6de4bc4b2b06f5f5243483074d0a",
}
MAX_PAGE_BYTES = 100_000


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_page_has_a_strict_content_security_policy(service: Any, path: str) -> None:
    answer = service.http.get(path)
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_page_has_no_inline_code_or_external_files(service: Any, path: str) -> None:
    page = service.http.get(path).text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|<style|\sstyle=", page)
    allowed = r'/static/|#|(?:/|/docs|/metrics|/openapi\.json)"'
    assert not re.search(rf'(?:src|href)="(?!{allowed})', page)
    for name in OWN_FILES:
        text = service.http.get(f"/static/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


def test_page_scripts_never_insert_markup(service: Any) -> None:
    for name in OWN_FILES:
        text = service.http.get(f"/static/{name}").text
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), name


@pytest.mark.parametrize(("path", "own"), [("/", PAGE_FILES), ("/docs", [*API_FILES, *VENDORED_FILES])])
def test_page_referenced_files_exist(service: Any, path: str, own: list[str]) -> None:
    named = set(re.findall(r"/static/([\w.-]+)", service.http.get(path).text))
    for name in [name for name in own if name.endswith(".js") and name not in VENDORED_FILES]:
        named |= set(re.findall(r'from "\./([\w.]+)"', service.http.get(f"/static/{name}").text))
    assert named == {*own}
    for name in named:
        answer = service.http.get(f"/static/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(MEDIA_TYPES["." + name.rpartition(".")[2]]), name


def test_page_is_small(service: Any) -> None:
    answers = [service.http.get(f"/static/{name}") for name in PAGE_FILES]
    assert sum(len(answer.content) for answer in answers) < MAX_PAGE_BYTES


@pytest.mark.parametrize("name", ["nothing.js", "index.html", "..%2Fapp.py", "%2e%2e%2fapp.py", "routes.py"])
def test_static_other_files_are_not_served(service: Any, name: str) -> None:
    assert service.http.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("name", VENDORED_FILES)
def test_static_vendored_files_are_unchanged_and_cached(service: Any, name: str) -> None:
    answer = service.http.get(f"/static/{name}")
    assert hashlib.sha256(answer.content).hexdigest() == VENDORED_FILES[name]
    assert "max-age" in answer.headers["cache-control"]
    folder = Path(static_files.__file__).parent / "vendor" / "swagger_ui"
    assert {"LICENSE", "NOTICE"} <= {path.name for path in folder.iterdir()}


def test_openapi_groups_every_endpoint_and_explains_every_status(service: Any) -> None:
    description = service.http.get("/openapi.json").json()
    groups = {tag["name"]: tag["description"] for tag in description["tags"]}
    assert description["paths"]["/v1/labels"]["put"]["tags"] == ["labels"]  # a write, but not into the graph
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert len(operation["tags"]) == 1, path
            assert groups[operation["tags"][0]], path
            assert " ".join(operation["description"].replace("`", "").split()).startswith(operation["summary"]), path
            assert not set(operation["summary"]) & set("`{["), "a summary has no markup and is complete"
            for status, response in operation["responses"].items():
                meaning = response["description"]
                assert meaning.endswith("."), (method, path, status)
                assert int(status) == 200 or meaning == schemas.STATUS_MEANINGS[int(status)]


def test_api_page_is_public_and_its_description_is_not(start: Any) -> None:
    service = start(tokens=Tokens.of(["r" * 16]))
    assert service.http.get("/docs").status_code == 200
    assert service.http.get("/openapi.json").status_code == 401
