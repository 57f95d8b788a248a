"""The reference of all endpoints as one plain page: no scripts, nothing from elsewhere."""

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
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def render_api_docs(schema: dict[str, Any]) -> str:
    """The page for an OpenAPI description."""
    title, version = escape(schema["info"]["title"]), escape(schema["info"]["version"])
    parts = "".join(_endpoints(schema))
    link = '<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>'
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f"{head}<h1>{title} {version}</h1>{link}{parts}</html>"


def _endpoints(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            yield f"<h2><code><b>{method.upper()}</b> {escape(path)}</code></h2>"
            yield f"<p>{escape(endpoint.get('description', ''))}</p>"
            yield "".join(_parameters(endpoint))
            for kind, content in endpoint.get("requestBody", {}).get("content", {}).items():
                yield _folded(f"body: {kind}", content.get("schema", {}))
            statuses = ", ".join(endpoint.get("responses", {}))
            yield f"<p>answers: {escape(statuses)}</p>"


def _parameters(endpoint: dict[str, Any]) -> Iterator[str]:
    for parameter in endpoint.get("parameters", []):
        kind = json.dumps({k: v for k, v in parameter.get("schema", {}).items() if k not in ("title", "description")})
        text = escape(parameter.get("description", ""))
        yield f"<p><code>{escape(parameter['name'])}</code> ({parameter['in']}) <code>{escape(kind)}</code> {text}</p>"


def _folded(title: str, value: Any) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(json.dumps(value, indent=1))}</pre></details>"
