"""Fixtures and settings of all tests.

Property tests are reproducible, and have no deadline because kernels compile on first use.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from crash_tolerant_scheduling import CrashTolerantScheduling
from hypothesis import HealthCheck, settings

settings.register_profile("ripplevec", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ripplevec")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> CrashTolerantScheduling | None:
    """Let a run with `--dist loadfile` end although a test has ended its process."""
    return CrashTolerantScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


class Contributing:
    """The code examples in CONTRIBUTING.md, by section."""

    def __init__(self) -> None:
        self.page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")

    def section(self, heading: str) -> str:
        return self.page.partition(f"## {heading}\n")[2].partition("\n## ")[0]

    def run(self, heading: str) -> None:
        names: dict[str, Any] = {"__name__": "contributing"}
        for code in re.findall(r"```python\n(.*?)```", self.section(heading), flags=re.DOTALL):
            exec(compile(code, f"CONTRIBUTING.md, {heading}", "exec", dont_inherit=True), names)


@pytest.fixture
def contributing(monkeypatch: pytest.MonkeyPatch) -> Contributing:
    """The examples in CONTRIBUTING.md; what they register is removed after the test."""
    from ripplevec import parameters
    from ripplevec.io import registry
    from ripplevec.lab import baselines

    for table, name in ((parameters.RULES, "mean"), (registry.SOURCES, "ticks"), (baselines.BASELINES, "projection")):
        monkeypatch.setitem(table, name, None)  # undone after the test, which removes what the example registered
    return Contributing()


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block connections to other machines: a download fails as if the host did not exist."""
    resolve = socket.getaddrinfo

    def local_only(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1"):
            raise socket.gaierror(socket.EAI_NONAME, "tests stay on this machine")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", local_only)
