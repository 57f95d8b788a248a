"""What single parameters of a model bring, for who has to choose them."""

from __future__ import annotations

from blocks.records import format_points, load_results, table_by_dataset

SWEEPS = {
    "dimension k": ("`dim` {}", (32, 64, 90, 128, 200)),
    "growth g": ("`anchor_growth` {}", (0, 0.025, 0.05, 0.1, 0.2)),
    "depth D": ("`depth` {}", (1, 2, 3)),
}


def sweep(parameter: str) -> str:
    """Micro-F1 at the end of the stream for each value of a parameter, the others as they are by default."""
    found, (label, values) = load_results("sensitivity"), SWEEPS[parameter]
    return table_by_dataset(
        {
            label.format(value): found.means(["current_micro"], f"{parameter}: {value}", format_points)
            for value in values
        }
    )
