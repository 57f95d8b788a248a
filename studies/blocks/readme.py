"""Blocks of the README: quality, stability and cost of the default configuration."""

from __future__ import annotations

from textwrap import fill

from blocks.records import MISSING, NAMES, all_measured, load_results, markdown_table, read_record, table_by_dataset

START = "start 50 %"
ROWS = {"current": "current_micro", "exact": "exact_micro", "arrival": "arrival_micro"}


def quality() -> str:
    """Return the table of scores, and the stability of the coordinates."""
    results = load_results("quality")
    scores = table_by_dataset({label: results.mean_and_deviation(metric, START) for label, metric in ROWS.items()})
    return f"{scores}\n\n{stability()}"


def stability() -> str:
    """Return how far anchors move vectors, and how a classifier ages."""
    results = load_results("quality")
    cosines = [results.mean("anchor_cosine_mean", START, name) for name in NAMES]
    gains = [results.mean("ageing_gain", START, name) for name in NAMES]
    if not all_measured(*cosines, *gains):
        return MISSING
    return fill(
        f"The mean cosine between vectors before and after an anchor is {min(cosines):.3f} or more on every data set. "
        f"A classifier that is trained once, on half of the start, scores {min(gains):.0f} to {max(gains):.0f} points "
        f"higher on the other half at the end of the stream than at the start.",
        120,
    )


def in_numbers() -> str:
    """Return a sentence with the absolute cost of an arrival and of a large model."""
    record, memory = read_record("realtime.json"), read_record("memory.json")
    if record is None or memory is None:
        return MISSING
    size = max(record["sizes"])
    figures = record[f"{size}, 1"]
    return fill(
        f"With {size:,} vertices an *arrival* (a new vertex with its edges) takes {figures['default_p50_us']:.0f} µs "
        f"(median; mean {figures['default_mean_us']:.0f} µs, occasional corrections of all vectors included) on two "
        f"cores. "
        f"{memory['vertices']:,} vertices with {memory['edges'] / 1e6:.0f} million edges need "
        f"{memory['resident_mb'] / 1_000:.1f} GB of memory, and {memory['peak_with_gradual_anchor_mb'] / 1_000:.1f} GB "
        "during a correction.",
        120,
    )


def real_time() -> str:
    """Return the latency of arrivals with default parameters, and the cost of anchors in the same run."""
    record = read_record("realtime.json")
    if record is None:
        return MISSING
    singles, batches = ([record[f"{size}, {count}"] for size in record["sizes"]] for count in (1, 1_000))
    rows = {
        "`add_vertex`: mean": [_microseconds(figures["default_mean_us"]) for figures in singles],
        "median": [_microseconds(figures["default_p50_us"]) for figures in singles],
        "99.9th percentile": [_microseconds(figures["default_p999_us"]) for figures in singles],
        "slowest": [_microseconds(figures["default_slowest_us"]) for figures in singles],
        "mean, relative to a stream without anchors": [f"{figures['ratio']:.1f} ×" for figures in singles],
        "`partial_fit` of 1,000 arrivals: mean per arrival": [
            _microseconds(figures["default_mean_us"]) for figures in batches
        ],
        "relative to a stream without anchors": [f"{figures['ratio']:.1f} ×" for figures in batches],
    }
    return markdown_table([f"{size:,} vertices" for size in record["sizes"]], rows)


def _microseconds(value: float) -> str:
    return f"{value:,.0f} µs" if value < 1_000 else f"{value / 1_000:,.1f} ms"


def speed() -> str:
    """Return the cost of an arrival, and of a million vertices."""
    arrival, memory = read_record("arrival.json"), read_record("memory.json")
    if arrival is None or memory is None:
        return MISSING
    rows = {
        "time of an arrival, relative to a bare loop that averages the same rows": (
            f"{arrival['kernel_over_bare']:.1f} ×"
        ),
        f"time of an arrival at {arrival['vertices']:,} vertices, relative to 10,000": (
            f"{arrival['large_over_small']:.1f} ×"
        ),
        "overhead of `add_vertex` in Python, beyond the kernel": f"{arrival['python_overhead_us']:.0f} µs",
        "`partial_fit`, one core, integer ids": f"{arrival['bulk_edges_per_second_int']:,.0f} edges/s",
        "`partial_fit`, one core, text ids": f"{arrival['bulk_edges_per_second_text']:,.0f} edges/s",
        f"memory of {memory['vertices']:,} vertices and {memory['edges']:,} edges": f"{memory['resident_mb']:,.0f} MB",
        "the same, peak during an anchor": f"{memory['peak_with_gradual_anchor_mb']:,.0f} MB",
    }
    return "\n".join(["| | |", "|---|---:|", *(f"| {what} | {value} |" for what, value in rows.items())])
