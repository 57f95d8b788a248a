"""The figure of cluster.py: measurements on one machine, and predictions for many machines.

    python benchmarks/_cluster_figure.py

redraws it from the records; `cluster.py --figure` draws it after measuring.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from _cluster_model import (
    BATCHES,
    EDGES_PER_ARRIVAL,
    MACHINES,
    CostModel,
    calibrate,
    can_calibrate,
    predict,
    select_by_shards,
)

from ripplevec.lab.experiments.plots.style import INK, figure_style, numbered_style, render_svg

RESULTS = Path(__file__).resolve().parent.parent / "results"
BATCH_ARRIVALS = (1, 200, 20_000)  # sizes of the batches measured by cluster.py


def save_figure(record: dict[str, Any], path: Path, results: Path = RESULTS) -> None:
    """Draw throughput on shards relative to no shards (left) and, if messages were counted, predictions (right)."""
    with figure_style() as create_figure:
        figure = create_figure(10, 4.2)
        _draw_measured(figure.add_subplot(1, 2, 1), record)
        messages = _read_record(results / "messages.json")
        if can_calibrate(record, messages):
            roofline = _read_record(results / "roofline.json") or {}
            model = calibrate(record, messages, roofline.get("float32_two_over_one", 1.0))
            _draw_predicted(figure.add_subplot(1, 2, 2), model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_svg(figure, path.stem), encoding="utf-8")


def _draw_measured(axes: Any, record: dict[str, Any]) -> None:
    for index, size in enumerate(BATCH_ARRIVALS):
        shares = select_by_shards(record, f"of_single_{size}")
        label = f"{size * EDGES_PER_ARRIVAL:,} edges a batch"
        axes.plot(list(shares), list(shares.values()), label=label, **numbered_style(index))
    axes.axhline(1, color=INK, linestyle=":", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="shards", ylabel="throughput over no shards")
    _finish_axes(axes, list(shares), f"Measured: one machine, {record['cores']} cores")


def _draw_predicted(axes: Any, model: CostModel) -> None:
    for index, batch in enumerate(BATCHES):
        speeds = [predict(model, machines, batch).edges_per_second for machines in MACHINES]
        axes.plot(MACHINES, speeds, label=f"{batch:,} edges a batch", **numbered_style(index))
    ideal = [machines * model.threads * EDGES_PER_ARRIVAL / model.work for machines in MACHINES]
    axes.plot(MACHINES, ideal, color=INK, linestyle=":", linewidth=1, label="ideal: nothing but work")
    axes.set(xscale="log", yscale="log", xlabel="machines", ylabel="edges/s")
    _finish_axes(axes, list(MACHINES), "Predicted: 10⁹ vertices, 10¹⁰ edges")


def _finish_axes(axes: Any, counts: list[int], title: str) -> None:
    axes.set_xticks(counts, labels=map(str, counts))
    axes.set_xticks([], minor=True)
    axes.set_title(title)
    axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.15))


def _read_record(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


if __name__ == "__main__":
    save_figure(_read_record(RESULTS / "cluster.json"), RESULTS / "figures/scaling.svg")
