"""Settings for every test: property tests are reproducible and have no deadline, as kernels compile on first use."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ripplet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ripplet")


@pytest.fixture(autouse=True)
def nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches beyond this machine: whatever would be downloaded is reported as not to be had."""
    resolve = socket.getaddrinfo

    def local_only(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in (None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1"):
            raise socket.gaierror(socket.EAI_NONAME, "tests stay on this machine")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", local_only)
