"""Fixtures of the durability tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from ripplevec.durability import journal_database
from ripplevec.durability.journal import Journal


class InstrumentedConnection:
    """A connection to a journal on which the next COMMIT can be made to fail, before or after it takes effect."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self.error_before_commit: BaseException | None = None
        self.error_after_commit: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def execute(self, statement: str, *values: Any) -> Any:
        before, after = self.error_before_commit, self.error_after_commit
        if statement != "COMMIT" or before is after is None:
            return self.db.execute(statement, *values)
        self.error_before_commit = self.error_after_commit = None
        if before is not None:
            raise before
        self.db.execute(statement)
        assert after is not None
        raise after


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[InstrumentedConnection]:
    """The connections that journals open during this test, in order."""
    opened, connect = list[InstrumentedConnection](), journal_database.connect

    def connect_and_record(*arguments: Any, **options: Any) -> InstrumentedConnection:
        opened.append(InstrumentedConnection(connect(*arguments, **options)))
        return opened[-1]

    monkeypatch.setattr(journal_database, "connect", connect_and_record)
    return opened


@pytest.fixture
def journal_at(tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """Function that creates or reopens the journal of this test; all are closed at the end."""
    with ExitStack() as stack:

        def open_journal(**options: object) -> Journal:
            metadata = {"made": "for a test"}
            journal = Journal(tmp_path / "journal.sqlite", make_metadata=lambda: metadata, **options)
            return stack.enter_context(closing(journal))

        yield open_journal
