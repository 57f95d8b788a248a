"""A small Ray cluster on this machine for the tests in this folder, which are skipped if Ray is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ray = pytest.importorskip("ray", reason="these tests need Ray: pip install '.[cluster]'")

STORE = 200_000_000  # bytes of the object store


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[Any]:
    """Start a cluster with two processors and no dashboard."""
    os.environ.setdefault("RAY_DISABLE_IMPORT_WARNING", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=STORE, log_to_driver=False)
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def program() -> Callable[..., Any]:
    """Return a function that runs a program of this folder on its own cluster and parses its last line as JSON."""

    def run(name: str) -> Any:
        command = [sys.executable, str(Path(__file__).parent / "programs" / f"{name}.py")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="session")
def kill_shard() -> Callable[[Any, int], None]:
    """Return a function that kills the process of a shard, given its actors, and waits for its end.

    Ray only asks the process to end; a batch may come first, and a later read would then notice the loss.
    """

    def kill(actors: Any, shard: int) -> None:
        handle = actors.handles[shard]
        process = psutil.Process(ray.get(handle.__ray_call__.remote(lambda actor: os.getpid()), timeout=60))
        ray.kill(handle, no_restart=False)
        process.wait(60)

    return kill
