"""How far the rules are from what they approximate, and what becomes of Lemma 2."""

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
SHARE, PLACES = 0.97, (60, 80, 100)
ROUNDING = 1e-9


def ritz() -> str:
    """The share of the leading eigenvalues that each view holds at the end."""
    found = load_results("ritz")
    views = {"first view": "view_1@100", "second view": "view_2@100"}
    settings = {"rule `ripple`": OURS, "rule `ripple`, no anchor": NO_ANCHOR}
    return table_by_dataset({
        f"{who}, {view}": found.mean_and_deviation(figure, setting)
        for who, setting in settings.items()
        for view, figure in views.items()
    })  # fmt: skip


def ritz_aim() -> str:
    """The lowest of all views, data sets and seeds, beside what was aimed at."""
    end, before, without = _lowest(OURS, 100), _lowest(OURS, 60, 70, 80, 90), _lowest(NO_ANCHOR, 100)
    if not all_measured(end, before, without):
        return MISSING
    verdict = "Met" if end >= SHARE else "Missed"
    return list_item(
        f"Of the spectrum it looks for, every view of rule `ripple` was to hold {SHARE} at the end of a stream. "
        f"{verdict}: the lowest of all views, data sets and seeds is {end:.3f} there and {before:.3f} on the way; "
        f"without anchors it is {without:.3f} at the end."
    )


def _lowest(setting: str, *places: int) -> float:
    found = load_results("ritz")
    shares = [found.values(f"lowest@{place}", setting, name) for place in places for name in NAMES]
    return min(map(min, shares)) if all(shares) else math.nan


def losses() -> str:
    """The losses of rule `paper` along the stream, those of the optimum from its state, and the least there is."""
    rows = {
        "homophily, rule `paper`": "homophily",
        "homophily, optimum": "optimum_homophily",
        "homophily, least there is": "least_homophily",
        "smoothness, rule `paper`": "smoothness",
        "smoothness, optimum": "optimum_smoothness",
    }
    return table_by_dataset({label: _along(figure) for label, figure in rows.items()})


def _along(figure: str) -> CellFormatter:
    return load_results("lemma").means([f"{figure}@{place}" for place in PLACES], PAPER, short)


def short(value: float) -> str:
    """Two digits that count, however small the number is, unless it is rounding."""
    if not all_measured(value):
        return MISSING
    if value >= 100 or value < ROUNDING:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value >= 1e-4 else f"{value:.0e}".replace("e-0", "e-")


def relative() -> str:
    """Relative deviations of the rules at the end, and of what stands in for them."""
    found = load_results("lemma")

    def row(figure: str, setting: str) -> CellFormatter:
        return found.means([f"{figure}@100"], setting, short)

    return table_by_dataset({
        "rule `paper`": row("relative", PAPER),
        "rule `paper`, nobody moves": row("still_relative", PAPER),
        "rule `ripple`": row("relative", OURS),
        "rule `ripple`, no anchor": row("relative", NO_ANCHOR),
        "no vectors": row("zero_relative", PAPER),
        "random vectors": row("random_relative", PAPER),
    })  # fmt: skip


def degrees() -> str:
    """Where the squared length lies: mean degree by it over the mean degree."""
    found = load_results("lemma")
    settings = {"rule `paper`": PAPER, "rule `ripple`": OURS, "rule `ripple`, no anchor": NO_ANCHOR}
    rows = {label: found.means(["degree@100"], setting, short) for label, setting in settings.items()}
    return table_by_dataset(rows | {"optimum from rule `paper`": found.means(["optimum_degree@100"], PAPER, short)})


def deviations() -> str:
    """Deviations beside α for rule `paper`, k = 32 / k = 90."""
    rows: dict[str, tuple[str, Callable[[float], str]]] = {
        "largest deviation": ("deviation_max@100", short),
        "deviation of the newcomer": ("newcomer_deviation@100", short),
        "α, median of the arrivals": ("alpha_median@100", short),
        "α, smallest": ("alpha_least@100", short),
        "every vertex below α: rule `paper`": ("all_below@100", percent),
        "every vertex below α: no vectors": ("zero_all_below@100", percent),
        "every vertex below α: random vectors": ("random_all_below@100", percent),
        "a vertex below α: rule `paper`": ("below@100", percent),
        "a vertex below α: no vectors": ("zero_below@100", percent),
        "a vertex below α: random vectors": ("random_below@100", percent),
    }
    return table_by_dataset({label: _both(*row) for label, row in rows.items()})


def lemma_2() -> str:
    """Whether it holds along the streams: how many arrivals have a vertex that is not below their α."""
    found = load_results("lemma")
    above = {k: [100 - found.mean("all_below@100", setting, name) for name in NAMES] for k, setting in SIZES.items()}
    if not all_measured(*(value for values in above.values() for value in values)):
        return MISSING
    told = "; ".join(
        f"k = {k}: on {sum(value > 0 for value in values)} of {len(values)} data sets, "
        f"{short(min(values))} to {short(max(values))} % of the arrivals"
        for k, values in above.items()
    )
    return list_item(f"Arrivals at which some vertex is *not* below their α, in the last fifth of the stream: {told}.")


def premises() -> str:
    """What the proof of Lemma 2 takes for granted, k = 32 / k = 90."""
    rows: dict[str, tuple[str, Callable[[float], str]]] = {
        "squared length of a row (the proof: 1), median": ("length_median@100", short),
        "squared length of a row, largest": ("length_max@100", short),
        "sets of one vertex (the printed smoothness is right)": ("sets_of_one@100", percent),
        "larger sets: printed / true smoothness, median": ("printed_over_true@100", short),
        "Pythagoras: left / right side, median": ("pythagoras_median@100", short),
        "Pythagoras: left side larger, of the edges": ("pythagoras_above_one@100", percent),
    }
    return table_by_dataset({label: _both(*row) for label, row in rows.items()})


def _both(figure: str, show: Callable[[float], str]) -> CellFormatter:
    """With three seeds at k = 32, with one at k = 90."""
    found = load_results("lemma")
    return lambda name: " / ".join(show(found.mean(figure, setting, name)) for setting in SIZES.values())


def percent(value: float) -> str:
    """Per cent; what is not all does not look like all."""
    if not all_measured(value):
        return MISSING
    return "> 99.9 %" if 99.95 <= value < 100 else f"{value:.1f} %"
