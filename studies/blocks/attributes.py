"""Block of docs/howto/attributes.md: scores of streams with attributes, and the cost of an arrival with them."""

from __future__ import annotations

from blocks.records import MISSING, markdown_table, read_record

ROWS = {
    "edges only": ("edges_current", "edges_arrival", None),
    "attributes only (tf-idf and SVD of all vertices)": ("attributes_only", None, None),
    "**both**": ("current", "arrival", "no_edges"),
}
BASELINES = {
    "extra_columns": "edges only, and attributes as 128 extra columns of the classifier (256 in all)",
    "graphsage": "GraphSAGE with attributes, retrained",
    "dane": "DANE with attributes, retrained",
}
DATASETS = {"blog": "Blog", "flickr": "Flickr"}


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
    baselines = read_record("attribute_baselines.json")
    for method, label in BASELINES.items():
        if baselines is not None and f"flickr_{method}" in baselines:
            scores = [f"{baselines[f'{dataset}_{method}']:.1f}" for dataset in DATASETS]
            rows[_label(label, baselines.get(f"{method}_seeds"), record["seeds"])] = [
                cell for score in scores for cell in (score, MISSING, MISSING)
            ]
    named, dense = record["cost_100_names"], record["cost_384_numbers"]
    cost = (
        f"An arrival with 100 named values takes {named:.1f} times as much processor time as the same arrival without\n"
        f"attributes, one with 384 numbers {dense:.1f} times."
    )
    return f"Micro-F1 in %, mean over {record['seeds']:.0f} seeds:\n\n{markdown_table(head, rows)}\n\n{cost}"


def _label(label: str, seeds: float | None, usual: float) -> str:
    """Return the label of a method, with its number of seeds if it is another one than usual."""
    return label if seeds in (None, usual) else f"{label} ({seeds:.0f} seeds)"


def _score(record: dict[str, float], dataset: str, metric: str | None) -> str:
    return MISSING if metric is None else f"{record[f'{dataset}_{metric}']:.1f}"
