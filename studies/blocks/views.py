"""Blocks about views: what `views="auto"` chooses, the cost of a change of views, and vectors on arrival."""

from __future__ import annotations

from blocks.records import (
    MISSING,
    NAMES,
    format_points,
    format_signed,
    load_results,
    markdown_table,
    read_record,
)
from ripplevec.views.recipes import RECIPES

GRAPHS = {
    **NAMES,
    "email_eu_core": "email",
    "ppi_3890": "PPI",
    "wikipedia_pos_4777": "Wikipedia words",
    "lastfm_asia": "LastFM",
}
SCORES = ("whole_micro", "whole_macro")


def choice() -> str:
    """Return, for every graph, the chosen recipe, its scores, and those of the best recipe and of other methods."""
    rows = {name: _choice_row(graph) for graph, name in GRAPHS.items()}
    head = ["chosen", "score", "best recipe", "best minus chosen", "ProNE", "DeepWalk", "half the dimensions", "twice"]
    return markdown_table(head, rows)


def _choice_row(graph: str) -> list[str]:
    study = load_results("views")

    def both(setting: str) -> str:
        return " / ".join(format_points(study.mean(metric, setting, graph)) for metric in SCORES)

    chosen = {list(RECIPES)[int(number)] for number in study.values("recipe", "auto", graph)}
    best = max(RECIPES, key=lambda recipe: study.mean("whole_micro", recipe, graph))
    regrets = [
        max(study.mean(metric, recipe, graph) for recipe in RECIPES) - study.mean(metric, "auto", graph)
        for metric in SCORES
    ]
    others = [both(name) for name in ("ProNE", "DeepWalk", "auto, 64 dimensions", "auto, 256 dimensions")]
    return [
        ", ".join(f"`{name}`" for name in sorted(chosen)) or MISSING,
        both("auto"),
        f"`{best}` {both(best)}",
        " / ".join(map(format_signed, regrets)),
        *others,
    ]


def change() -> str:
    """Return a table of all changes of views in the streams of `benchmarks/view_change.py`."""
    record = read_record("view_change.json")
    if record is None:
        return MISSING
    rows = {}
    for graph, result in record["graphs"].items():
        for number, one in enumerate(result["changes"]):
            label = f"{GRAPHS[graph]}, at {one['edges']:,} edges: `{one['from']}` → `{one['to']}`"
            end = [result["end"], result["start_with_all_edges"]] if number == len(result["changes"]) - 1 else []
            rows[label] = [
                format_signed(one["loss"]),
                format_signed(result["loss_of_other_anchors"]),
                *([format_points(score) for score in end] or ["", ""]),
            ]
    head = ["loss at the change", "mean loss at other anchors", "at the end", "start with all edges"]
    return markdown_table(head, rows)


def arrival_gap() -> str:
    """Return a table of scores on arrival and of an embedding computed again every 5 %, by both classifiers."""
    record = read_record("arrival_gap.json")
    if record is None:
        return MISSING
    rows = {}
    for age, trained in {"old": "of the start", "new": "trained again every 5 %"}.items():
        arrival, exact = (
            [record[f"{graph}, {way}, {age} classifier"] for graph in NAMES] for way in ("arrival", "exact")
        )
        differences = [first - second for first, second in zip(arrival, exact, strict=True)]
        rows[f"on arrival, classifier {trained}"] = map(format_points, arrival)
        rows[f"computed again, classifier {trained}"] = map(format_points, exact)
        rows[f"difference, classifier {trained}"] = map(format_signed, differences)
    return markdown_table(NAMES.values(), rows)
