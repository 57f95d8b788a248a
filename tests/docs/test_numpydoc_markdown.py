"""Conversion of numpydoc docstrings to Markdown."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs/_hooks"
DOCSTRING = """Add two numbers.

They may be negative.

Parameters
----------
a : int, default 0
    The first number, which may
    be negative.
b
    The second number.

Returns
-------
int

Raises
------
OverflowError
    If the sum is too large.

Examples
--------
>>> add(1, 2)
3
"""
MARKDOWN = """Add two numbers.

They may be negative.

**Parameters**

- `a` (int, default 0): The first number, which may be negative.
- `b`: The second number.

**Returns**

- int

**Raises**

- `OverflowError`: If the sum is too large.

**Examples**

```pycon
>>> add(1, 2)
3
```"""


@pytest.fixture
def numpydoc_markdown(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(HOOKS)
    return import_module("numpydoc_markdown")


def test_docstring_sections_become_lists_and_code(numpydoc_markdown: ModuleType) -> None:
    assert numpydoc_markdown.render(DOCSTRING) == MARKDOWN


def test_docstring_without_sections_is_unchanged(numpydoc_markdown: ModuleType) -> None:
    assert numpydoc_markdown.render("Add two numbers.\n\n- one\n- two") == "Add two numbers.\n\n- one\n- two"


def test_section_titles_are_found(numpydoc_markdown: ModuleType) -> None:
    assert numpydoc_markdown.has_section(DOCSTRING, "Attributes", "Parameters")
    assert not numpydoc_markdown.has_section(DOCSTRING, "Attributes")


def test_render_list_in_a_description_is_a_nested_list(numpydoc_markdown: ModuleType) -> None:
    docstring = (
        "Add.\n\nParameters\n----------\na : list\n    One of:\n\n    - pairs, in\n      order;\n    - triples.\n"
    )
    assert numpydoc_markdown.render(docstring).splitlines()[-3:] == [
        "- `a` (list): One of:",
        "    - pairs, in order;",
        "    - triples.",
    ]
