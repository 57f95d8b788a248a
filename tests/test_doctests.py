"""The examples in docstrings of the public API run and give the results that they show."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from typing import Any

import pytest

import ripplevec

CORE = ("ripplevec.batch", "ripplevec.changes", "ripplevec.embedder", "ripplevec.errors")
NAMES = [name for name in ripplevec.__all__ if name != "__version__"]


def public_object(name: str) -> Any:
    if ripplevec._MODULES[name.partition(".")[0]] == "ripplevec.client":
        pytest.importorskip("httpx", reason="the client needs an optional dependency")
    found: Any = ripplevec
    for part in name.split("."):
        found = getattr(found, part)
    return found


def core_names() -> list[str]:
    """Public names of the core modules, and the public methods of their classes."""
    names = [name for name in NAMES if ripplevec._MODULES[name] in CORE]
    return names + [
        f"{name}.{method}"
        for name in names
        if inspect.isclass(owner := getattr(ripplevec, name))
        for method, value in vars(owner).items()
        if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, classmethod))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_pass(name: str) -> None:
    found, report = public_object(name), list[str]()
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(found, name, module=import_module(found.__module__)):
        runner.run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", core_names())
def test_docstring_documents_every_parameter_result_and_use(name: str) -> None:
    found = public_object(name)
    text = inspect.getdoc(found) or ""
    assert text.splitlines()[0].endswith(".")
    if name == "Embedder.neighbours":
        assert "British spelling of `neighbors`" in text
        return
    takes_arguments = not inspect.isclass(found) or name in ("Batch", "Embedder")
    names = set(inspect.signature(found).parameters) - {"self", "cls"} if takes_arguments else set()
    section = text.partition("Parameters\n----------\n")[2].partition("\n\nReturns")[0]
    headings = [line for line in section.splitlines() if not line.startswith(" ")]
    assert names <= {word.strip("* ") for line in headings for word in line.partition(" : ")[0].split(", ")}
    if inspect.isroutine(found) and inspect.signature(found).return_annotation != "None":
        assert "Returns\n-------\n" in text
    assert ">>> " in text or name == "Changes.select_ids"
