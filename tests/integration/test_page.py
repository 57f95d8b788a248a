"""The live page and the API page in a real browser: updates, search, keyboard navigation, small screens, tokens."""

from __future__ import annotations

import json
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
from ripplevec.service.schemas import TAGS
from ripplevec.service.security import Tokens
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings

playwright = pytest.importorskip("playwright.sync_api", reason="not installed: pip install playwright")
playwright.expect.set_options(timeout=120_000)  # milliseconds, for a busy machine
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser is installed: apt-get install chromium")

BROWSER_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
WIDE, NARROW = {"width": 1200, "height": 860}, {"width": 390, "height": 844}
SECRET = "t" * 24
MARKUP_ID = '<img src=x onerror="document.title=1">'


class LiveService:
    """Service in a thread of this process, with a graph that grows on request."""

    def __init__(self, state: Path, **settings: Any) -> None:
        settings = {"parameters": {"dim": 16, "threads": 1}} | settings
        self.server = Server(Settings(state=state, port=0, **settings))
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
def secured(tmp_path: Path) -> Iterator[LiveService]:
    """Service that needs a token."""
    service = LiveService(tmp_path / "secured", tokens=Tokens.of(write=[SECRET]))
    service.http.headers["Authorization"] = f"Bearer {SECRET}"
    yield service
    service.stop()


@pytest.fixture
def visit(browser: Any, live: LiveService) -> Iterator[Callable[..., Any]]:
    """Function that opens the page; at the end, check for console messages and requests to other hosts."""
    contexts, messages, requests = [], [], []

    def open_page(viewport: dict[str, int] = WIDE, url: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(viewport=viewport, **options))
        contexts[-1].set_default_timeout(120_000)
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
    expect_text(page, "#no-arrivals", "None on the map since this page was opened.")  # the model has vertices
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
    playwright.expect(page.locator("#arrivals svg")).to_be_visible()


