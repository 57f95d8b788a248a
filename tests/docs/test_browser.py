"""Tests of the site in a browser: it fits a phone, makes no external requests, and can be searched."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="not installed: pip install playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed: apt-get install chromium")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 860}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """Server with a queue long enough for a browser that requests many files at once."""

    request_queue_size = 128


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = Server(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def test_pages_on_a_phone_fit_and_make_no_external_requests(site: Path, browser: Any) -> None:
    requested: list[str] = []
    tab = browser.new_page(viewport=PHONE)
    tab.on("request", lambda request: requested.append(request.url))
    too_wide = []
    for page in sorted(site.rglob("*.html")):
        tab.goto(page.as_uri())
        if tab.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
            too_wide.append(page.relative_to(site).as_posix())
    tab.close()
    assert too_wide == []
    assert {url for url in requested if not url.startswith(("file:", "data:", "blob:"))} == set()


@pytest.mark.parametrize(
    ("term", "page"), [("anchor", "method"), ("symmetrise", "comparison"), ("factorising", "comparison")]
)
def test_search_for_a_term_finds_its_page(address: str, browser: Any, term: str, page: str) -> None:
    tab = browser.new_page(viewport=DESKTOP)
    tab.goto(address + "index.html")
    tab.get_by_role("textbox", name="Search").click()
    tab.keyboard.type(term)
    results = tab.locator(f"a.md-search-result__link[href*='{page}.html']")
    results.first.wait_for(state="attached", timeout=60_000)
    tab.close()


def count_lines_of_names(browser: Any, viewport: Any, page: Path, selector: str) -> list[tuple[str, int]]:
    """Return the names that a page shows as code in tables, each with the number of lines that it takes."""
    tab = browser.new_page(viewport=viewport)
    tab.goto(page.as_uri())
    lines = tab.locator(selector).evaluate_all(
        "names => names.map(name => [name.innerText, name.getClientRects().length])"
    )
    tab.close()
    return [(name, count) for name, count in lines]


def test_names_in_tables_on_a_desktop_are_not_broken(site: Path, browser: Any) -> None:
    lines = count_lines_of_names(browser, DESKTOP, site / "method.html", "table td code")
    assert "change_threshold" in dict(lines)
    assert [name for name, count in lines if name.isidentifier() and count > 1] == []


def test_short_names_in_tables_on_a_phone_are_not_broken(site: Path, browser: Any) -> None:
    lines = count_lines_of_names(browser, PHONE, site / "howto/diagnostics.html", "table td:first-child code")
    assert "unplaced" in dict(lines)
    assert [name for name, count in lines if len(name) <= 14 and count > 1] == []


def test_columns_of_sentences_on_a_phone_have_room(site: Path, browser: Any) -> None:
    tab = browser.new_page(viewport=PHONE)
    tab.goto((site / "method.html").as_uri())
    widths = tab.locator("td:nth-child(4):not([style])").evaluate_all("cells => cells.map(cell => cell.clientWidth)")
    tab.close()
    assert len(widths) > 20, "the table of parameters"
    assert min(widths) >= 150


@pytest.mark.parametrize("page", ["time", "howto/classifier"])
def test_columns_of_sentences_between_others_on_a_phone_have_room(site: Path, browser: Any, page: str) -> None:
    tab = browser.new_page(viewport=PHONE)
    tab.goto((site / f"{page}.html").as_uri())
    widths = tab.locator("td:nth-child(2):not([style])").evaluate_all("cells => cells.map(cell => cell.clientWidth)")
    tab.close()
    assert widths
    assert min(widths) >= 120


def test_titles_of_modules_on_a_phone_are_not_broken(site: Path, browser: Any) -> None:
    tab = browser.new_page(viewport=PHONE)
    for page in sorted((site / "reference").glob("ripplevec*.html")):
        tab.goto(page.as_uri())
        lines = tab.locator("h1").evaluate(
            "title => { const text = document.createRange(); text.selectNode(title.firstChild);"
            " return text.getClientRects().length; }"
        )
        assert lines == 1, page.name
    tab.close()


def test_headings_on_a_phone_have_no_empty_line(site: Path, browser: Any) -> None:
    tab = browser.new_page(viewport=PHONE)
    tab.goto((site / "faq.html").as_uri())
    empty = tab.locator("article :is(h1, h2, h3)").evaluate_all(
        "titles => titles.filter(title => { const text = document.createRange(); text.setStart(title, 0);"
        " text.setEndBefore(title.querySelector('.headerlink'));"
        " return title.getBoundingClientRect().height > 1.6 * text.getBoundingClientRect().height; })"
        ".map(title => title.innerText)"
    )
    tab.close()
    assert empty == []
