"""Tests of integrations whose library is not installed: importing them raises an error that names the extra."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

import ripplevec.integrations
from ripplevec.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
LIBRARIES = {
    "gensim": "gensim",
    "igraph": "igraph",
    "networkx": "networkx",
    "pyg": "torch",
    "river": "river",
    "sklearn": "sklearn",
}


def test_every_integration_module_is_listed():
    modules = {path.stem for path in Path(ripplevec.integrations.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "export"} == LIBRARIES.keys()


@pytest.mark.parametrize("name", LIBRARIES)
def test_integration_without_its_library_names_the_extra(monkeypatch, name):
    library = LIBRARIES[name]
    for module in [module for module in sys.modules if module.partition(".")[0] == library]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"ripplevec.integrations.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{library}\]"):
        importlib.import_module(f"ripplevec.integrations.{name}")
    assert library in EXTRAS
