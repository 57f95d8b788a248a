"""Fixtures of the durability tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ripplevec.durability.journal import Journal


@pytest.fixture
def journal_at(tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """Function that creates or reopens the journal of this test; all are closed at the end."""
    with ExitStack() as stack:

        def open_journal(**options: object) -> Journal:
            metadata = {"made": "for a test"}
            journal = Journal(tmp_path / "journal.sqlite", make_metadata=lambda: metadata, **options)
            return stack.enter_context(closing(journal))

        yield open_journal
