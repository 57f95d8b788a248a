"""Conversion of numpydoc docstrings to Markdown, for the Python reference.

Unchanged, the underlined section titles of numpydoc would become headings of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
ITEM = re.compile(r"^- ", re.MULTILINE)  # of a list in the description of an entry
ENTRY_SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")
"""Sections that list entries; other sections are text."""


def render(docstring: str) -> str:
    """Return a docstring as Markdown: sections as paragraphs with bold titles, entries as lists, examples as code."""
    text, *sections = SECTION.split(docstring)
    titled = zip(sections[::2], sections[1::2], strict=True)
    parts = [_fence_examples(text), *(f"**{title}**\n\n{_render_section(title, body)}" for title, body in titled)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def has_section(docstring: str, *titles: str) -> bool:
    """Return whether a docstring has one of these sections."""
    return any(title in titles for title in SECTION.findall(docstring))


def _render_section(title: str, body: str) -> str:
    return "\n".join(_render_entries(title, body)) if title in ENTRY_SECTIONS else _fence_examples(body)


def _render_entries(title: str, body: str) -> Iterator[str]:
    for entry in re.split(r"\n(?=\S)", body.strip()):
        heading, _, description = entry.partition("\n")
        name, separator, kind = heading.partition(" : ")
        label = f"`{name}` ({kind})" if separator else f"`{heading}`" if title != "Returns" else heading
        text, *items = ITEM.split(dedent(description))
        text = " ".join(text.split())
        yield f"- {label}: {text}" if text else f"- {label}"
        yield from (f"    - {' '.join(item.split())}" for item in items)


def _fence_examples(text: str) -> str:
    return EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", text)
