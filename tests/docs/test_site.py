"""Tests of the built site: pages and links are complete, and nothing is loaded from other servers."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parents[2] / "docs"
LOADED_BY_TAG = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class PageContents(HTMLParser):
    """Anchors and links of a page, and the files that a browser loads for it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = {""}, set[str](), set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value for name, value in attrs if value is not None}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.add(attributes["href"])
        if (address := attributes.get(LOADED_BY_TAG.get(tag, ""))) is not None:
            self.loads.add(address)


@cache
def parse_page(page: Path) -> PageContents:
    return PageContents(page.read_text())


def test_site_contains_every_page(site: Path) -> None:
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]
    assert len(pages) > 10
    assert [page for page in pages if not (site / page).is_file()] == []


def test_page_title_equals_its_heading(site: Path) -> None:
    for folder in ("tutorials", "howto"):
        for page in (DOCS / folder).glob("*.md"):
            (heading,) = re.findall(r"\A(?:<!--.*-->\n)?# (.+)$", page.read_text(), re.MULTILINE)
            title = re.findall(r"<title>(.*) - Ripplevec</title>", (site / folder / f"{page.stem}.html").read_text())
            assert [unescape(name) for name in title] == [heading]


def test_links_of_the_site_lead_to_existing_targets(site: Path) -> None:
    broken = []
    for page in site.rglob("*.html"):
        for link in parse_page(page).links | parse_page(page).loads:
            address = urlsplit(link)
            if address.scheme or page.name == "404.html":
                continue
            target = (page.parent / unquote(address.path)) if address.path else page
            if not target.is_file() or (
                target.suffix == ".html" and unquote(address.fragment) not in parse_page(target.resolve()).anchors
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_site_loads_nothing_from_other_servers(site: Path) -> None:
    external = [
        f"{page.relative_to(site)}: {address}"
        for page in site.rglob("*.html")
        for address in parse_page(page).loads
        if urlsplit(address).netloc
    ]
    styles = [
        style for style in site.rglob("*.css") if re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text())
    ]
    assert (external, styles) == ([], [])


def test_list_of_results_says_what_each_page_contains(site: Path) -> None:
    page = (site / "results/index.html").read_text()
    assert "<h1" in page
    assert ">All results" in page
    for name in ("quality", "report"):
        row = re.search(rf'<td><a href="{name}.html">.*?</td>\s*<td>(.+?)</td>', page)
        assert row is not None, name
        assert len(row[1]) > 20


def test_formulas_keep_their_stars_and_indices(site: Path) -> None:
    page = unescape(re.sub(r"<[^>]*>", "", (site / "objective.html").read_text()))
    for formula in ("|f_u − f*_u|² ≤ 2(|f_u|² + |f*_u|²)", "|f_u − f*_u|² ≤ α_{t+1} for a single draw"):
        assert formula in page
