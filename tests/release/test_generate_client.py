"""The blocking client is generated from the asyncio client."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import ripplevec

ROOT = Path(__file__).resolve().parents[2]


def test_blocking_client_is_the_generated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("unasync", reason="not installed: pip install '.[test]'")
    monkeypatch.setattr(sys, "path", [str(ROOT / "release"), *sys.path])
    import generate_client

    assert generate_client.TARGET.read_text() == generate_client.generate_client(), "run make client"


def test_async_client_has_the_methods_of_the_blocking_client() -> None:
    def methods(kind: Any) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(method).parameters) for name, method in found if not name.startswith("_")}

    blocking, asynchronous = methods(ripplevec.Client), methods(ripplevec.AsyncClient)
    blocking["aclose"] = blocking.pop("close")
    assert asynchronous == blocking