def test_page_charts_show_figures(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    live.grow(200)
    expect_text(page, "#latency output", re.compile(r"^[\d.,]+ · [\d.,]+ m?s$"))
    expect_text(page, "#drift output", re.compile(r"^[\d.,]+°$"))
    live.grow(200)
    expect_text(page, "#ripples output", re.compile(r"^[\d.,]+$"))


def fake_second(number: int, **values: Any) -> dict[str, Any]:
    return {"second": number, "arrivals": 1, "p50": None, "p99": None, "ripples": None, "drift": 0.5, **values}


def test_page_chart_of_long_latencies_shows_seconds(visit: Callable[..., Any]) -> None:
    page = visit()
    rows = [fake_second(number, p50=720, p99=1400) for number in range(900, 1000)]
    stats = {"now": 1000, "seconds": rows, "since_anchor": True}
    page.route("**/v1/map/pulse*", lambda route: route.fulfill(json=stats))
    expect_text(page, "#latency output", "0.72 · 1.4 s")  # "720 · 1,400 ms" is wider than its card on a phone


def test_page_chart_of_seconds_without_values_has_gaps(visit: Callable[..., Any]) -> None:
    page = visit()
    latencies = {900: 1, 901: 2, 902: 1, 950: 1, 951: 1, 970: 2}
    rows = [fake_second(number, p50=value, p99=value) for number, value in latencies.items()]
    stats = {"now": 1000, "seconds": rows, "since_anchor": True}
    page.route("**/v1/map/pulse*", lambda route: route.fulfill(json=stats))
    line = page.locator("#latency .line-1")
    wait_until(page, lambda: (line.get_attribute("d") or "").count("M") == 3, "the line has three parts")
    assert "h0" in line.get_attribute("d"), "a second without neighbors is a dot"
    arrivals = page.locator("#arrivals .line-1").get_attribute("d")
    assert arrivals.count("M") == 1
    assert arrivals.count("L") == 1000 - 900 - 1, "no batch, no arrivals; before the first record nothing is known"


def test_page_chart_marks_peaks_that_are_cut_off(visit: Callable[..., Any]) -> None:
    page = visit()
    rows = [fake_second(number, p50=2, p99=3 if number != 950 else 700) for number in range(900, 1000)]
    stats = {"now": 1000, "seconds": rows, "since_anchor": True}
    page.route("**/v1/map/pulse*", lambda route: route.fulfill(json=stats))
    expect_text(page, "#latency .peak title", "peak: 700")
    assert page.locator("#arrivals .peak").count() == 0


def test_page_chart_shows_the_value_under_the_mouse(visit: Callable[..., Any]) -> None:
    page = visit()
    rows = [fake_second(number, drift=4 if number < 950 else 2) for number in range(880, 1000)]
    page.route(
        "**/v1/map/pulse*", lambda route: route.fulfill(json={"now": 1000, "seconds": rows, "since_anchor": True})
    )
    expect_text(page, "#drift output", "2°")
    page.locator("#drift > div").hover(position={"x": 45, "y": 30})
    expect_text(page, "#drift output", "4°")
    page.locator("#search").hover()
    expect_text(page, "#drift output", "2°")


def test_page_health_panel_shows_queue_memory_snapshot_errors_and_followers(visit: Callable[..., Any]) -> None:
    page = visit()
    expect_text(page, "#health-queue", "0 waiting")
    expect_text(page, "#health-memory", re.compile(r"^[\d,.]+ [MG]B$"))
    expect_text(page, "#health-snapshot", "none yet")
    expect_text(page, "#health-errors", "none")
    expect_text(page, "#health-followers", "0")
    assert page.locator(".attention").count() == 0
    for link in page.locator(".links a").all():
        assert httpx.get(f"{page.url.rstrip('/')}{link.get_attribute('href')}").status_code == 200


def test_page_health_panel_marks_what_needs_attention(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    stats = live.http.get("/v1/stats").json()
    stats["snapshot"] |= {"failed": True}
    stats["errors"] |= {"failed_batches": 2, "failed_requests": 1}
    stats["queue"]["requests"] = 1000
    page.route("**/v1/stats*", lambda route: route.fulfill(json=stats))
    expect_text(page, "#health-errors.attention", "3")
    expect_text(page, "#health-snapshot.attention", "failed; see the log")
    expect_text(page, "#health-queue.attention", "1,000 waiting")


def test_page_lists_show_and_scroll_whole_rows(visit: Callable[..., Any], live: LiveService) -> None:
    live.send([["hub", f"leaf-{i}"] for i in range(30)])
    page = visit()
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    page.fill("#search", "hub")
    page.press("#search", "Enter")
    playwright.expect(page.locator("#neighbors li")).to_have_count(12)
    row = page.locator("#neighbors li").first.bounding_box()["height"]
    height = page.evaluate("document.querySelector('#neighbors').clientHeight")
    assert height == 6 * row
    page.locator("#neighbors").hover()
    page.mouse.wheel(0, 50)
    top = "document.querySelector('#neighbors').scrollTop"
    wait_until(
        page, lambda: page.evaluate(top) > 0 and page.evaluate(top) % row == 0, "the list scrolls to a whole row"
    )


def test_page_highlights_of_many_vertices_are_limited(visit: Callable[..., Any]) -> None:
    page = visit()
    started = page.evaluate("""async () => {
        const { startHighlights } = await import("/static/highlight_layer.js");
        const [many, few] = [new Map(), new Map()];
        const arrivals = Array.from({ length: 10000 }, (_, i) => i);
        startHighlights(many, arrivals, 0, 40);
        const once = [...many.keys()];
        for (let i = 0; i < 20; i++) startHighlights(many, arrivals.map((arrival) => arrival + 7 * i), 0, 40);
        startHighlights(few, [1, 2, 3], 0, 40);
        return [once, many.size, [...few.keys()]];
    }""")
    assert started == [[i * 1250 for i in range(8)], 40, [1, 2, 3]]


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_page_map_uses_its_card(visit: Callable[..., Any], viewport: dict[str, int]) -> None:
    page = visit(viewport)
    wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
    box = """
        const painted = [];
        data.forEach((value, i) => { if (i % 4 === 3 && value > 0) painted.push(i >> 2); });
        const columns = painted.map((at) => at % width);
        const rows = painted.map((at) => Math.floor(at / width));
        const extent = (list) => list.reduce((a, b) => Math.max(a, b)) - list.reduce((a, b) => Math.min(a, b));
        return [extent(columns) / points.width, extent(rows) / points.height];
    """
    horizontal, vertical = page.evaluate(f"() => {{ {PIXELS} {box} }}")
    assert horizontal > 0.7
    assert vertical > 0.7


def test_page_without_labels_is_colored_by_community(visit: Callable[..., Any], tmp_path: Path) -> None:
    service = LiveService(tmp_path / "unlabeled")
    labels = service.labels
    try:
        service.put_labels = lambda labels: None  # type: ignore[method-assign]
        vertices = service.grow(1500)
        page = visit(url=service.url)
        expect_text(page, "#legend li >> nth=0", "community 1")
        playwright.expect(page.locator("input[value=community]")).to_be_checked()
        LiveService.put_labels(service, {vertex: labels[vertex] for vertex in vertices})
        playwright.expect(page.locator("input[value=label]")).to_be_checked()
        page.close()
    finally:
        service.stop()


def test_page_colors_chosen_by_the_user_stay(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    playwright.expect(page.locator("input[value=label]")).to_be_checked()
    page.locator("input[value=age]").check(force=True)
    live.grow(100)
    expect_text(page, "#vertices", vertex_count(live))
    playwright.expect(page.locator("input[value=age]")).to_be_checked()


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
    playwright.expect(page.locator("#by-attributes")).to_be_hidden()
    page.locator("#nearest button").first.click()
    expect_text(page, "#selected-id", around["nearest"][0]["id"])
    page.keyboard.press("Escape")
    playwright.expect(page.locator("#selected")).to_be_hidden()


def test_page_selection_is_exported_as_json(visit: Callable[..., Any], live: LiveService) -> None:
    page = visit()
    vertex = ids_to_list(live.edges.src)[700]
    page.locator("#vertices").wait_for()
    page.fill("#search", vertex)
    page.press("#search", "Enter")
    expect_text(page, "#selected-id", vertex)
    with page.expect_download() as download:
        page.click("#export-selected")
    assert download.value.suggested_filename == f"vertex-{vertex}.json"
    exported = json.loads(Path(download.value.path()).read_text())
    assert exported["id"] == vertex
    assert exported["neighbors"]
    assert exported["nearest"]


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
    playwright.expect(page.locator("input[value=label]")).to_be_checked()
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
        service.send([("a", "b"), ("b", "c"), ("c", "d")])
        expect_text(page, "#empty-text", re.compile(r"4 of [\d,]+ vertices until the first map"))
        playwright.expect(page.locator("#commands")).to_contain_text("ripplevec")
        expect_text(page, "#sequence-name", "batch")
        expect_text(page, "#anchors-name", "anchors")
        page.set_viewport_size({"width": 390, "height": 900})
        assert page.evaluate("document.querySelector('#empty pre').scrollWidth") <= 390
        service.grow(1500)
        playwright.expect(page.locator("#empty")).to_be_hidden(timeout=120_000)
        wait_until(page, lambda: count_painted_pixels(page) > 1000, "points are drawn")
        page.close()
    finally:
        service.stop()


def test_page_stopped_service_shows_unreachable(browser: Any, tmp_path: Path) -> None:
    service = LiveService(tmp_path / "gone")
    page = browser.new_page()
    page.set_default_timeout(120_000)
    try:
        page.goto(service.url)
        expect_text(page, "#vertices", "0")
        service.stop()
        expect_text(page, "#status", "service unreachable")
    finally:
        page.close()


def test_page_service_with_tokens_asks_for_token(browser: Any, secured: LiveService) -> None:
    secured.grow(1500)
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto(secured.url)
    page.locator("#token-dialog").wait_for(state="visible")
    page.fill("#token", SECRET)
    page.press("#token", "Enter")
    expect_text(page, "#vertices", vertex_count(secured))
    playwright.expect(page.locator("#token-dialog")).to_be_hidden()
    page.close()


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_api_page_tries_a_request_with_the_token(browser: Any, secured: LiveService, viewport: dict[str, int]) -> None:
    context = browser.new_context(viewport=viewport)
    context.set_default_timeout(120_000)
    page, requests, messages = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.goto(f"{secured.url}docs", timeout=120_000)
    page.fill("#token", SECRET)
    page.press("#token", "Enter")
    playwright.expect(page.locator("h3.opblock-tag")).to_have_count(len(TAGS))
    operation = page.locator("#operations-writes-add_edges_v1_edges_post")
    operation.locator("button.opblock-summary-control").click()
    playwright.expect(operation.locator(".response[data-code='409']")).to_contain_text("different keys")
    playwright.expect(operation.locator("textarea")).to_have_value(re.compile('"order-17"'))
    operation.locator("button.execute").click()
    playwright.expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    assert secured.http.get("/v1/stats").json()["vertices"] == 3
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    assert [url for url in requests if not url.startswith((secured.url, "data:"))] == []
    assert [message for message in messages if "401" not in message] == []
    context.close()


def test_api_page_of_an_unreachable_description_says_so(browser: Any, secured: LiveService) -> None:
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.route("**/openapi.json*", lambda route: route.fulfill(status=503, json={"error": "not ready"}))
    page.goto(f"{secured.url}docs", timeout=120_000)
    expect_text(page, "#message", "Cannot read the description of the API: not ready")
    page.close()


def test_page_lists_vertices_with_similar_attributes(browser: Any, tmp_path: Path) -> None:
    parameters = {"dim": 8, "attribute_dim": 4, "start_size": 4, "threads": 1}
    live = LiveService(tmp_path / "attributed", parameters=parameters)
    try:
        arrivals = [
            {"id": f"p{n}", "neighbors": [f"p{n // 2}"], "attributes": {["graph", "protein"][n % 2]: 1}}
            for n in range(1, 30)
        ]
        assert live.http.post("/v1/arrivals", json={"arrivals": arrivals}).status_code == 200
        page = browser.new_context(viewport=WIDE).new_page()
        page.goto(live.url)
        page.fill("#search", "p9")
        page.press("#search", "Enter")
        expect_text(page, "#selected-id", "p9")
        similar = page.locator("#nearest-by-attributes .name").all_text_contents()
        assert {int(name[1:]) % 2 for name in similar} == {1}
        playwright.expect(page.locator("#by-attributes")).to_be_visible()
        page.context.close()
    finally:
        live.stop()
