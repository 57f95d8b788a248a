"""`ripplevec datasets`: its options, and nothing heavy until it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli.console import print_json, progress, say
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ripplevec.lab.datasets import DatasetInfo


def datasets(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Which ones; all without.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch those that are not here yet.")] = False,
    json: Json = False,
) -> None:
    """List the data sets of the paper: their sizes, and whether they are on this machine."""
    from ripplevec.errors import check_choice
    from ripplevec.lab.datasets import available, fetch

    known = available()
    for name in names or ():
        check_choice("name", name, known)
    chosen = [known[name] for name in names or known]
    if download:
        with progress() as bars:
            for info in chosen:
                fetch(info.name, Bars(bars))
    rows = [_row(info) for info in chosen]
    if json:
        print_json({"datasets": rows})
    else:
        _tell(rows)


class Bars:
    """A bar for every file that comes in."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, name: str, here: int, total: int | None) -> None:
        """Show how much of a file is here, in bytes."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task("download", note=name)
        self._bars.update(self._tasks[name], completed=here, total=total)


def _row(info: DatasetInfo) -> dict[str, Any]:
    """What is known of one data set, and where its files are on this machine."""
    from ripplevec.lab.datasets.download import find_local

    paths = {file: find_local(file) for file in info.files}
    return {
        "name": info.name,
        "about": info.about,
        "vertices": info.vertices,
        "classes": info.classes,
        "paper_edges": info.paper_edges,
        "edges": info.edges,
        "self_loops": info.self_loops,
        "present": all(paths.values()),
        "files": [
            {"name": file.name, "sha256": file.sha256, "address": file.address, "path": path and str(path)}
            for file, path in paths.items()
        ],
    }


def _tell(rows: list[dict[str, Any]]) -> None:
    """The list, for a person."""
    from rich.console import Console
    from rich.table import Table

    counts = {
        "vertices": "vertices",
        "classes": "classes",
        "paper_edges": "Table 2 edges",
        "edges": "pairs",
        "self_loops": "self-loops",
    }
    caption = "Table 2 of the paper counts rows of the files; pairs are distinct and without self-loops"
    shown = Table(title="The data sets of the paper", caption=caption)
    shown.add_column("name", no_wrap=True)
    for heading in counts.values():
        shown.add_column(heading, justify="right")
    shown.add_column("here")
    for row in rows:
        shown.add_row(row["name"], *(f"{row[count]:,}" for count in counts), "yes" if row["present"] else "no")
    Console().print(shown)
    if not all(row["present"] for row in rows):
        say("ripplevec datasets --download fetches those that are not here")
