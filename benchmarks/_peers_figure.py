"""The picture of peers.py: how long an update takes by how many arrived, and how good the vectors are then."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median
from typing import Any

from ripplevec.lab.experiments.plots.style import assign_styles, figure_style, render_svg


def save_figure(record: dict[str, Any], path: Path) -> None:
    """Seconds over arrivals, a panel per graph, a line per system."""
    looks = assign_styles(next(iter(record["graphs"].values()))["systems"])
    with figure_style() as create_figure:
        figure = create_figure(11, 5.4)
        for place, (name, graph) in enumerate(record["graphs"].items(), 1):
            axes = figure.add_subplot(1, len(record["graphs"]), place)
            for system, row in graph["systems"].items():
                if "failed" not in row:
                    last = 100 * fmean(seed[-1] for seed in row["micro"])
                    steps = [median(seeds) for seeds in zip(*row["seconds"], strict=True)]
                    axes.plot(graph["arrivals"], steps, label=f"{system} ({last:.1f})", **looks[system].line())
            axes.set(xscale="log", yscale="log", xlabel="arrivals", ylabel="seconds until up to date")
            axes.set_title(f"{name}, {graph['vertices']:,} vertices (micro-F1 in the end, %)")
            axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_svg(figure, path.stem), encoding="utf-8")
