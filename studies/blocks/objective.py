"""Tables of docs/objective.md: the spectrum that views hold, the losses, and the measurements of Lemma 2."""

from __future__ import annotations

import math
from collections.abc import Callable

from blocks.records import (
    MISSING,
    NAMES,
    OURS,
    PAPER,
    CellFormatter,
    all_measured,
    list_item,
    load_results,
    table_by_dataset,
)

NO_ANCHOR, PAPER_90 = "ripplevec, no anchor", f"{PAPER}, k = 90"
SIZES = {32: PAPER, 90: PAPER_90}
TARGET_SHARE = 0.97  # of the spectrum, for every view at the end of a stream
POSITIONS = (60, 80, 100)  # % of the vertices that have arrived
ROUNDING = 1e-9  # smaller values are rounding errors


def ritz() -> str:
    """Return the share of the leading eigenvalues that each view holds at the end."""
    results = load_results("ritz")
    views = {"first view": "view_1@100", "second view": "view_2@100"}
    settings = {"rule `ripple`": OURS, "rule `ripple`, no anchor": NO_ANCHOR}
    return table_by_dataset({
        f"{rule}, {view}": results.mean_and_deviation(metric, setting)
        for rule, setting in settings.items()
        for view, metric in views.items()
    })  # fmt: skip


def ritz_goal() -> str:
    """Return a sentence about the lowest share over all views, data sets and seeds, compared with the target."""
    end, before, without = _lowest_share(OURS, 100), _lowest_share(OURS, 60, 70, 80, 90), _lowest_share(NO_ANCHOR, 100)
    if not all_measured(end, before, without):
        return MISSING
    verdict = "met" if end >= TARGET_SHARE else "missed"
    return list_item(
        f"The target was that every view of rule `ripple` holds at least {TARGET_SHARE} of its spectrum at the end of "
        f"a stream. It is {verdict}: the lowest share over all views, data sets and seeds is {end:.3f} at the end and "
        f"{before:.3f} before. Without anchors it is {without:.3f} at the end."
    )


def _lowest_share(setting: str, *positions: int) -> float:
    results = load_results("ritz")
    shares = [results.values(f"lowest@{position}", setting, name) for position in positions for name in NAMES]
    return min(map(min, shares)) if all(shares) else math.nan


def losses() -> str:
    """Return the losses of rule `paper` along the stream, those of the optimum from its state, and the minimum."""
    rows = {
        "homophily, rule `paper`": "homophily",
        "homophily, optimum": "optimum_homophily",
        "homophily, smallest possible": "least_homophily",
        "smoothness, rule `paper`": "smoothness",
        "smoothness, optimum": "optimum_smoothness",
    }
    return table_by_dataset({label: _along_stream(metric) for label, metric in rows.items()})


def _along_stream(metric: str) -> CellFormatter:
    return load_results("lemma").means([f"{metric}@{position}" for position in POSITIONS], PAPER, two_digits)


def two_digits(value: float) -> str:
    """Format a number with two significant digits; rounding errors become 0."""
    if not all_measured(value):
        return MISSING
    if value >= 100 or value < ROUNDING:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}".replace("e-0", "e-")


def relative() -> str:
    """Return the relative deviations of the rules and of the controls at the end."""
    results = load_results("lemma")

    def row(metric: str, setting: str) -> CellFormatter:
        return results.means([f"{metric}@100"], setting, two_digits)

    return table_by_dataset({
        "rule `paper`": row("relative", PAPER),
        "rule `paper`, no vertex moves": row("still_relative", PAPER),
        "rule `ripple`": row("relative", OURS),
        "rule `ripple`, no anchor": row("relative", NO_ANCHOR),
        "no vectors": row("zero_relative", PAPER),
        "random vectors": row("random_relative", PAPER),
    })  # fmt: skip


def degrees() -> str:
    """Return the mean degree weighted by squared length, divided by the mean degree."""
    results = load_results("lemma")
    settings = {"rule `paper`": PAPER, "rule `ripple`": OURS, "rule `ripple`, no anchor": NO_ANCHOR}
    rows = {label: results.means(["degree@100"], setting, two_digits) for label, setting in settings.items()}
    return table_by_dataset(
        rows | {"optimum from rule `paper`": results.means(["optimum_degree@100"], PAPER, two_digits)}
    )


def deviations() -> str:
    """Return deviations and α for rule `paper`, k = 32 / k = 90."""
    rows: dict[str, tuple[str, Callable[[float], str]]] = {
        "largest deviation": ("deviation_max@100", two_digits),
        "deviation of the newcomer": ("newcomer_deviation@100", two_digits),
        "α, median of the arrivals": ("alpha_median@100", two_digits),
        "α, smallest": ("alpha_least@100", two_digits),
        "every vertex below α: rule `paper`": ("all_below@100", format_percent),
        "every vertex below α: no vectors": ("zero_all_below@100", format_percent),
        "every vertex below α: random vectors": ("random_all_below@100", format_percent),
        "a vertex below α: rule `paper`": ("below@100", format_percent),
        "a vertex below α: no vectors": ("zero_below@100", format_percent),
        "a vertex below α: random vectors": ("random_below@100", format_percent),
    }
    return table_by_dataset({label: _both_dimensions(*row) for label, row in rows.items()})


def lemma_2() -> str:
    """Return a sentence about the share of arrivals that violate Lemma 2."""
    results = load_results("lemma")
    above = {k: [100 - results.mean("all_below@100", setting, name) for name in NAMES] for k, setting in SIZES.items()}
    if not all_measured(*(value for values in above.values() for value in values)):
        return MISSING
    by_size = "; ".join(
        f"for k = {k} on {sum(value > 0 for value in values)} of {len(values)} data sets, at "
        f"{two_digits(min(values))} to {two_digits(max(values))} % of the arrivals"
        for k, values in above.items()
    )
    return list_item(
        f"In the last fifth of the stream, there are arrivals at which some vertex is *not* below α: {by_size}."
    )


def premises() -> str:
    """Return measurements of the premises of the proof of Lemma 2, k = 32 / k = 90."""
    rows: dict[str, tuple[str, Callable[[float], str]]] = {
        "squared length of a row (1 in the proof), median": ("length_median@100", two_digits),
        "squared length of a row, largest": ("length_max@100", two_digits),
        "sets of one vertex (the printed smoothness is correct)": ("sets_of_one@100", format_percent),
        "larger sets: printed over true smoothness, median": ("printed_over_true@100", two_digits),
        "Pythagoras: left over right side, median": ("pythagoras_median@100", two_digits),
        "Pythagoras: edges with a larger left side": ("pythagoras_above_one@100", format_percent),
    }
    return table_by_dataset({label: _both_dimensions(*row) for label, row in rows.items()})


def _both_dimensions(metric: str, show: Callable[[float], str]) -> CellFormatter:
    """Return a row of values for k = 32 (three seeds) / k = 90 (one seed)."""
    results = load_results("lemma")
    return lambda name: " / ".join(show(results.mean(metric, setting, name)) for setting in SIZES.values())


def format_percent(value: float) -> str:
    """Format a percentage; values just below 100 are not rounded to 100."""
    if not all_measured(value):
        return MISSING
    return "> 99.9 %" if 99.95 <= value < 100 else f"{value:.1f} %"
