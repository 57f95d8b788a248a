"""The API reference page."""

from __future__ import annotations

import re
from typing import Any

from ripplevec.service.api_docs import CONTENT_SECURITY_POLICY, render_api_docs


def test_api_docs_list_every_endpoint_without_external_files(service: Any) -> None:
    answer = service.http.get("/docs")
    paths = service.http.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method in methods:
            assert f"<b>{method.upper()}</b> {path}<" in answer.text
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "script" not in CONTENT_SECURITY_POLICY
    assert "<script" not in answer.text
    assert re.findall(r'(?:src|href)="([^"]*)"', answer.text) == ["/openapi.json"]


def test_api_docs_escape_descriptions() -> None:
    endpoint = {"description": "<script>", "parameters": [{"name": "<b>", "in": "query", "schema": {"enum": ["<i>"]}}]}
    page = render_api_docs({"info": {"title": "<t>", "version": "1"}, "paths": {"/<p>": {"get": endpoint}}})
    assert not re.search(r"<script>|<t>|<p>\"|<i>|/<p>", page)
