"""Run the tutorials and keep them as pages, with what they print and draw.

`make tutorials` runs this; the pages are docs/tutorials.

A tutorial is a script in cells: `# %% [markdown]` begins one of text (in
comments), `# %%` one of code, `# %% drawing` one of code that is folded away
under its picture. Editors open such a script as a notebook; it is read, tested
and compared like any other code.
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
LARGEST_PICTURE = 150_000  # bytes
INK, FAINT = "#1f2430", "#8a91a0"
LOOKS = {
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
FOLDED = """<details markdown="1">
<summary>How it is drawn</summary>

{}

</details>"""
INDEX = """# Tutorials

Four stories of ten minutes each. Every page is a script of `tutorials/` with what it printed and drew; a test runs the
script and compares. `python tutorials/build.py shop` runs one of them and writes its page again; editors that know
cells (`# %%`) open a script as a notebook. They need `pip install 'ripplevec[tutorials]'`.

<!-- Made by `make tutorials`. -->
"""


@dataclass(slots=True)
class Cell:
    """A piece of a tutorial, text or code, and what came of the code."""

    kind: str  # "[markdown]", "drawing" or ""
    source: str
    printed: str = ""
    pictures: dict[str, str] = field(default_factory=dict)  # file → what it shows

    @property
    def code(self) -> bool:
        """Whether there is something to run."""
        return self.kind != "[markdown]"

    def shown(self) -> str:
        """The cell as a piece of a page."""
        if not self.code:
            return self.source
        code = f"```python\n{self.source}\n```"
        pieces = [f"```text\n{self.printed}```"] if self.printed else []
        for file, title in self.pictures.items():
            pieces.append(f"![{title}](images/{file})")
        if self.kind == "drawing":
            return "\n\n".join([*pieces, FOLDED.format(code)])
        return "\n\n".join([code, *pieces])


def cells_of(script: str) -> list[Cell]:
    """The cells of a script; what stands before the first is left out."""
    pieces = re.split(r"^# %%(.*)\n", script, flags=re.MULTILINE)[1:]
    cells = []
    for kind, source in zip(pieces[::2], pieces[1::2], strict=True):
        cell = Cell(kind.strip(), source.strip())
        if not cell.code:
            cell.source = re.sub(r"^# ?", "", cell.source, flags=re.MULTILINE)
        cells.append(cell)
    return cells


def run(name: str, pictures: Path) -> tuple[list[Cell], dict[str, Any]]:
    """Run a tutorial, its pictures into a folder: its cells with what came of them, and the names it defined."""
    import matplotlib
    import matplotlib.pyplot as plt

    cells, names = (
        cells_of((SCRIPTS / f"{name}.py").read_text()),
        {"__name__": name},
    )
    pictures.mkdir(parents=True, exist_ok=True)
    plt.switch_backend("agg")
    try:
        with matplotlib.rc_context(LOOKS):
            for cell in cells:
                if cell.code:
                    _run(cell, names, pictures / name)
    finally:
        plt.close("all")
    return cells, names


def _run(cell: Cell, names: dict[str, Any], pictures: Path) -> None:
    """Run a cell with the names of those before it, and keep what it prints and draws."""
    import matplotlib.pyplot as plt

    drawn = plt.get_fignums()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(cell.source, pictures.name, "exec"), names)
    cell.printed = out.getvalue()
    for number in plt.get_fignums()[len(drawn) :]:
        cell.pictures |= _keep(
            plt.figure(number),
            pictures.with_name(f"{pictures.name}-{number}.png"),
        )


def _keep(figure: Any, path: Path) -> dict[str, str]:
    """Write a picture; its file, and its title to describe it by."""
    figure.savefig(path)
    if path.stat().st_size > LARGEST_PICTURE:
        raise ValueError(
            f"{path.name}: expected at most {LARGEST_PICTURE:,} bytes, got {path.stat().st_size:,}"
        )
    return {path.name: figure.get_suptitle() or figure.axes[0].get_title(loc="left")}


def page(name: str, cells: list[Cell]) -> str:
    """A tutorial as a page."""
    note = f"<!-- Made by `make tutorials` from tutorials/{name}.py. -->"
    return "\n\n".join([*(cell.shown() for cell in cells), note]) + "\n"


def index(pages: dict[str, str]) -> str:
    """A page that leads to the tutorials: of each its title, its first picture, and the last thing it printed."""
    entries = []
    for name, text in pages.items():
        title = re.findall(r"^# (.*)$", text, flags=re.MULTILINE)[0]
        picture = re.findall(r"^!\[.*\)$", text, flags=re.MULTILINE)[0]
        result = " ".join(
            re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)[-1].split()
        )
        entries.append(
            f"\n## [{title}]({name}.md)\n\n{result}\n\n[{picture}]({name}.md)\n"
        )
    return INDEX + "".join(entries)


def main() -> None:
    """Run the tutorials that are named, or all, and write their pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which: {', '.join(NAMES)}; all if none is named",
    )
    for name in parser.parse_args().names or NAMES:
        cells, _ = run(name, PAGES / "images")
        (PAGES / f"{name}.md").write_text(page(name, cells))
        print(f"{name}: {cells[-1].printed}", end="", flush=True)
    kept = {
        name: (PAGES / f"{name}.md").read_text()
        for name in NAMES
        if (PAGES / f"{name}.md").exists()
    }
    (PAGES / "index.md").write_text(index(kept))


if __name__ == "__main__":
    main()
