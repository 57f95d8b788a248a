"""Imports stay light: `import ripplevec` loads nothing heavy, and products do not load the research code."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "scipy", "numba", "pyarrow", "typer", "rich", "ray")
MAX_MODULES = 60  # including those of the standard library


def modules_after(statement: str) -> set[str]:
    """Modules that a new process has loaded after a statement, beyond those that Python starts with."""
    code = f"import sys; before = set(sys.modules)\n{statement}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_of_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import ripplevec") & set(HEAVY)


def test_import_of_the_package_loads_few_modules() -> None:
    assert len(modules_after("import ripplevec")) < MAX_MODULES


@pytest.mark.parametrize(
    "statement",
    [
        "from ripplevec import Embedder",
        "from ripplevec import Session",
        "from ripplevec.cli import main",
        "import ripplevec.service.app, ripplevec.service.server",
    ],
)
def test_import_of_a_product_does_not_load_the_research_code(statement: str) -> None:
    if "service" in statement:
        pytest.importorskip("uvicorn", reason="the service needs optional dependencies")
    loaded = modules_after(statement)
    assert any(name.startswith("ripplevec.") for name in loaded)
    assert not [name for name in loaded if name.split(".")[:2] == ["ripplevec", "lab"]]


def test_use_of_an_embedder_does_not_load_pandas() -> None:
    statement = (
        'from ripplevec import Embedder; model = Embedder(dim=2).fit([("a", "b"), ("b", "c"), ("c", "d")]); '
        'model.add_vertex("e", ["a", "b"]); model.partial_fit([("f", "é")]); model.nearest("a"); model.ids'
    )
    assert not [name for name in modules_after(statement) if name.startswith("pandas")]


def test_use_of_an_embedder_does_not_load_the_research_code() -> None:
    statement = (
        "from ripplevec import Embedder; model = Embedder(dim=2).fit([(0, 1), (1, 2), (2, 3)]); "
        "model.add_vertex(4, [0, 1]); model.anchor(); model.diagnostics()"
    )
    assert not [name for name in modules_after(statement) if name.startswith("ripplevec.lab")]
