"""The rest of the repository in the site: what a page links to comes along, so that links work here and there.

Pages are written for whoever reads the repository: `../results/quality.md` from a page in docs/. In the site the pages
of docs/ are at the top, and everything else keeps its path: `results/quality.md`. Nothing is copied by hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
FOLDER_PAGE = "index.md"
OTHER_NAMES = {"README.md": "readme.md"}  # README.md would be the first page of its folder
RECORDS = "results/"
LOGO = "src/ripplevec/service/page/ripplevec.svg"


def on_config(config: MkDocsConfig) -> None:
    """A folder in the navigation stands for its pages: the one about all of them, then the others by name."""
    config.nav = list(_opened(config.nav or []))


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add whatever is linked from a page, and from the pages that come along by that."""
    files.append(File.generated(config, "logo.svg", abs_src_path=str(ROOT / LOGO)))
    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for target in _targets(page.content_string, _folder(page)):
            if files.get_file_from_path(_address(target)) is None:
                found = _brought(target, config)
                files.append(found)
                waiting += [found] if found.is_documentation_page() else []


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page at where their targets lie in the site."""
    if page.file.src_uri.startswith(RECORDS):
        page.meta.setdefault("search", {"boost": 0.1})  # tables, found behind the pages that speak of them
    if heading := HEADING.search(markdown):
        page.meta.setdefault("title", heading[1])  # also where a comment stands above it
    here, there = _folder(page.file), Path(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        target = (here / link[1]).resolve()
        return os.path.relpath(_address(target), there) if _is_ours(target) else link[1]

    return LINK.sub(moved, markdown)


def _opened(entries: list[Any]) -> Iterator[Any]:
    for entry in entries:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            yield {title: list(_opened(value))}
        elif not value.endswith("/"):
            yield entry
        else:
            names = [page.name for page in (ROOT / "docs" / value).glob("*.md")]
            yield {title: [value + name for name in sorted(names, key=lambda name: (name != FOLDER_PAGE, name))]}


def _targets(markdown: str, folder: Path) -> Iterator[Path]:
    for link in LINK.findall(markdown):
        target = (folder / link).resolve()
        if _is_ours(target) and not (target.is_relative_to(ROOT / "docs") and target.is_file()):
            yield target


def _is_ours(target: Path) -> bool:
    return target.exists() and target.is_relative_to(ROOT)


def _address(target: Path) -> str:
    """Where a file of the repository lies in the site."""
    path = target.relative_to(ROOT / "docs" if target.is_relative_to(ROOT / "docs") else ROOT).as_posix()
    return f"{path}/{FOLDER_PAGE}" if target.is_dir() else OTHER_NAMES.get(path, path)


def _folder(file: File) -> Path:
    """The folder of the repository that the links of a page start from."""
    if file.abs_src_path:
        return Path(file.abs_src_path).parent
    path = Path(file.src_uri).parent  # a page made here: of a folder of the repository, or of none
    return ROOT / path if (ROOT / path).is_dir() else ROOT / "docs" / path


def _brought(target: Path, config: MkDocsConfig) -> File:
    if target.is_file():
        return File.generated(config, _address(target), abs_src_path=str(target))
    names = [path.name for path in sorted(target.iterdir(), key=_pages_first) if path.is_file()]
    listing = "".join(f"- [{name}]({name})\n" for name in names)
    return File.generated(config, _address(target), content=f"# {target.relative_to(ROOT)}/\n\n{listing}")


def _pages_first(path: Path) -> tuple[bool, str]:
    return path.suffix not in (".md", ".html"), path.name
