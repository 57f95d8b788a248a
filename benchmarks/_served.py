"""A service in a process of its own, for the benchmarks that measure one over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 10.0  # seconds between an answer and the line in the log that says so


class Served:
    """`ripplevec serve` on a state directory; there once it is ready. A free port is chosen where none is given."""

    def __init__(self, state: Path, *options: str, port: int = 0) -> None:
        self.log = state.parent / f"{state.name}.log"
        fixed = {"state": state, "port": port}
        words = [word for name, value in fixed.items() for word in (f"--{name}", str(value))]
        began = time.perf_counter()
        with self.log.open("w") as log:
            command = [sys.executable, "-m", "ripplevec.cli", "serve", "--no-access-log", *words, *options]
            self.process = subprocess.Popen(command, stderr=log)
        self.port = self._port()
        while self.get("/readyz")[0] != 200:
            time.sleep(0.01)
        self.start_seconds = time.perf_counter() - began

    def _port(self) -> int:
        while self.process.poll() is None:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", self.log.read_text()):
                return int(found[1])
            time.sleep(0.01)
        raise SystemExit(self.log.read_text())

    def get(self, path: str) -> tuple[int, Any]:
        """An answer: its status and what it holds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def ready_event(self) -> dict[str, Any]:
        """What the service said of its recovery, which it may still be saying when it answers already."""
        latest = time.monotonic() + PATIENCE
        while time.monotonic() < latest:
            for line in self.log.read_text().splitlines(keepends=True):
                if line.startswith("{") and line.endswith("\n") and (said := json.loads(line))["event"] == "ready":
                    return said
            time.sleep(0.05)
        raise TimeoutError(f"{self.log}: the service answers, and did not say that it is ready")

    def stop(self) -> None:
        """Let it end by itself."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)

    def kill(self) -> None:
        """End it as a loss of power would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def served(state: Path, *options: str) -> Iterator[Served]:
    """A service, ended afterwards."""
    service = Served(state, *options)
    try:
        yield service
    finally:
        service.stop()
