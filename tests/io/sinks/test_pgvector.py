"""What is special about the pgvector sink; test_vector_store.py tests what all vector stores have in common."""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ripplevec import Embedder, InvalidValueError
from ripplevec.errors import MissingExtraError
from ripplevec.install_hint import install_command
from ripplevec.io.sinks.pgvector import PgvectorSink

psycopg = pytest.importorskip("psycopg", reason="not installed: pip install psycopg")


@pytest.fixture
def table() -> str:
    return f"vertices_{uuid4().hex}"


def test_pgvector_sink_finds_the_same_neighbors_as_the_model(postgres_server: str, table: str) -> None:
    ring = [(vertex, (vertex + step) % 60) for vertex in range(60) for step in (1, 2, 5)]
    model = Embedder(dim=8, threads=1).fit(ring)
    sink = PgvectorSink(postgres_server, table=table)
    sink.synchronize(model)
    sink.close()
    with psycopg.connect(postgres_server) as connection:
        query = f"SELECT id::int, 1 - (vector <=> %s::vector) FROM {table} WHERE id <> '7' ORDER BY 2 DESC LIMIT 5"
        found = connection.execute(query, (str(model[7].tolist()),)).fetchall()
    assert np.allclose([cosine for _, cosine in found], [cosine for _, cosine in model.nearest(7, 5)], atol=1e-5)


def test_pgvector_sink_up_to_date_writes_nothing(postgres_server: str, table: str) -> None:
    model = Embedder(dim=2, start_size=3)
    model.partial_fit([("a", "b"), ("b", "c")])
    sink = PgvectorSink(postgres_server, table=table)
    sink.synchronize(model)
    with psycopg.connect(postgres_server) as connection:
        versions = connection.execute(f"SELECT xmin::text FROM {table}").fetchall()
        sink.synchronize(model)
        assert connection.execute(f"SELECT xmin::text FROM {table}").fetchall() == versions
    sink.close()


def test_pgvector_sink_failed_flush_changes_nothing_and_keeps_the_queue(
    postgres_server: str, table: str, changes_of: Any
) -> None:
    sink = PgvectorSink(postgres_server, table=table)
    sink.write(changes_of(["a"], sequence=1))
    sink.flush()
    sink.write(changes_of(["b", "c\0"], removed=["a"], sequence=2))
    with pytest.raises(InvalidValueError, match="without a NUL character"):
        sink.flush()
    assert sink._queued.keys() == {"a", "b", "c\0"}
    with psycopg.connect(postgres_server) as connection:
        assert connection.execute(f"SELECT id FROM {table}").fetchall() == [("a",)]
    sink._queued = {}
    sink.close()


def test_pgvector_sink_connects_again_after_the_connection_is_lost(
    postgres_server: str, table: str, changes_of: Any
) -> None:
    sink = PgvectorSink(postgres_server, table=table)
    sink.write(changes_of(["a"], sequence=1))
    sink.flush()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        sink.write(changes_of(["b"], sequence=2))
        with pytest.raises(psycopg.OperationalError):
            sink.flush()
        sink.flush()
        assert connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall() == [("a",), ("b",)]
    sink.close()


def test_pgvector_sink_accepts_a_table_in_a_schema(postgres_server: str, table: str, changes_of: Any) -> None:
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"CREATE SCHEMA {table}")
    sink = PgvectorSink(postgres_server, table=f'{table}.my "table"')
    for _ in range(2):
        sink.write(changes_of(["a"], sequence=1))
        sink.flush()
    sink.close()
    with psycopg.connect(postgres_server) as connection:
        assert connection.execute(f'SELECT id FROM {table}."my ""table"""').fetchall() == [("a",)]


def test_pgvector_sink_without_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError) as error:
        PgvectorSink("postgresql://nowhere/db")
    assert install_command("pgvector") in str(error.value)
