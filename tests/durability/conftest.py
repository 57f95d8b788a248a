"""Fixtures of the durability tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
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

    def __enter__(self) -> Connection:
        return self.db.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before, after = self.error_before_commit, self.error_after_commit
        if kind is not None or before is after is None:
            self.db.__exit__(kind, error, trace)
            return
        self.error_before_commit = self.error_after_commit = None
        if before is not None:
            self.db.rollback()  # as after a commit that failed
            raise before
        self.db.commit()
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
