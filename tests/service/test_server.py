"""The service as a process: stopped, killed and restarted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ripplevec import Embedder
from ripplevec.cli.main import ExitCode
from ripplevec.service import server
from ripplevec.service.settings import Limits, Settings


@contextmanager
def process(state: Path, *options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    command = [sys.executable, "-m", "ripplevec.cli", "serve", "--state", str(state), "--port", "0", "--threads", "1"]
    log = (state.parent / f"log-{time.monotonic_ns()}").open("w+")
    running = subprocess.Popen([*command, *options], stderr=log, text=True, env=os.environ | environment)
    try:
        with httpx.Client(base_url=read_url(running, Path(log.name)), timeout=60) as http:
            while http.get("/readyz").status_code != 200:
                time.sleep(0.01)
            yield running, http
    finally:
        if running.poll() is None:
            running.kill()
        running.wait(60)
        log.close()


def read_url(running: subprocess.Popen[str], log: Path) -> str:
    """Return the URL of the service from its log."""
    while running.poll() is None:
        for line in log.read_text().splitlines():
            if '"starting"' in line:
                return str(json.loads(line)["url"])
        time.sleep(0.02)
    raise AssertionError(log.read_text())


def edges(number: int) -> list[list[str]]:
    return [[f"v{number}", f"v{max(number - step, 0)}"] for step in (1, 2) if number > 0]


def test_server_with_a_busy_port_exits_with_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        command = [sys.executable, "-m", "ripplevec", "serve", "--state", str(tmp_path / "state"), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert f"ripplevec: cannot listen on 127.0.0.1:{port}: Address already in use. Choose another port" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_server_on_a_terminal_logs_text_with_the_address_to_open(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "ripplevec", "serve", "--state", str(tmp_path / "state"), "--port", "0"]
    running = subprocess.Popen([*command, "--dim", "8", "--threads", "1"], stderr=end)
    text = ""
    try:
        while " ready " not in text and running.poll() is None:
            text += os.read(terminal, 4096).decode()
        url = re.search(r"INFO    ready url=(http://127\.0\.0\.1:\d+/) ", text)[1]  # type: ignore[index]
        assert f"INFO    starting url={url} state={tmp_path / 'state'}" in text
        assert httpx.get(f"{url}readyz").status_code == 200
    finally:
        running.kill()
        running.wait(60)
        os.close(terminal)
        os.close(end)


def test_server_named_host_listens_on_all_its_addresses_with_one_port() -> None:
    listeners = server._listen(Settings(state=Path("state"), host="localhost", port=0))
    try:
        expected = {info[0] for info in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
        assert {listener.family for listener in listeners} <= expected
        assert len({listener.getsockname()[1] for listener in listeners}) == 1
    finally:
        for listener in listeners:
            listener.close()


def test_server_sigterm_finishes_accepted_writes_and_resumes(tmp_path: Path) -> None:
    accepted: list[int] = []
    with process(tmp_path / "state", "--dim", "8") as (running, http):

        def write() -> None:
            with httpx.Client(base_url=http.base_url, timeout=60) as client:
                for number in range(1, 5000):
                    try:
                        answer = client.post("/v1/edges", json={"edges": edges(number)})
                    except httpx.TransportError:
                        return
                    if answer.status_code != 200:
                        return
                    accepted.append(answer.json()["sequence"])

        writer = threading.Thread(target=write)
        writer.start()
        while len(accepted) < 20:
            time.sleep(0.005)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
        writer.join()
    assert 20 <= len(accepted) < 4999
    assert max(map(int, os.listdir(tmp_path / "state" / "snapshots"))) >= accepted[-1]
    with process(tmp_path / "state") as (_, http):
        stats = http.get("/v1/stats").json()
        assert stats["sequence"] >= accepted[-1]
        assert stats["vertices"] >= accepted[-1]


def test_server_sigterm_ends_streams(tmp_path: Path) -> None:
    with process(tmp_path / "state", "--dim", "8") as (running, http):
        with http.stream("GET", "/v1/changes", headers={"Accept": "text/event-stream"}) as response:
            lines = response.iter_lines()
            next(lines)
            running.send_signal(signal.SIGTERM)
            list(lines)
        assert running.wait(60) == 0


def test_server_killed_and_restarted_has_the_same_digest(tmp_path: Path) -> None:
    with process(tmp_path / "state", "--dim", "8") as (running, http):
        for number in range(1, 60):
            assert http.post("/v1/edges", json={"key": f"k{number}", "edges": edges(number)}).status_code == 200
        before = http.get("/v1/stats?digest=true").json()
        running.kill()
    with process(tmp_path / "state") as (_, http):
        after = http.get("/v1/stats?digest=true").json()
        assert (after["sequence"], after["digest"]) == (before["sequence"], before["digest"])
        again = http.post("/v1/edges", json={"key": "k59", "edges": edges(59)}).json()
        assert again["repeated"]
        assert http.get("/v1/stats?digest=true").json()["digest"] == before["digest"]


def test_server_on_shards_matches_one_process_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="not installed: pip install '.[cluster]'")
    options, alone = ("--shards", "2"), Embedder(dim=8, threads=1, anchor_growth=0)
    with process(tmp_path / "state", *options, "--dim", "8", "--anchor-growth", "0") as (running, http):
        for first in range(0, 40, 5):
            batch = [edge for number in range(first, first + 5) for edge in edges(number)]
            assert http.post("/v1/edges", json={"edges": batch}).status_code == 200
            alone.partial_fit([tuple(edge) for edge in batch])
        assert http.get("/v1/vertices/v7").json()["vector"] == alone["v7"].tolist()
        (found, *_) = http.get("/v1/vertices/v7/nearest?k=3").json()["nearest"]
        assert found[0] == alone.nearest("v7", 3)[0][0]
        assert http.get("/v1/vertices/unknown").status_code == 404
        assert "ripplevec_vertices 40.0" in http.get("/metrics").text
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    with process(tmp_path / "state", *options) as (_, http):
        assert http.get("/v1/stats?digest=true").json()["digest"] == alone.digest()


def test_server_logs_are_json_lines_without_ids_or_tokens(tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    with process(tmp_path / "state", "--dim", "8", RIPPLEVEC_WRITE_TOKENS=token) as (running, http):
        headers = {"Authorization": f"Bearer {token}"}
        http.post("/v1/edges", json={"edges": [["hidden", "b"]]}, headers=headers)
        http.get("/v1/vertices/hidden", headers=headers)
        running.send_signal(signal.SIGTERM)
        running.wait(60)
    (log,) = tmp_path.glob("log-*")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    routes = [(line["route"], line["status"]) for line in lines if line["event"] == "request"]
    assert ("/v1/vertices/{id}", 200) in routes
    assert "hidden" not in log.read_text()
    assert token not in log.read_text()


def test_server_second_on_same_state_fails(tmp_path: Path) -> None:
    with process(tmp_path / "state", "--dim", "8"):
        command = [sys.executable, "-m", "ripplevec.cli", "serve", "--state", str(tmp_path / "state"), "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert second.returncode == 3
    assert "in use by process" in second.stderr.splitlines()[-1]


def test_server_full_write_queue_returns_429(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start(limits=Limits(queue_requests=2))
    service.edges(["a", "b"])
    started, go_on, session = threading.Event(), threading.Event(), service.runtime.session
    apply_many = session.apply_many

    def slow(entries: Any) -> Any:
        started.set()
        go_on.wait(30)
        return apply_many(entries)

    monkeypatch.setattr(session, "apply_many", slow)
    answers: list[int] = []

    def write(number: int) -> None:
        with httpx.Client(base_url=service.url, timeout=60) as client:
            answers.append(client.post("/v1/edges", json={"edges": [["a", number]]}).status_code)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    writers[0].start()
    started.wait()
    for writer in writers[1:]:
        writer.start()
    while service.runtime.writer.queued_requests < 2:
        time.sleep(0.005)
    refused = service.edges(["a", "z"])
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert service.http.get("/v1/vertices/a").status_code == 200
    go_on.set()
    for writer in writers:
        writer.join()
    assert answers == [200] * 3
    assert service.http.get("/v1/stats").json()["sequence"] == 4


def test_server_with_a_batch_that_takes_long_rejects_further_writes(start: Any) -> None:
    service = start(limits=Limits(queue_seconds=0.1))
    service.edges(["a", "b"])
    answers: list[int] = []
    slow = threading.Thread(target=lambda: answers.append(service.edges(["a", "c"]).status_code))
    with service.runtime.model.lock.exclude_writers():  # its batch waits
        slow.start()
        deadline = time.monotonic() + 30
        while service.runtime.writer.expected_wait() < 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        refused = service.edges(["a", "z"])
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert service.http.get("/v1/vertices/a").status_code == 200
    slow.join(30)
    assert answers == [200]
    assert service.edges(["a", "d"]).status_code == 200
    assert service.http.get("/v1/stats").json()["sequence"] == 3


def test_server_with_inconsistent_state_stops_and_restarts(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    service.edges(["a", "b"])

    def broken(batch: Any) -> Any:
        raise RuntimeError("between disk and memory")

    monkeypatch.setattr(service.runtime.model, "apply_batch", broken)
    assert service.edges(["b", "c"]).status_code == 500
    service.thread.join(60)
    assert isinstance(service.server.failure, RuntimeError)
    monkeypatch.undo()
    again = start()  # with the batches on disk
    assert again.http.get("/v1/stats").json()["sequence"] == 2


def test_server_without_the_parser_that_its_limits_need_does_not_start(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.modules['httptools'] = None; runpy.run_module('ripplevec', run_name='__main__')"
    command = [sys.executable, "-c", code, "serve", "--state", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == ExitCode.MISSING_EXTRA, done.stderr
    assert "ripplevec serve needs an optional dependency" in done.stderr
    assert not (tmp_path / "state").exists()
