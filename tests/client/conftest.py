"""Fixtures: a real service, shared with the service tests."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("service_fixtures", Path(__file__).parent.parent / "service" / "conftest.py")
assert _spec is not None
assert _spec.loader is not None
_fixtures = module_from_spec(_spec)
sys.modules["service_fixtures"] = _fixtures  # dataclasses look up their module
_spec.loader.exec_module(_fixtures)
attributed, papers, service, start = _fixtures.attributed, _fixtures.papers, _fixtures.service, _fixtures.start
