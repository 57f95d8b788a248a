"""Fixtures of the documentation tests: the site, built once, and the files that the examples of a page use."""

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
RING_EDGES = [(f"v{i}", f"v{(i + step) % 40}") for step in (1, 2, 5) for i in range(40)]


def _import_conftest(folder: str) -> ModuleType:
    """Import the conftest of another test folder, which has fixtures that start servers."""
    spec = spec_from_file_location(f"{folder}_fixtures", ROOT / "tests" / folder / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


start = _import_conftest("service").start
redis_server, kafka_servers = (
    getattr(_import_conftest("integration"), name) for name in ("redis_server", "kafka_servers")
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site and return its folder; a warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


@pytest.fixture(scope="session")
def page_setups() -> dict[str, Callable[[], dict[str, Any] | None]]:
    """Functions that write the files a page uses to the current folder, and return the variables it uses."""
    return {
        "docs/cli.md": _write_cli_files,
        "docs/datasets.md": _write_dataset_files,
        "docs/index.md": _require_datasets,
        "docs/io.md": lambda: _write_text("edges.csv.gz", RING_EDGES),
        "docs/live.md": _write_replay_files,
        "docs/objective.md": _create_objective_variables,
    }


def _write_text(name: str, rows: list[Any], separator: str = ",") -> None:
    text = "".join(separator.join(map(str, row)) + "\n" for row in rows)
    Path(name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


def _write_parquet(name: str) -> None:
    pq.write_table(pa.table({"src": [a for a, _ in RING_EDGES], "dst": [b for _, b in RING_EDGES]}), name)


def _write_cli_files() -> None:
    _write_text("citations.csv.gz", RING_EDGES)
    _write_parquet("graph.parquet")
    Path("events.jsonl").write_text(json.dumps(["w0", "v1"]) + "\n" + json.dumps(["w0", "v2"]) + "\n")


def _require_datasets() -> None:
    if not os.environ.get("RIPPLEVEC_DATA"):
        pytest.skip("data sets are missing: set RIPPLEVEC_DATA to their folder")


def _write_dataset_files() -> None:
    _require_datasets()
    _write_text("friends.csv.gz", RING_EDGES)
    _write_text("labels.tsv", [(f"v{i}", f"class {i % 2}") for i in range(40)], separator="\t")


def _write_replay_files() -> None:
    _write_text("calls.csv", [("src", "dst", "time"), *((a, b, second) for second, (a, b) in enumerate(RING_EDGES))])
    _write_parquet("edges.parquet")
    Path("edges.jsonl").write_text("".join(json.dumps(edge) + "\n" for edge in RING_EDGES[:40]))


def _create_objective_variables() -> dict[str, Any]:
    from scipy.sparse import csr_array

    ring = np.roll(np.eye(12), 1, axis=1)
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 3)))[0]
    return {"adjacency": csr_array(ring + ring.T), "before": vectors[:10], "vectors": vectors}
