"""The live example (`make live`) serves a page and a growing graph."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "live.py"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def has_processes(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_live_example_ends_its_children_on_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--port", str(free_port()), "--vertices", "30000"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    try:
        assert "compiles kernels" in process.stdout.readline()
        assert any("is live at" in process.stdout.readline() for _ in range(5))
        process.terminate()
        assert process.wait(120) == 0
        deadline = time.monotonic() + 60
        while has_processes(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not has_processes(process.pid), "children are still running"
        assert not list(tmp_path.glob("ripplevec-live-*")), "temporary files are left"
    finally:
        if has_processes(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


def test_live_example_with_busy_port_says_why_the_service_did_not_start() -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        command = [sys.executable, str(SCRIPT), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert re.search(rf"{port}.*in use", done.stderr), done.stderr
    assert "is live at" not in done.stdout


def test_live_example_serves_page_and_growing_graph(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, str(SCRIPT), "--port", str(port), "--vertices", "2600"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    )
    assert process.stdout is not None
    try:
        address = f"http://127.0.0.1:{port}/"
        assert any(address in process.stdout.readline() for _ in range(5))
        sizes = set()
        with httpx.Client(base_url=address, timeout=60) as http:
            assert "Ripplevec" in http.get("/").text
            deadline = time.monotonic() + 120
            while len(sizes) < 5 and time.monotonic() < deadline:
                answer = http.get("/v1/map").json()
                sizes.add(len(answer["points"]["id"]))
                time.sleep(0.2)
        assert len(sizes) >= 5, "the graph does not grow"
        assert set(answer["points"]["label"]) <= {name.partition("-")[0] for name in answer["points"]["id"]}
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.close()
        process.wait(60)
    assert process.returncode == 0
    assert not list(tmp_path.glob("ripplevec-live-*")), "temporary files are left"
