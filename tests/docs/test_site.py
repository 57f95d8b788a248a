"""The site is whole: it builds without a warning, links lead somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).resolve().parents[2] / "docs"
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Contents(HTMLParser):
    """What a page can be entered by, where it leads, and what a browser loads for it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = {""}, set[str](), set[str]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if (address := found.get(LOADING.get(tag, ""))) is not None:
            self.loads.add(address)


@cache
def contents(page: Path) -> Contents:
    return Contents(page.read_text())


def test_every_page_of_the_documents_is_in_the_site(site: Path) -> None:
    pages = [page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")]
    assert len(pages) > 10
    assert [page for page in pages if not (site / page).is_file()] == []


def test_a_page_goes_by_its_heading(site: Path) -> None:
    for folder in ("tutorials", "howto"):
        for page in (DOCS / folder).glob("*.md"):
            (heading,) = re.findall(r"\A(?:<!--.*-->\n)?# (.+)$", page.read_text(), re.MULTILINE)
            title = re.findall(r"<title>(.*) - Ripplevec</title>", (site / folder / f"{page.stem}.html").read_text())
            assert [unescape(name) for name in title] == [heading]


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    broken = []
    for page in site.rglob("*.html"):
        for link in contents(page).links | contents(page).loads:
            address = urlsplit(link)
            if address.scheme or page.name == "404.html":
                continue
            target = (page.parent / unquote(address.path)) if address.path else page
            if not target.is_file() or (
                target.suffix == ".html" and unquote(address.fragment) not in contents(target.resolve()).anchors
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    outside = [
        f"{page.relative_to(site)}: {address}"
        for page in site.rglob("*.html")
        for address in contents(page).loads
        if urlsplit(address).netloc
    ]
    styles = [
        style for style in site.rglob("*.css") if re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text())
    ]
    assert (outside, styles) == ([], [])
