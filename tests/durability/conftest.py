"""Journals for the tests of what survives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ripplevec.durability.journal import Journal


@pytest.fixture
def journal_at(tmp_path: Path) -> Iterator[Callable[..., Journal]]:
    """The journal of this test, new or opened again."""
    with ExitStack() as stack:

        def opened(**options: object) -> Journal:
            meta = {"made": "for a test"}
            return stack.enter_context(closing(Journal(tmp_path / "journal.sqlite", new=lambda: meta, **options)))

        yield opened
