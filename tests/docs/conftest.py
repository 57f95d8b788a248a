"""The site, built once for all tests of this folder, and what the examples of a page take for granted."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).resolve().parents[2]
RING = [(f"v{i}", f"v{(i + step) % 40}") for step in (1, 2, 5) for i in range(40)]


def _fixtures(folder: str) -> ModuleType:
    """The real servers that other tests run."""
    spec = spec_from_file_location(f"{folder}_fixtures", ROOT / "tests" / folder / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


start = _fixtures("service").start
redis_server, kafka_servers = (getattr(_fixtures("integration"), name) for name in ("redis_server", "kafka_servers"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the built site lies; a warning while it is built ends the build."""
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


@pytest.fixture(scope="session")
def prepared() -> dict[str, Callable[[], dict[str, Any] | None]]:
    """For a page, what puts into the current folder the files that it speaks of, and gives the names it uses."""
    return {
        "docs/cli.md": _files_of_the_command_line,
        "docs/datasets.md": _files_of_data_sets,
        "docs/io.md": lambda: _text("edges.csv.gz", RING),
        "docs/live.md": _files_of_replay,
        "docs/objective.md": _state_before_and_after,
    }


def _text(name: str, rows: list[Any], between: str = ",") -> None:
    text = "".join(between.join(map(str, row)) + "\n" for row in rows)
    Path(name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


def _table(name: str) -> None:
    pq.write_table(pa.table({"src": [a for a, _ in RING], "dst": [b for _, b in RING]}), name)


def _files_of_the_command_line() -> None:
    _text("citations.csv.gz", RING)
    _table("graph.parquet")
    Path("events.jsonl").write_text(json.dumps(["w0", "v1"]) + "\n" + json.dumps(["w0", "v2"]) + "\n")


def _files_of_data_sets() -> None:
    if not os.environ.get("RIPPLEVEC_DATA"):
        pytest.skip("the data sets are not here: RIPPLEVEC_DATA names their folder")
    _text("friends.csv.gz", RING)
    _text("labels.tsv", [(f"v{i}", f"class {i % 2}") for i in range(40)], between="\t")


def _files_of_replay() -> None:
    _text("calls.csv", [("src", "dst", "time"), *((a, b, second) for second, (a, b) in enumerate(RING))])
    _table("edges.parquet")
    Path("edges.jsonl").write_text("".join(json.dumps(edge) + "\n" for edge in RING[:40]))


def _state_before_and_after() -> dict[str, Any]:
    from scipy.sparse import csr_array

    ring = np.roll(np.eye(12), 1, axis=1)
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 3)))[0]
    return {"adjacency": csr_array(ring + ring.T), "before": vectors[:10], "vectors": vectors}
