"""Blocks about the parameters of `Embedder`: their descriptions, and sweeps over single ones."""

from __future__ import annotations

from typing import Any

from blocks.records import format_points, load_results, table_by_dataset
from ripplevec.parameter_docs import describe_parameters

SWEEPS = {
    "dimension k": ("`dim` {}", (32, 64, 90, 128, 200)),
    "growth g": ("`anchor_growth` {}", (0, 0.025, 0.05, 0.1, 0.2)),
    "depth D": ("`depth` {}", (1, 2, 3)),
}


def sweep(parameter: str) -> str:
    """Return the micro-F1 at the end of the stream for each value of a parameter, with the others at their defaults."""
    results, (label, values) = load_results("sensitivity"), SWEEPS[parameter]
    return table_by_dataset(
        {
            label.format(value): results.means(["current_micro"], f"{parameter}: {value}", format_points)
            for value in values
        }
    )


def describe() -> str:
    """Return a table of all parameters, from the docstring of `Embedder`."""
    rows = (
        f"| `{doc.name}` | `{_escape(doc.type)}` | `{_literal(doc.default)}` | {_escape(doc.description)} |"
        for doc in describe_parameters().values()
    )
    return "\n".join(["| name | values | default | description |", "|---|---|---|---|", *rows])


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _escape(text: str) -> str:
    return text.replace("|", r"\|")
