"""MkDocs hook that lets the search find British spelling: the pages are written in US spelling."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

VERB = re.compile(
    r"^(?!prize|seize)(\w+(?<!s)|\w*(?:empha|hypothe|parenthe|synthe)s)([iy])z(?:e[drs]?|ers|ing|ations?|ational|able)$"
)
"""Verbs such as `normalize`, and words made from them, but not `size` and its compounds."""

ENDINGS = {"i": ("ed", "er", "es", "ing", "ations"), "y": ("ed", "er", "es", "ing")}
"""The search finds words that begin with the query but does not compare stems, so all forms of a verb are added."""

SPELLINGS = [
    (r"(behavi|col|endeav|fav|flav|harb|(?<!t)hon|lab|neighb|rum)or(?!at|ous|iz|is)", r"\1our"),
    (r"^((?:re|un|de|epi|multi)?)center(?=s?$)", r"\1centre"),
    (r"^((?:re|un|de|multi)?)center(?=ed|ing)", r"\1centr"),
    (r"(cancel|channel|label|level|model|signal|travel)(?=ed$|ing$|ers?$)", r"\1l"),
    (r"^gray", "grey"),
    (r"^(ana|cata|dia)log(?=s?$)", r"\1logue"),
    (r"^(de|of)fense(?=s?$|less)", r"\1fence"),
    (r"^artifact", "artefact"),
    (r"^ag(?=ing$)", "age"),
]
"""Patterns of other US words, also with a prefix as in `unlabeled`, and their British spelling."""


def on_post_build(config: MkDocsConfig) -> None:
    """Add the British words of each section to the search index."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for section in index["docs"]:
        if words := translate(f"{section['title']} {section['text']}"):
            section["text"] += f" {' '.join(words)}"
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def translate(text: str) -> list[str]:
    """Return the British spelling of all words of a text that have one, and the other forms of its verbs."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", text)}
    return sorted({british for word in words for british in _translate_word(word)} - words)


def _translate_word(word: str) -> list[str]:
    verb = VERB.match(word)
    endings = [f"{verb[2]}s{ending}" for ending in ENDINGS[verb[2]]] if verb else [""]
    root = verb[1] if verb else word
    for american, british in SPELLINGS:
        root = re.sub(american, british, root)
    return [root + ending for ending in endings]
