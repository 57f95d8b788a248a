"""MkDocs hook that lets the search find British spelling: the pages are written in US spelling."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

BRITISH = {
    "behavior": "behaviour",
    "center": "centre",
    "color": "colour",
    "favorite": "favourite",
    "initialize": "initialise",
    "labeled": "labelled",
    "modeling": "modelling",
    "neighbor": "neighbour",
    "normalize": "normalise",
    "optimize": "optimise",
    "organize": "organise",
    "recognize": "recognise",
    "serialize": "serialise",
    "standardize": "standardise",
    "summarize": "summarise",
    "visualize": "visualise",
}
"""US words and their British spelling; words that begin with one of them are found, too."""

WORD = re.compile(rf"\b(?:{'|'.join(BRITISH)})\w*", re.IGNORECASE)


def on_post_build(config: MkDocsConfig) -> None:
    """Add the British words of each section to the search index."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for section in index["docs"]:
        if words := translate(f"{section['title']} {section['text']}"):
            section["text"] += f" {' '.join(words)}"
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def translate(text: str) -> list[str]:
    """Return the British spelling of all words of a text that have one."""
    found = sorted({word.lower() for word in WORD.findall(text)})
    return [_translate_word(word) for word in found]


def _translate_word(word: str) -> str:
    root = max((root for root in BRITISH if word.startswith(root)), key=len)
    return BRITISH[root] + word.removeprefix(root)
