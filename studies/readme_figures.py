"""Writes the figures of the README from the committed records, so that no number in it is typed by hand.

python studies/readme_figures.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

from ripplet.experiments.record import Record
from ripplet.experiments.report import shown
from ripplet.experiments.spec import load

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "wiki": "Wiki", "blog": "Blog", "flickr": "Flickr"}
ROWS = {"current_micro": "current", "exact_micro": "exact", "arrival_micro": "arrival"}


def quality() -> str:
    """The table of scores at a start of 50 %, and what it says of stability."""
    study, record = load(ROOT / "studies/quality.yaml"), Record.read(ROOT / "results/quality.json")

    def values(dataset: str, figure: str) -> list[float]:
        found = (
            record.figures(cell) for setting, of, cell in study.cells() if (setting, of) == ("start 50 %", dataset)
        )
        return [figures[figure] for figures in found if figures]

    lines = ["| | " + " | ".join(NAMES.values()) + " |", "|---|" + "---:|" * len(NAMES)]
    for figure, label in ROWS.items():
        lines.append(f"| {label} | " + " | ".join(shown(values(dataset, figure)) for dataset in NAMES) + " |")
    cosine = min(fmean(values(dataset, "anchor_cosine_mean")) for dataset in NAMES)
    gain = [fmean(values(dataset, "ageing_gain")) for dataset in NAMES]
    steady = (
        f"An anchor leaves a vector's cosine with its former self at {cosine:.3f} or more on average. "
        f"A classifier trained once on half of the start gains {min(gain):.0f} to {max(gain):.0f} points on the other "
        f"half by the end of the stream, without being touched."
    )
    return "\n".join(lines) + "\n\n" + steady


def speed() -> str:
    """What an arrival and a million vertices cost."""
    arrival, memory = _read("arrival.json"), _read("memory.json")
    rows = {
        "an arrival, over a bare loop that averages the same rows": f"{arrival['kernel_over_bare']:.1f} ×",
        f"an arrival at {arrival['vertices']:,} vertices, over one at 10,000": f"{arrival['large_over_small']:.1f} ×",
        "`add_vertex` from Python, beyond the kernel": f"{arrival['python_overhead_us']:.0f} µs",
        "`partial_fit`, one core, integer ids": f"{arrival['bulk_edges_per_second_int']:,.0f} edges/s",
        "`partial_fit`, one core, text ids": f"{arrival['bulk_edges_per_second_text']:,.0f} edges/s",
        f"{memory['vertices']:,} vertices, {memory['edges']:,} edges": f"{memory['resident_mb']:,.0f} MB",
        "the same at its peak, with an anchor": f"{memory['peak_with_anchor_mb']:,.0f} MB",
    }
    return "\n".join(["| | |", "|---|---:|", *(f"| {what} | {value} |" for what, value in rows.items())])


def rewritten(readme: str) -> str:
    """The README with the figures of the records."""
    for name, text in {"quality": quality(), "speed": speed()}.items():
        block = f"<!-- {name} -->\n\n{text}\n\n<!-- /{name} -->"
        readme = re.sub(rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _, block=block: block, readme, flags=re.DOTALL)
    return readme


def _read(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "results" / name).read_text())


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(rewritten(path.read_text()))
