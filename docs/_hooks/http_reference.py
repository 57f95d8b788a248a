"""MkDocs hook that generates the HTTP reference from the OpenAPI description of the service."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from ripplevec.service.app import create_app
from ripplevec.service.settings import Settings

ABOUT = """The service returns the same description at `/openapi.json`, and for human readers at `/docs`.
[The service](../service.md) describes how to use it. Every error response is an [Error](#error). In a list, `[]` stands
for every element."""
STATUS_ABOUT = "What a status means, unless an endpoint below says otherwise."


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the page reference/http.md."""
    schema = create_app(Settings(Path("nowhere"))).openapi()  # the directory is created only when the service starts
    common = _common_statuses(schema)
    statuses = "\n".join(
        ["| status | meaning |", "|---:|---|", *(f"| {row[0]} | {row[1]} |" for row in common.items())]
    )
    parts = ["## Status codes", STATUS_ABOUT, statuses, *_endpoints(schema, common)]
    parts += ["## Request and response bodies", *_schemas(schema["components"]["schemas"])]
    text = "\n\n".join(["# Endpoints", ABOUT, *parts]) + "\n"
    files.append(File.generated(config, "reference/http.md", content=text))


def _common_statuses(schema: dict[str, Any]) -> dict[str, str]:
    """Return the most frequent meaning of every status, in ascending order."""
    meanings: dict[str, Counter[str]] = {}
    for methods in schema["paths"].values():
        for endpoint in methods.values():
            for status, response in endpoint["responses"].items():
                meanings.setdefault(status, Counter())[response["description"]] += 1
    return {status: found.most_common(1)[0][0] for status, found in sorted(meanings.items())}


def _endpoints(schema: dict[str, Any], common: Mapping[str, str]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            yield f"## {method.upper()} {path}"
            yield endpoint["description"]
            if parameters := endpoint.get("parameters"):
                yield "| parameter | location | values |\n|---|---|---|\n" + "\n".join(map(_parameter_row, parameters))
            for kind, content in endpoint.get("requestBody", {}).get("content", {}).items():
                yield from _body(f"Body, `{kind}`", content.get("schema", {}))
            yield from _responses(endpoint["responses"], common)


def _responses(responses: Mapping[str, Any], common: Mapping[str, str]) -> Iterator[str]:
    """Yield the statuses of an endpoint, and the meaning of those that have another one here."""
    yield "Responses: " + ", ".join(_response(*response) for response in sorted(responses.items()))
    others = {status: found["description"] for status, found in sorted(responses.items())}
    yield "".join(f"- {status}: {text}\n" for status, text in others.items() if text != common[status])


def _body(title: str, schema: dict[str, Any]) -> Iterator[str]:
    """Yield the fields of an object as a table, or another kind of value in words."""
    rows = list(_field_rows(schema))
    yield f"{title}:" if rows else f"{title}: {_kind(schema)}"
    if rows:
        yield "\n".join(["| field | values |", "|---|---|", *rows])


def _field_rows(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield a row per field, then those of the objects in it."""
    for name, kind in schema.get("properties", {}).items():
        required = ", required" if name in schema.get("required", []) else ""
        elements = kind.get("items", {})
        if "properties" in elements:
            yield f"| `{prefix}{name}` | list of objects{required} |"
            yield from _field_rows(elements, f"{prefix}{name}[].")
        else:
            yield f"| `{prefix}{name}` | {_kind(kind)}{required} |"


def _parameter_row(parameter: dict[str, Any]) -> str:
    return f"| `{parameter['name']}` | {parameter['in']} | {_kind(parameter['schema'])} |"


def _response(status: str, response: dict[str, Any]) -> str:
    kinds = {_kind(content.get("schema", {})) for content in response.get("content", {}).values()}
    return f"{status} {' or '.join(sorted(kinds))}" if status < "300" else status


def _schemas(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f"### {name}"
        yield from _body(schema.get("description", "Fields").rstrip("."), schema)


def _kind(schema: dict[str, Any]) -> str:
    """Describe the accepted values of a schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(map(_kind, choices)))
    if "enum" in schema:
        words = " or ".join(f"`{value}`" for value in schema["enum"])
    elif "prefixItems" in schema:
        words = f"({', '.join(map(_kind, schema['prefixItems']))})"
    elif "items" in schema:
        words = _kind(schema["items"])
        words = f"list of ({words})" if schema["items"].keys() & {"anyOf", "oneOf"} else f"list of {words}"
    else:
        words = schema.get("type", "anything")
    limits = ", ".join(_limits(schema))
    return f"{words} ({limits})" if limits else words


def _limits(schema: dict[str, Any]) -> Iterator[str]:
    for lowest, highest, unit in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        low, high = _plain(schema.get(lowest)), _plain(schema.get(highest))
        if low is not None and high is not None:
            yield f"{low} to {high}{unit}"
        elif low is not None:
            yield f"{low} or more{unit}"
        elif high is not None:
            yield f"up to {high}{unit}"
    if schema.get("default") not in (None, "", []):
        yield f"default {json.dumps(_plain(schema['default']))}"


def _plain(value: object) -> object:
    """Return 1 for 1.0; very large numbers keep their exponents."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
