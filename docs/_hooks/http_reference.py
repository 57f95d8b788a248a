"""MkDocs hook that generates the HTTP reference from the OpenAPI description of the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from ripplevec.service.app import create_app
from ripplevec.service.settings import Settings

ABOUT = """The service returns the same description at `/openapi.json`, and for human readers at `/docs`.
[The service](../service.md) describes how to use it. Every error response is an `Error`."""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the page reference/http.md."""
    schema = create_app(Settings(Path("nowhere"))).openapi()  # the directory is created only when the service starts
    parts = [*_endpoints(schema), "## Request and response bodies", *_schemas(schema["components"]["schemas"])]
    text = "\n\n".join(["# Endpoints", ABOUT, *parts]) + "\n"
    files.append(File.generated(config, "reference/http.md", content=text))


def _endpoints(schema: dict[str, Any]) -> Iterator[str]:
    for path, methods in schema["paths"].items():
        for method, endpoint in methods.items():
            yield f"## {method.upper()} {path}"
            yield endpoint["description"]
            if parameters := endpoint.get("parameters"):
                yield "| parameter | location | values |\n|---|---|---|\n" + "\n".join(map(_parameter_row, parameters))
            for kind, content in endpoint.get("requestBody", {}).get("content", {}).items():
                yield f"Body, `{kind}`: {_kind(content.get('schema', {}))}"
            yield "Responses: " + ", ".join(_response(*response) for response in sorted(endpoint["responses"].items()))


def _parameter_row(parameter: dict[str, Any]) -> str:
    return f"| `{parameter['name']}` | {parameter['in']} | {_kind(parameter['schema'])} |"


def _response(status: str, response: dict[str, Any]) -> str:
    kinds = {_kind(content.get("schema", {})) for content in response.get("content", {}).values()}
    return f"{status} {' or '.join(sorted(kinds))}" if status < "300" else status


def _schemas(schemas: dict[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f"### {name}"
        yield schema.get("description", "")
        yield _kind(schema)


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
    elif "properties" in schema:
        required = schema.get("required", [])
        fields = [
            f"`{name}` ({_kind(kind)}{', required' if name in required else ''})"
            for name, kind in schema["properties"].items()
        ]
        words = f"an object with {', '.join(fields)}"
    else:
        words = schema.get("type", "anything")
    bounds = {
        name: schema[name] for name in ("minimum", "maximum", "minLength", "maxLength", "default") if name in schema
    }
    return words + (f" ({', '.join(f'{name} {_plain(value)}' for name, value in bounds.items())})" if bounds else "")


def _plain(value: object) -> object:
    """Return 1 for 1.0; very large numbers keep their exponents."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
