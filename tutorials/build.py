"""Run the tutorials and write them as pages, with their output and figures.

`make tutorials` runs this script; it writes the pages to docs/tutorials.

A tutorial is a script divided into cells. `# %% [markdown]` begins a cell of
text (in comments), `# %%` a cell of code, and `# %% drawing` a cell of code
that is collapsed below its figure; a figure is saved as an animation if the cell
assigns one to `animation`. Editors can open such a script as a
notebook, and it can be read, tested and compared like any other code.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import io
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
PAGES = SCRIPTS.parent / "docs" / "tutorials"
NOTEBOOKS = ("wikipedia",)  # tutorials that are also written as notebooks
NAMES = ("wikipedia", "citations", "lookalikes", "shop", "online")
MAX_PICTURE_BYTES = 150_000
MAX_ANIMATION_BYTES = 600_000
FRAMES_PER_SECOND = 3
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

Five examples of about ten minutes each. In their results, an *arrival* is a new vertex with its edges.

Every page is generated from a script in `tutorials/`, with its output and figures; a test runs the scripts and compares
their output with the pages. `python tutorials/build.py shop` runs one script and writes its page again. Editors that
support cells (`# %%`) can open a script as a notebook. Install the requirements with `pip install '.[tutorials]'` in a
checkout of the repository.

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
    plt.close("all")  # figures are numbered from 1
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
    animation = names.pop("animation", None)
    for number in plt.get_fignums()[len(drawn) :]:
        path = pictures.with_name(f"{pictures.name}-{number}.png")
        cell.pictures |= _save_picture(plt.figure(number), path, animation)


def _save_picture(figure: Any, path: Path, animation: Any) -> dict[str, str]:
    """Write a figure, or the animation of it; return its file name and title."""
    title, limit = (
        figure.get_suptitle() or figure.axes[0].get_title(loc="left"),
        MAX_PICTURE_BYTES,
    )
    if animation is None:
        figure.savefig(path)
    else:
        path, limit = path.with_suffix(".gif"), MAX_ANIMATION_BYTES
        animation.save(path, writer="pillow", fps=FRAMES_PER_SECOND, dpi=90)
    if path.stat().st_size > limit:
        raise ValueError(
            f"{path.name}: expected at most {limit:,} bytes, got {path.stat().st_size:,}"
        )
    return {path.name: title}


def render_notebook(cells: list[Cell], pictures: Path) -> str:
    """Return a tutorial as a notebook that has been run, with its output and figures."""
    notebook = {
        "cells": [
            _render_notebook_cell(cell, number, pictures)
            for number, cell in enumerate(cells)
        ],
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _render_notebook_cell(cell: Cell, number: int, pictures: Path) -> dict[str, Any]:
    common = {
        "id": f"cell-{number}",
        "metadata": {},
        "source": cell.source.splitlines(keepends=True),
    }
    if not cell.is_code:
        return {"cell_type": "markdown", **common}
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        text = cell.printed.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    for file, title in cell.pictures.items():
        content = base64.b64encode((pictures / file).read_bytes()).decode()
        data = {f"image/{file.rpartition('.')[2]}": content, "text/plain": [title]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    return {
        "cell_type": "code",
        "execution_count": None,
        "outputs": outputs,
        **common,
    }


def render_page(name: str, cells: list[Cell]) -> str:
    """Return the page of a tutorial."""
    note = f"<!-- Made by `make tutorials` from tutorials/{name}.py. -->"
    return "\n\n".join([*(cell.to_markdown() for cell in cells), note]) + "\n"


def render_index(pages: dict[str, str]) -> str:
    """Return the index page: the title, the first figure and the result of each tutorial."""
    entries = []
    for name, text in pages.items():
        title = re.findall(r"^# (.*)$", text, flags=re.MULTILINE)[0]
        picture = re.findall(r"^!\[.*\)$", text, flags=re.MULTILINE)[0]
        result = find_result(text)
        entries.append(
            f"\n## [{title}]({name}.md)\n\n{result}\n\n[{picture}]({name}.md)\n"
        )
    return INDEX + "".join(entries)


def find_result(page: str) -> str:
    """Return the last output of a page as prose: code prints 72%, prose has 72 %."""
    printed = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)[-1]
    return re.sub(r"(?<=[0-9])%", " %", " ".join(printed.split()))


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
        if name in NOTEBOOKS:
            notebook = render_notebook(cells, PAGES / "images")
            (PAGES / f"{name}.ipynb").write_text(notebook)
        print(f"{name}: {cells[-1].printed}", end="", flush=True)
    kept = {
        name: (PAGES / f"{name}.md").read_text()
        for name in NAMES
        if (PAGES / f"{name}.md").exists()
    }
    (PAGES / "index.md").write_text(render_index(kept))


if __name__ == "__main__":
    main()
