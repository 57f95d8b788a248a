"""Blocks about attributes: scores of streams, the cost of an arrival, the choice of the weight, and constants."""

from __future__ import annotations

from blocks.records import MISSING, format_number, markdown_table, read_record

ROWS = {
    "edges only": ("edges_current", "edges_arrival", None),
    "attributes only (tf-idf and SVD of all vertices)": ("attributes_only", None, None),
    "**both**": ("current", "arrival", "no_edges"),
}
BASELINES = {
    "extra_columns": "edges only, and attributes as 128 extra columns of the classifier (256 in all)",
    "graphsage": "GraphSAGE with attributes, retrained",
    "graphsage_tuned": "GraphSAGE with attributes, retrained, tuned",
    "dane": "DANE with attributes, retrained",
    "online_dane_64": "DANE with attributes, updates every 64",
    "online_dane_1024": "DANE with attributes, updates every 1,024",
    "online_dane_never": "DANE with attributes, never updated",
}
BASELINE_METRICS = (
    "",
    "_arrival",
    "_no_edges",
)  # in the order of the columns; retrained methods have the first
DATASETS = {"blog": "Blog", "flickr": "Flickr"}
GRAPHS = {
    "informative": "informative",
    "noisy": "noisy",
    "irrelevant": "irrelevant",
    "misleading": "misleading",
    "weak_edges": "informative, weak edges",
    "dense": "informative numbers",
    "dense_misleading": "misleading numbers",
    "dense_irrelevant": "irrelevant numbers",
    "few_names": "informative, 100 names",
    "many_names": "informative, 50,000 names",
    "few_neighbors": "informative, 4 neighbors",
    "strong_edges_misleading": "misleading, strong edges",
    "few_neighbors_misleading": "misleading, 4 neighbors",
    "fifth_covered": "informative, of a fifth of the vertices",
    "blog": "Blog",
    "flickr": "Flickr",
    "blog_shuffled": "Blog, shuffled",
    "flickr_shuffled": "Flickr, shuffled",
}


def attributes() -> str:
    """Return the scores on both data sets, and the relative costs."""
    record = read_record("attributes.json")
    if record is None:
        return MISSING
    protocols = ("at the end", "on arrival", "on arrival, without edges")
    head = [f"{name}, {protocol}" for name in DATASETS.values() for protocol in protocols]
    rows = {
        label: [_score(record, dataset, metric) for dataset in DATASETS for metric in metrics]
        for label, metrics in ROWS.items()
    }
    tuned = read_record("attribute_graphsage.json") or {}
    baselines = (read_record("attribute_baselines.json") or {}) | tuned
    seeds = record.get("flickr_seeds", record.get("seeds", 0))
    for method, label in BASELINES.items():
        if f"flickr_{method}" in baselines:
            keys = [f"{dataset}_{method}{metric}" for dataset in DATASETS for metric in BASELINE_METRICS]
            rows[_label(label, baselines.get(f"{method}_seeds"), seeds)] = [
                f"{baselines[key]:.1f}" if key in baselines else MISSING for key in keys
            ]
    return f"Micro-F1 in %, mean over {seeds:.0f} seeds:\n\n{markdown_table(head, rows)}\n\n{_describe_cost(record)}"


def _describe_cost(record: dict[str, float]) -> str:
    """Return sentences about the relative costs of an arrival with attributes."""
    named, dense = record["cost_100_names"], record["cost_384_numbers"]
    cost = (
        f"An arrival with 100 named values takes {named:.1f} times as much processor time as the same arrival without\n"
        f"attributes, one with 384 numbers {dense:.1f} times."
    )
    if "growth_10x_names" not in record:
        return cost
    columns = [record[f"cost_{kind}_same_columns"] for kind in ("100_names", "384_numbers")]
    return (
        f"{cost} A model with attributes has half as many columns for\n"
        f"edges. Relative to a model without attributes and with as few of these columns, it is {columns[0]:.1f} and\n"
        f"{columns[1]:.1f} times. In a graph with 4 times as many vertices, named values take "
        f"{record['growth_4x_vertices']:.1f} times as long,\n"
        f"with 10 times as many names {record['growth_10x_names']:.1f} times."
    )


def cost() -> str:
    """Return the processor microseconds of an arrival with attributes."""
    record = read_record("attribute_cost.json")
    if record is None:
        return MISSING
    rows = {"ripplevec": "rule `ripple`"} | {name: label for name, label in BASELINES.items() if "online" in name}
    return markdown_table(
        DATASETS.values(),
        {label: [format_number(record[f"{name}, {method}"]) for name in DATASETS] for method, label in rows.items()},
    )


def weight() -> str:
    """Return the scores of every graph with the chosen weight and with others."""
    record = read_record("attribute_weight.json")
    if record is None:
        return MISSING
    metrics = ("edges", "weight_0.25", "weight_0.5", "weight_1", "weight_2", "auto")
    head = ["seeds", "edges only", "0.25", "0.5", "1", "2", "chosen", "mean weight", "smallest that suffices"]
    rows = {}
    for graph, label in GRAPHS.items():
        if f"{graph}_auto" in record:
            scores = [f"{record[f'{graph}_{metric}']:.1f}" for metric in metrics]
            chosen = f"{record[f'{graph}_chosen']:.2g}", f"{record[f'{graph}_smallest']:.1f}"
            rows[label] = [f"{record[f'{graph}_seeds']:.0f}", *scores, *chosen]
    return markdown_table(head, rows)


def constants() -> str:
    """Return the scores of streams without smoothing and without refits."""
    record = read_record("attribute_constants.json")
    if record is None:
        return MISSING
    variants = ("", "_no_smoothing", "_no_refit")
    names = ("", ", no smoothing", ", no refit")
    head = ["edges only", *(f"{kind}{name}" for kind in ("at the end", "without edges") for name in names)]
    rows = {}
    for graph, label in GRAPHS.items():
        if f"{graph}_current" in record:
            metrics = ["edges_current", *(f"{kind}{v}" for kind in ("current", "no_edges") for v in variants)]
            rows[label] = [f"{record[f'{graph}_{metric}']:.1f}" for metric in metrics]
    return markdown_table(head, rows)


def _label(label: str, seeds: float | None, usual: float) -> str:
    """Return the label of a method, with its number of seeds if it is another one than usual."""
    return label if seeds in (None, usual) else f"{label} ({seeds:.0f} seeds)"


def _score(record: dict[str, float], dataset: str, metric: str | None) -> str:
    return MISSING if metric is None else f"{record[f'{dataset}_{metric}']:.1f}"
