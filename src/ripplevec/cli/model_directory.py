"""The argument of commands that read a model: the directory of a saved model, or of a session that is not in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ripplevec.batch import Id
    from ripplevec.embedder import Embedder

ModelDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="Directory of a saved model, or of a session not in use.")
]


@contextmanager
def open_model(directory: Path) -> Iterator[Embedder]:
    """Load a saved model, or open the session in a directory."""
    from ripplevec.embedder import Embedder
    from ripplevec.util.checked_directory import JOURNAL_FILE

    if not (directory / JOURNAL_FILE).exists():
        yield Embedder.load(directory)
        return
    from ripplevec.cli.state import choose_factory
    from ripplevec.durability.maintenance import inspect_directory
    from ripplevec.durability.session import Session

    with Session(directory, model=choose_factory(inspect_directory(directory), None)) as session:
        yield session.model


def resolve_id(model: Embedder, text: str) -> Id:
    """Return the text id if such a vertex exists, otherwise the integer id."""
    return int(text) if text not in model and text.lstrip("-").isdecimal() else text
