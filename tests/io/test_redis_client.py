from __future__ import annotations

import sys

import pytest

from ripplevec.errors import MissingExtraError
from ripplevec.io.redis_client import create_redis_client


def test_create_redis_client_without_library_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"Redis needs an optional dependency: .*pip install .*\[redis\]"):
        create_redis_client("redis://localhost")
