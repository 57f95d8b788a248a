"""MkDocs hook that adds linked files from outside docs/, so that links work in the repository and in the site.

Pages use the paths of the repository: `../results/quality.md` from a page in docs/. In the site, the pages of docs/ are
at the top level, and all other files keep their paths: `results/quality.md`.
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
HTML_HEADING = re.compile(r"<h1[^>]*>(.+?)</h1>")
INDEX_PAGE = "index.md"
RENAMED = {"README.md": "readme.md"}  # MkDocs would use README.md as the index page of its folder
RECORDS = "results/"
TITLES = {RECORDS: "All results"}  # of listings; others have the path of the folder
LOGO = "src/ripplevec/service/page/ripplevec.svg"


def on_config(config: MkDocsConfig) -> None:
    """Replace every folder in the navigation by its pages: the index page, then the others by name."""
    config.nav = list(_expand_folders(config.nav or []))


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add all files that pages link to, including the pages that are added here."""
    files.append(File.generated(config, "logo.svg", abs_src_path=str(ROOT / LOGO)))
    pending = list(files.documentation_pages())
    while pending:
        page = pending.pop()
        for target in _external_targets(page.content_string, _source_folder(page)):
            if files.get_file_from_path(_site_path(target)) is None:
                added = _create_file(target, config)
                files.append(added)
                pending += [added] if added.is_documentation_page() else []


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the links of a page by the locations of their targets in the site."""
    if page.file.src_uri.startswith(RECORDS):
        page.meta.setdefault("search", {"boost": 0.1})  # rank tables below the pages that discuss them
    if heading := HEADING.search(markdown):
        page.meta.setdefault("title", heading[1])  # also if a comment precedes it
    source_folder, site_folder = _source_folder(page.file), Path(page.file.src_uri).parent

    def relocate(link: re.Match[str]) -> str:
        target = (source_folder / link[1]).resolve()
        return os.path.relpath(_site_path(target), site_folder) if _is_in_repository(target) else link[1]

    return LINK.sub(relocate, markdown)


def _expand_folders(entries: list[Any]) -> Iterator[Any]:
    for entry in entries:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            yield {title: list(_expand_folders(value))}
        elif not value.endswith("/"):
            yield entry
        else:
            names = [page.name for page in (ROOT / "docs" / value).glob("*.md")]
            yield {title: [value + name for name in sorted(names, key=lambda name: (name != INDEX_PAGE, name))]}


def _external_targets(markdown: str, folder: Path) -> Iterator[Path]:
    for link in LINK.findall(markdown):
        target = (folder / link).resolve()
        if _is_in_repository(target) and not (target.is_relative_to(ROOT / "docs") and target.is_file()):
            yield target


def _is_in_repository(target: Path) -> bool:
    return target.exists() and target.is_relative_to(ROOT)


def _site_path(target: Path) -> str:
    """Return the path in the site of a file of the repository."""
    path = target.relative_to(ROOT / "docs" if target.is_relative_to(ROOT / "docs") else ROOT).as_posix()
    return f"{path}/{INDEX_PAGE}" if target.is_dir() else RENAMED.get(path, path)


def _source_folder(file: File) -> Path:
    """Return the folder of the repository that the links of a page are relative to."""
    if file.abs_src_path:
        return Path(file.abs_src_path).parent
    path = Path(file.src_uri).parent  # a generated page: the listing of a folder, or a page of the reference
    return ROOT / path if (ROOT / path).is_dir() else ROOT / "docs" / path


def _create_file(target: Path, config: MkDocsConfig) -> File:
    if target.is_file():
        return File.generated(config, _site_path(target), abs_src_path=str(target))
    folder = f"{target.relative_to(ROOT)}/"
    return File.generated(
        config, _site_path(target), content=f"# {TITLES.get(folder, folder)}\n\n{_list_files(target)}"
    )


def _list_files(folder: Path) -> str:
    """Return a table of the pages of a folder, with their titles, and a list of its other files."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    titles = {path.name: _title(path) for path in files if path.suffix in (".md", ".html")}
    others = [path.name for path in files if path.name not in titles]
    rows = "".join(f"| [{name}]({name}) | {title} |\n" for name, title in titles.items())
    table = f"| page | content |\n|---|---|\n{rows}\n" if rows else ""
    return (
        table
        + ("Records and other files:\n\n" if rows and others else "")
        + "".join(f"- [{name}]({name})\n" for name in others)
    )


def _title(path: Path) -> str:
    found = (HEADING if path.suffix == ".md" else HTML_HEADING).search(path.read_text())
    return found[1] if found else ""
