"""API reference page: all endpoints from the OpenAPI description as static HTML, without scripts or external files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from typing import Any

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}
code,pre{font:14px/1.4 ui-monospace,monospace}pre{background:#f4f4f4;padding:.7rem;overflow:auto}
summary{cursor:pointer}h2{margin:2rem 0 .2rem}b{display:inline-block;min-width:4.5rem}"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def render_api_docs(schema: dict[str, Any]) -> str:
    """Render an OpenAPI description as an HTML page."""
    title, version = escape(schema["info"]["title"]), escape(schema["info"]["version"])
    endpoints = "".join(_render_endpoints(schema))
    link = '<p>OpenAPI description: <a href="/openapi.json">openapi.json</a></p>'
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"{head}<h1>{title} {version}</h1>{link}{endpoints}</html>"


def _render_endpoints(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            yield f"<h2><code><b>{method.upper()}</b> {escape(path)}</code></h2>"
            yield f"<p>{escape(endpoint.get('description', ''))}</p>"
            yield "".join(_render_parameters(endpoint))
            for content_type, content in endpoint.get("requestBody", {}).get("content", {}).items():
                yield _render_details(f"Body: {content_type}", content.get("schema", {}))
            statuses = ", ".join(endpoint.get("responses", {}))
            yield f"<p>Status codes: {escape(statuses)}</p>"


def _render_parameters(endpoint: dict[str, Any]) -> Iterator[str]:
    for parameter in endpoint.get("parameters", []):
        schema = json.dumps({k: v for k, v in parameter.get("schema", {}).items() if k not in ("title", "description")})
        text, name = escape(parameter.get("description", "")), escape(parameter["name"])
        yield f"<p><code>{name}</code> ({parameter['in']}) <code>{escape(schema)}</code> {text}</p>"


def _render_details(title: str, value: Any) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(json.dumps(value, indent=1))}</pre></details>"
