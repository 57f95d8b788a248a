"""The command `ripplevec datasets`: list the published data sets, and download missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ripplevec.cli.console import print_json, print_message, show_progress
from ripplevec.cli.options import Json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ripplevec.lab.datasets import DatasetInfo


def datasets(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets to list. By default all.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Download data sets that are missing.")] = False,
    json: Json = False,
) -> None:
    """List the data sets of the paper, their sizes, and whether they are on this machine."""
    from ripplevec.errors import check_choice
    from ripplevec.lab.datasets import available, fetch

    catalog = available()
    for name in names or ():
        check_choice("name", name, catalog)
    selected = [catalog[name] for name in names or catalog]
    if download:
        with show_progress() as bars:
            for info in selected:
                fetch(info.name, DownloadBars(bars))
    entries = [_describe(info) for info in selected]
    if json:
        print_json({"datasets": entries})
    else:
        _print_summary(entries)


class DownloadBars:
    """Shows one progress bar per downloaded file."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, name: str, received: int, total: int | None) -> None:
        """Show how many bytes of a file have been received."""
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task("download", note=name)
        self._bars.update(self._tasks[name], completed=received, total=total)


def _describe(info: DatasetInfo) -> dict[str, Any]:
    """Describe a data set and the paths of its files on this machine as JSON data."""
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


def _print_summary(entries: list[dict[str, Any]]) -> None:
    """Print the data sets as a table."""
    from rich.console import Console
    from rich.table import Table

    counts = {
        "vertices": "vertices",
        "classes": "classes",
        "paper_edges": "Table 2 edges",
        "edges": "pairs",
        "self_loops": "self-loops",
    }
    caption = "Table 2 of the paper counts the lines of the files; pairs are distinct and exclude self-loops"
    table = Table(title="Data sets of the paper", caption=caption)
    table.add_column("name", no_wrap=True)
    for heading in counts.values():
        table.add_column(heading, justify="right")
    table.add_column("present")
    for entry in entries:
        table.add_row(entry["name"], *(f"{entry[count]:,}" for count in counts), "yes" if entry["present"] else "no")
    Console().print(table)
    if not all(entry["present"] for entry in entries):
        print_message("to download the missing data sets: ripplevec datasets --download")
