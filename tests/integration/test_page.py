"""The live page in a real browser: updates, search, keyboard navigation, small screens, tokens."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ripplevec.batch import ids_to_list
from ripplevec.io.rebatch import slice_batch
from ripplevec.replay.replay import generate_stream
from ripplevec.service.security import Tokens
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings

playwright = pytest.importorskip("playwright.sync_api", reason="not installed: pip install playwright")
playwright.expect.set_options(timeout=120_000)  # milliseconds, for a busy machine
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed: apt-get install chromium")

BROWSER_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WIDE, NARROW = {"width": 1200, "height": 860}, {"width": 390, "height": 844}
MARKUP_ID = '<img src=x onerror="document.title=1">'


class LiveService:
    """Service in a thread of this process, with a graph that grows on request."""

    def __init__(self, state: Path, **settings: Any) -> None:
        self.server = Server(Settings(state=state, port=0, parameters={"dim": 16, "threads": 1}, **settings))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started and self.thread.is_alive():
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"
        self.http = httpx.Client(base_url=self.url, timeout=60)
        self.edges, self.labels = generate_stream(600)
        self.sent = 0
        while self.http.get("/readyz").status_code != 200:
            time.sleep(0.01)

    def grow(self, edges: int) -> list[str]:
        """Send the next edges with labels; return the vertices in them."""
        batch = slice_batch(self.edges, self.sent, self.sent + edges)
        self.sent += edges
        vertices = dict.fromkeys([*ids_to_list(batch.src), *ids_to_list(batch.dst)])
        self.put_labels({vertex: self.labels[vertex] for vertex in vertices})
        self.send(zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))
        return list(vertices)

    def send(self, edges: Any) -> None:
        assert self.http.post("/v1/edges", json={"edges": list(edges)}).status_code == 200

    def put_labels(self, labels: dict[Any, str]) -> None:
        assert self.http.put("/v1/labels", json={"labels": list(labels.items())}).status_code == 200

    def stop(self) -> None:
        self.http.close()
        self.server.runtime.begin_stop()
        self.server.should_exit = True
        self.thread.join(60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveService]:
    service = LiveService(tmp_path / "state")
    service.grow(1500)
    yield service
    service.stop()


@pytest.fixture
def visit(browser: Any, live: LiveService) -> Iterator[Callable[..., Any]]:
    """Function that opens the page; at the end, check for console messages and requests to other hosts."""
    contexts, messages, requests = [], [], []

    def open_page(viewport: dict[str, int] = WIDE, url: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(viewport=viewport, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url or live.url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert messages == []
    assert [url for url in requests if not url.startswith("http://127.0.0.1:")] == []


PIXELS = """
    const points = document.querySelector("#point-canvas");
    const copy = Object.assign(document.createElement("canvas"), { width: points.width, height: points.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(points, 0, 0);
    const { data, width } = context.getImageData(0, 0, points.width, points.height);
"""


def count_painted_pixels(page: Any) -> int:
    """Return the number of pixels of the map that have a color."""
    return int(
        page.evaluate(f"() => {{ {PIXELS} return data.filter((value, i) => i % 4 === 3 && value > 0).length; }}")
    )


def wait_until(page: Any, condition: Callable[[], bool], description: str) -> None:
    for _ in range(2400):
        if condition():
            return
        page.wait_for_timeout(50)
    pytest.fail(f"{description}: not within two minutes")


def expect_text(page: Any, selector: str, text: str | re.Pattern[str]) -> None:
    playwright.expect(page.locator(selector)).to_have_text(text, timeout=120_000)


def focused_element(page: Any) -> str:
    return str(
        page.evaluate("document.activeElement.id || document.activeElement.value || document.activeElement.tagName")
    )


def vertex_count(live: LiveService) -> str:
    return f"{live.http.get('/v1/stats').json()['vertices']:,}"


def test_page_new_data_updates_map_and_lists(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    expect_text(page, "#vertices", vertex_count(live))
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    playwright.expect(page.locator("#legend li")).to_have_count(10)
    picture = "document.querySelector('#point-canvas').toDataURL()"
    before = page.evaluate(picture)
    arrived = live.grow(300)
    expect_text(page, "#vertices", vertex_count(live))
    expect_text(page, "#status", re.compile("^(live|no new data)$"))
    wait_until(page, lambda: page.evaluate(picture) != before, "new points are drawn")
    playwright.expect(page.locator("#recent-arrivals button")).to_have_count(7)
    for name in page.locator("#recent-arrivals .name").all_text_contents():
        assert name in arrived
    playwright.expect(page.locator("#arrivals output")).not_to_have_text("–", timeout=120_000)
    playwright.expect(page.locator("#arrivals .main-svg").first).to_be_visible()


def test_page_charts_show_figures(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    live.grow(200)
    expect_text(page, "#latency output", re.compile(r"^[\d.,]+ · [\d.,]+ ms$"))
    expect_text(page, "#drift output", re.compile(r"^[\d.,]+°$"))
    live.grow(200)
    expect_text(page, "#ripples output", re.compile(r"^[\d.,]+$"))


def test_page_search_shows_vertex_and_its_neighbors(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    name = ids_to_list(live.edges.src)[700]
    around = live.http.get("/v1/map/around", params={"id": name}).json()
    page.locator("#vertices").wait_for()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    page.fill("#search", name[:-1])
    wait_until(page, lambda: page.locator(f"#suggestions option[value='{name}']").count() == 1, "it is suggested")
    page.fill("#search", name)
    page.press("#search", "Enter")
    expect_text(page, "#selected-id", name)
    assert page.locator("#nearest .name").all_text_contents() == [point["id"] for point in around["nearest"]]
    assert page.locator("#neighbors .name").all_text_contents() == [point["id"] for point in around["neighbors"]]
    page.locator("#nearest button").first.click()
    expect_text(page, "#selected-id", around["nearest"][0]["id"])
    page.keyboard.press("Escape")
    playwright.expect(page.locator("#selected")).to_be_hidden()


def test_page_search_unknown_vertex_shows_message(visit: Callable[..., Any]) -> None:
    page = visit()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    page.fill("#search", MARKUP_ID)
    page.press("#search", "Enter")
    expect_text(page, "#search-message", f"Vertex {MARKUP_ID} not found.")
    playwright.expect(page.locator("#selected")).to_be_hidden()


def test_page_click_selects_point(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    page.keyboard.press("Tab")
    page.locator("#map").focus()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#selected")).to_be_visible()
    selected = page.locator("#selected-id").text_content()
    first = "const at = data.findIndex((value, i) => i % 4 === 3 && value > 150) >> 2;"
    where = page.evaluate(f"() => {{ {PIXELS} {first} return [at % width, Math.floor(at / width)]; }}")
    page.locator("#map").click(position={"x": where[0], "y": where[1] + 2})
    wait_until(page, lambda: page.locator("#selected-id").text_content() != selected, "another point is selected")
    page.locator("#map").hover(position={"x": where[0], "y": where[1] + 2})
    playwright.expect(page.locator("#tooltip")).to_contain_text(page.locator("#selected-id").text_content())


def test_page_ids_and_labels_are_escaped(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    expect_text(page, "#vertices", vertex_count(live))
    live.put_labels({MARKUP_ID: "<b>bold</b>"})
    live.send([[MARKUP_ID, "oak-0"], [MARKUP_ID, ids_to_list(live.edges.src)[3]]])
    expect_text(page, "#recent-arrivals .name", MARKUP_ID)
    expect_text(page, "#recent-arrivals .value", "<b>bold</b>")
    page.locator("#recent-arrivals button").click()
    expect_text(page, "#selected-id", MARKUP_ID)
    assert page.locator("main img, main b").count() == 0
    assert page.title() == "Ripplevec"


def test_page_colors_can_be_chosen(visit: Callable[..., Any]) -> None:
    page = visit()
    playwright.expect(page.locator("#legend li")).to_have_count(10)
    page.locator("input[value=label]").focus()
    page.keyboard.press("ArrowRight")
    expect_text(page, "#legend li >> nth=0", "community 1")
    page.keyboard.press("ArrowRight")
    expect_text(page, "#legend li >> nth=0", "oldest")
    expect_text(page, "#legend li >> nth=7", "newest")


def test_page_all_controls_are_reachable_by_keyboard(visit: Callable[..., Any]) -> None:
    page = visit()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    order = []
    for _ in range(9):
        page.keyboard.press("Tab")
        order.append(focused_element(page))
        outline = "getComputedStyle(document.activeElement.nextElementSibling ?? document.activeElement).outlineStyle"
        own = "getComputedStyle(document.activeElement).outlineStyle"
        assert "solid" in {page.evaluate(own), page.evaluate(outline)}, (
            f"{order[-1]} does not show that it has the focus"
        )
    assert order == ["A", "label", "pause", "zoom-in", "zoom-out", "show-all", "map", "search", "BUTTON"]


def test_page_map_moves_by_keyboard(visit: Callable[..., Any]) -> None:
    page = visit()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    page.click("#pause")
    picture = "document.querySelector('#point-canvas').toDataURL()"
    page.locator("#map").focus()
    for key in ("ArrowLeft", "ArrowUp", "+", "-"):
        before = page.evaluate(picture)
        page.keyboard.press(key)
        wait_until(page, lambda before=before: page.evaluate(picture) != before, f"{key} moves the map")
    page.keyboard.press("0")
    page.wait_for_timeout(200)
    assert count_painted_pixels(page) > 1000


def test_page_pause_stops_updates(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    shown = vertex_count(live)
    expect_text(page, "#vertices", shown)
    page.click("#pause")
    playwright.expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(500)
    live.grow(200)
    page.wait_for_timeout(1000)
    expect_text(page, "#vertices", shown)
    page.click("#pause")
    expect_text(page, "#vertices", vertex_count(live))


def test_page_fits_phone_screen(visit: Callable[..., Any]) -> None:
    page = visit(NARROW, has_touch=True, is_mobile=True, device_scale_factor=2)
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for selector in ("#map", "#search", "#arrivals", "#drift"):
        box = page.locator(selector).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    for box in [button.bounding_box() for button in page.locator(".tools button").all()]:
        assert min(box["width"], box["height"]) >= 40
    page.fill("#search", "oak-0")
    page.tap("button.main >> nth=0")
    expect_text(page, "#selected-id", "oak-0")


def test_page_respects_dark_scheme_and_reduced_motion(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit(color_scheme="dark", reduced_motion="reduce")
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground))) < 60
    live.grow(50)
    expect_text(page, "#vertices", vertex_count(live))
    assert page.evaluate("document.getAnimations().length") == 0


def test_page_empty_service_shows_waiting_message(visit: Callable[..., Any], tmp_path: Path) -> None:
    service = LiveService(tmp_path / "empty")
    try:
        page = visit(url=service.url)
        expect_text(page, "#vertices", "0")
        playwright.expect(page.locator("#empty")).to_be_visible()
        service.grow(1500)
        playwright.expect(page.locator("#empty")).to_be_hidden(timeout=120_000)
        wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
        page.close()
    finally:
        service.stop()


def test_page_stopped_service_shows_unreachable(browser: Any, tmp_path: Path) -> None:
    service = LiveService(tmp_path / "gone")
    page = browser.new_page()
    try:
        page.goto(service.url)
        expect_text(page, "#vertices", "0")
        service.stop()
        expect_text(page, "#status", "service unreachable")
    finally:
        page.close()


def test_page_service_with_tokens_asks_for_token(browser: Any, tmp_path: Path) -> None:
    token = "t" * 24
    service = LiveService(tmp_path / "closed", tokens=Tokens.of(write=[token]))
    service.http.headers["Authorization"] = f"Bearer {token}"
    service.grow(1500)
    page = browser.new_page()
    try:
        page.goto(service.url)
        page.locator("#token-dialog").wait_for(state="visible")
        page.fill("#token", token)
        page.press("#token", "Enter")
        expect_text(page, "#vertices", vertex_count(service))
        playwright.expect(page.locator("#token-dialog")).to_be_hidden()
    finally:
        page.close()
        service.stop()
