"""Completeness of the documentation: public names, methods, parameters, commands, options and endpoints."""

from __future__ import annotations

import ast
import inspect
import re
from html import unescape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import ripplevec
from ripplevec.cli.main import app
from ripplevec.parameter_docs import describe_parameters
from ripplevec.service.app import create_app
from ripplevec.service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MANUAL = "\n".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(scope="module")
def hooks() -> dict[str, ModuleType]:
    """Return the hooks that generate the reference, as modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs/_hooks")
        return {name: import_module(name) for name in ("python_reference", "command_reference")}


def text(page: Path) -> str:
    return unescape(re.sub(r"<[^>]*>", "", page.read_text()))


def test_reference_lists_every_public_name_with_a_docstring(site: Path, hooks: dict[str, Any]) -> None:
    reference = hooks["python_reference"]
    missing = []
    for module in map(import_module, reference.MODULES):
        page = (site / f"reference/{module.__name__}.html").read_text()
        found = {name: getattr(module, name) for name in module.__all__ if not name.startswith("__")}
        for name, owner in list(found.items()):
            if inspect.isclass(owner):
                found |= {f"{name}.{inner}": member for inner, member in reference.members(owner).items()}
        missing += [f"{module.__name__}: {name} in the site" for name in found if f'id="{name}"' not in page]
        documented = {name: thing for name, thing in found.items() if callable(thing) or isinstance(thing, property)}
        missing += [
            f"{module.__name__}: a docstring of {name}" for name, thing in documented.items() if not thing.__doc__
        ]
    assert not missing


def test_reference_lists_every_method_of_embedder(hooks: dict[str, Any]) -> None:
    parameters = ripplevec.Embedder().get_params()  # attributes too, explained by the docstring of the class
    public = {name for name in dir(ripplevec.Embedder) if not name.startswith("_") and name not in parameters}
    assert {"fit", "nearest", "ids"} <= public == set(hooks["python_reference"].members(ripplevec.Embedder))


def test_reference_has_a_page_for_every_package_with_public_names(hooks: dict[str, Any]) -> None:
    source = ROOT / "src/ripplevec"
    modules = [*source.glob("*/__init__.py"), *source.glob("lab/*/__init__.py")]
    packages = [path.parent for path in modules if "__all__" in path.read_text()]
    names = {".".join(path.relative_to(ROOT / "src").parts) for path in packages}
    others = {name for name in names if not set(import_module(name).__all__) <= set(ripplevec.__all__)}
    assert others == set(hooks["python_reference"].MODULES) - {"ripplevec"}


def test_manual_mentions_every_public_name() -> None:
    names = [name for name in ripplevec.__all__ if not name.startswith("__")]
    assert [name for name in names if not re.search(rf"\b{name}\b", MANUAL)] == []


def test_integrations_page_mentions_every_integration() -> None:
    """Parse the modules as text, because the integrated libraries may not be installed."""
    page, offered = (ROOT / "docs/integrations.md").read_text(), dict[str, list[str]]()
    for path in (ROOT / "src/ripplevec/integrations").glob("[a-z]*.py"):
        if path.stem != "export":  # shared by the others
            offered[path.stem] = re.findall(r"^(?:def|class) ([a-zA-Z]\w*)", path.read_text(), re.MULTILINE)
    assert all(offered.values())
    assert [name for names in offered.values() for name in names if name not in page] == []


def test_parameter_table_of_the_method_page_equals_the_embedder_docstring() -> None:
    method = (ROOT / "docs/method.md").read_text()
    section = method.partition("## Parameters of `Embedder`\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| `(.+?)` \| (.+) \|$", section, flags=re.MULTILINE)
    assert [(name, kind, ast.literal_eval(default), text) for name, kind, default, text in rows] == [
        (doc.name, doc.type, doc.default, doc.description) for doc in describe_parameters().values()
    ], "run python studies/fill_blocks.py"


def test_reference_and_cli_page_list_every_command_and_option(site: Path, hooks: dict[str, Any]) -> None:
    page, cli = text(site / "reference/commands.html"), (ROOT / "docs/cli.md").read_text()
    commands = dict(hooks["command_reference"].commands(typer.main.get_command(app)))
    assert {"ripplevec embed", "ripplevec state verify"} <= commands.keys()
    for name in commands:
        shown = CliRunner().invoke(app, [*name.split()[1:], "--help"], env={"COLUMNS": "200"}).output
        options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", shown)) - {"--help"}
        assert options, name
        assert name in page
        section = page[page.index(f"{name} [OPTIONS]") :]
        assert [option for option in options if option not in section or f"`{option}`" not in cli] == [], name
        assert f"`{name.split()[-1]}`" in cli or f"`{name} " in cli or f"`{name}`" in cli


def test_reference_and_service_page_list_every_endpoint(site: Path) -> None:
    page, service = text(site / "reference/http.html"), (ROOT / "docs/service.md").read_text()
    paths = create_app(Settings(Path("nowhere"))).openapi()["paths"]
    endpoints = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    assert len(endpoints) > 10
    assert [name for name in endpoints if name not in page or f"`{name}`" not in service] == []
    given = {
        parameter["name"]
        for path in paths.values()
        for method in path.values()
        for parameter in method.get("parameters", [])
    }
    assert [name for name in given if name not in page] == []


def test_public_names_exist() -> None:
    assert [name for name in ripplevec.__all__ if getattr(ripplevec, name, None) is None] == []
    assert set(ripplevec.__all__) == set(dir(ripplevec))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ripplevec.nothing  # noqa: B018


def test_endpoint_reference_marks_choices_of_list_items(site: Path) -> None:
    page = text(site / "reference/http.html")
    assert re.search(r"weights\s+list of \(number \([^)]*\) or null\) or null\s", page)
    assert "or null or null" not in page


def test_endpoint_reference_explains_every_status_and_has_no_words_of_the_schema(site: Path) -> None:
    page = text(site / "reference/http.html")
    for path, methods in create_app(Settings(Path("nowhere"))).openapi()["paths"].items():
        for method, endpoint in methods.items():
            for status, response in endpoint["responses"].items():
                meaning = response["description"].replace("`", "")
                assert meaning in page, f"{method} {path} {status}: {meaning}"
    assert re.findall(r"minLength|maxLength|minimum|maximum|True|False", page) == []


def test_reference_shows_annotations_as_they_are_written(site: Path) -> None:
    for page in (site / "reference").glob("*.html"):
        assert re.findall(r"ForwardRef|<class", text(page)) == [], page.name
