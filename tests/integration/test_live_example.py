"""`make live`: one command, and it moves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "live.py"


def test_the_example_serves_a_page_and_a_graph_that_grows(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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
        assert len(sizes) >= 5, "it grows"
        assert set(answer["points"]["label"]) <= {name.partition("-")[0] for name in answer["points"]["id"]}
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.close()
        process.wait(60)
    assert process.returncode == 0
    assert not list(tmp_path.glob("ripplevec-live-*")), "nothing is left behind"
