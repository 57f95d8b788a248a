"""Block of docs/howto/attributes.md: graphs whose attributes are informative, irrelevant or misleading."""

from __future__ import annotations

from blocks.records import MISSING, markdown_table, read_record

KINDS = {
    "informative": "words, half of them from the topic of the community",
    "noisy": "words, 15 % of them from the topic",
    "weak_edges": "words, 30 % from the topic; three of four edges leave the community",
    "dense": "numbers around the center of the community",
    "irrelevant": "random words",
    "misleading": "words from topics of another, unrelated partition",
    "dense_misleading": "numbers around centers of another, unrelated partition",
}
COLUMNS = {
    "edges only": "edges_current",
    "weight 0.25": "current_weight_0.25",
    "**weight 0.5**": "current_weight_0.5",
    "weight 1": "current_weight_1",
    "weight 2": "current_weight_2",
    "without smoothing": "current_no_smoothing",
    "without refits": "current_no_refit",
}


def attribute_kinds() -> str:
    """Return the scores on synthetic graphs."""
    record = read_record("attribute_constants.json")
    if record is None:
        return MISSING
    rows = {
        label: [f"{record[f'{kind}_{metric}']:.1f}" for metric in COLUMNS.values()]
        for kind, label in KINDS.items()
        if f"{kind}_seeds" in record
    }
    return f"Micro-F1 in %:\n\n{markdown_table(list(COLUMNS), rows)}"
