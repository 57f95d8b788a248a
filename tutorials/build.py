"""Run the tutorials and write them as pages, with their output and figures.

`make tutorials` runs this script; it writes the pages to docs/tutorials.

A tutorial is a script divided into cells. `# %% [markdown]` begins a cell of
text (in comments), `# %%` a cell of code, and `# %% drawing` a cell of code
that is collapsed below its figure. Editors can open such a script as a
notebook, and it can be read, tested and compared like any other code.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
PAGES = SCRIPTS.parent / "docs" / "tutorials"
NAMES = ("citations", "lookalikes", "shop", "online")
MAX_PICTURE_BYTES = 150_000
INK, FAINT = "#1f2430", "#8a91a0"
STYLE = {
    "figure.figsize": (7.0, 3.4),
    "figure.dpi": 130,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
COLLAPSED_CODE = """<details markdown="1">
<summary>Code of the figure</summary>

{}

</details>"""
INDEX = """# Tutorials

Four examples of about ten minutes each. Every page is generated from a script in `tutorials/`, with its output and
figures; a test runs the scripts and compares their output with the pages. `python tutorials/build.py shop` runs one
script and writes its page again. Editors that support cells (`# %%`) can open a script as a notebook. Install the
requirements with `pip install '.[tutorials]'` in a checkout of the repository.

<!-- Made by `make tutorials`. -->
"""


@dataclass(slots=True)
class Cell:
    """A cell of a tutorial, text or code, with the output of the code."""

    kind: str  # "[markdown]", "drawing" or ""
    source: str
    printed: str = ""
    pictures: dict[str, str] = field(default_factory=dict)  # file → title

    @property
    def is_code(self) -> bool:
        """Whether the cell contains code."""
        return self.kind != "[markdown]"

    def to_markdown(self) -> str:
        """Return the cell as Markdown."""
        if not self.is_code:
            return self.source
        code = f"```python\n{self.source}\n```"
        pieces = [f"```text\n{self.printed}```"] if self.printed else []
        for file, title in self.pictures.items():
            pieces.append(f"![{title}](images/{file})")
        if self.kind == "drawing":
            return "\n\n".join([*pieces, COLLAPSED_CODE.format(code)])
        return "\n\n".join([code, *pieces])


def parse_cells(script: str) -> list[Cell]:
    """Split a script into cells; the text before the first cell is ignored."""
    pieces = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)[1:]
    cells = []
    for kind, source in zip(pieces[::2], pieces[1::2], strict=True):
        cell = Cell(kind.strip(), source.strip())
        if not cell.is_code:
            cell.source = re.sub(r"^# ?", "", cell.source, flags=re.MULTILINE)
        cells.append(cell)
    return cells


def run(name: str, pictures: Path) -> tuple[list[Cell], dict[str, Any]]:
    """Run a tutorial; return its cells with their output, and its variables. Figures are written to a folder."""
    import matplotlib
    import matplotlib.pyplot as plt

    cells, names = (
        parse_cells((SCRIPTS / f"{name}.py").read_text()),
        {"__name__": name},
    )
    pictures.mkdir(parents=True, exist_ok=True)
    plt.switch_backend("agg")
    try:
        with matplotlib.rc_context(STYLE):
            for cell in cells:
                if cell.is_code:
                    _run_cell(cell, names, pictures / name)
    finally:
        plt.close("all")
    return cells, names


def _run_cell(cell: Cell, names: dict[str, Any], pictures: Path) -> None:
    """Run a cell with the variables of the cells before it, and record its output and figures."""
    import matplotlib.pyplot as plt

    drawn = plt.get_fignums()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(cell.source, pictures.name, "exec"), names)
    cell.printed = out.getvalue()
    for number in plt.get_fignums()[len(drawn) :]:
        cell.pictures |= _save_picture(
            plt.figure(number),
            pictures.with_name(f"{pictures.name}-{number}.png"),
        )


def _save_picture(figure: Any, path: Path) -> dict[str, str]:
    """Write a figure; return its file name and title."""
    figure.savefig(path)
    if path.stat().st_size > MAX_PICTURE_BYTES:
        raise ValueError(
            f"{path.name}: expected at most {MAX_PICTURE_BYTES:,} bytes, got {path.stat().st_size:,}"
        )
    return {path.name: figure.get_suptitle() or figure.axes[0].get_title(loc="left")}


def render_page(name: str, cells: list[Cell]) -> str:
    """Return the page of a tutorial."""
    note = f"<!-- Made by `make tutorials` from tutorials/{name}.py. -->"
    return "\n\n".join([*(cell.to_markdown() for cell in cells), note]) + "\n"


def render_index(pages: dict[str, str]) -> str:
    """Return the index page: the title, the first figure and the last output of each tutorial.

    The last output is printed by code (72%); on this page it is prose (72 %).
    """
    entries = []
    for name, text in pages.items():
        title = re.findall(r"^# (.*)$", text, flags=re.MULTILINE)[0]
        picture = re.findall(r"^!\[.*\)$", text, flags=re.MULTILINE)[0]
        result = " ".join(
            re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)[-1].split()
        )
        result = re.sub(r"(?<=[0-9])%", " %", result)
        entries.append(
            f"\n## [{title}]({name}.md)\n\n{result}\n\n[{picture}]({name}.md)\n"
        )
    return INDEX + "".join(entries)


def main() -> None:
    """Run the named tutorials, by default all, and write their pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"tutorials to run: {', '.join(NAMES)} (default: all)",
    )
    for name in parser.parse_args().names or NAMES:
        cells, _ = run(name, PAGES / "images")
        (PAGES / f"{name}.md").write_text(render_page(name, cells))
        print(f"{name}: {cells[-1].printed}", end="", flush=True)
    kept = {
        name: (PAGES / f"{name}.md").read_text()
        for name in NAMES
        if (PAGES / f"{name}.md").exists()
    }
    (PAGES / "index.md").write_text(render_index(kept))


if __name__ == "__main__":
    main()
