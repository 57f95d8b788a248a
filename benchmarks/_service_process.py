"""Service in a separate process, for benchmarks over HTTP."""

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

LOG_TIMEOUT_SECONDS = 10.0  # between the first response and the "ready" line in the log


class ServiceProcess:
    """`ripplevec serve` on a state directory; the constructor returns once it is ready. Port 0 chooses a free port."""

    def __init__(self, state: Path, *options: str, port: int = 0) -> None:
        self.log = state.parent / f"{state.name}.log"
        required = {"state": state, "port": port}
        words = [word for name, value in required.items() for word in (f"--{name}", str(value))]
        started = time.perf_counter()
        with self.log.open("w") as log:
            command = [sys.executable, "-m", "ripplevec.cli", "serve", "--no-access-log", *words, *options]
            self.process = subprocess.Popen(command, stderr=log)
        self.port = self._wait_for_port()
        while self.get("/readyz")[0] != 200:
            time.sleep(0.01)
        self.start_seconds = time.perf_counter() - started

    def _wait_for_port(self) -> int:
        while self.process.poll() is None:
            if match := re.search(r"http://127\.0\.0\.1:(\d+)", self.log.read_text()):
                return int(match[1])
            time.sleep(0.01)
        raise SystemExit(self.log.read_text())

    def get(self, path: str) -> tuple[int, Any]:
        """Send a GET request; return the status and the decoded body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def ready_event(self) -> dict[str, Any]:
        """Return the log event about recovery, which may be written shortly after the first response."""
        deadline = time.monotonic() + LOG_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            for line in self.log.read_text().splitlines(keepends=True):
                if line.startswith("{") and line.endswith("\n") and (event := json.loads(line))["event"] == "ready":
                    return dict(event)
            time.sleep(0.05)
        raise TimeoutError(f"{self.log}: expected a 'ready' event, got none although the service responds")

    def stop(self) -> None:
        """Stop the service gracefully."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)

    def kill(self) -> None:
        """Kill the service with SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextmanager
def run_service(state: Path, *options: str) -> Iterator[ServiceProcess]:
    """Run a service during a block, and stop it at the end."""
    service = ServiceProcess(state, *options)
    try:
        yield service
    finally:
        service.stop()
