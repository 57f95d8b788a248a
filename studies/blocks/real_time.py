"""Block of the goals for anchors that no arrival waits for, and for the start of a large graph."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from blocks.records import MISSING, markdown_table, read_record, space_percent_signs

RECORDS = ("realtime", "service", "start", "roofline", "memory")
IMMEDIATE_ANCHOR_MB = 756  # what an anchor needed beside the model before anchors were gradual, with as many vertices
SIZES = (200_000, 1_000_000)


def real_time_goals() -> str:
    """Return the goals, the values reached, and what an anchor adds to the cost of an arrival."""
    records = {name: read_record(f"{name}.json") for name in RECORDS}
    if None in records.values():
        return MISSING
    return f"{markdown_table(['goal', 'reached', 'met'], _rows(records))}\n\n{fill(_describe_cost(records), 120)}"


def _rows(records: dict[str, Any]) -> dict[str, list[str]]:
    stream, service, start = records["realtime"], records["service"], records["start"]
    large = stream[f"{SIZES[-1]}, 1"]
    rows = {
        f"slowest arrival, {SIZES[-1]:,} vertices": _at_most(5, large["default_slowest_us"] / 1_000, "{:.1f} ms"),
        f"99.9th percentile, {SIZES[-1]:,} vertices": _at_most(1, large["default_p999_us"] / 1_000, "{:.2f} ms"),
    }
    for batch, label in ((1, "one by one"), (1_000, "in batches of 1,000")):
        for size in SIZES:
            what = f"arrivals {label}, relative to a stream without anchors, {size:,} vertices"
            rows[what] = _at_most(3, stream[f"{size}, {batch}"]["ratio"], "{:.1f} ×")
    rows["writes over HTTP, relative to those without anchors"] = _at_least(
        0.6, service["edges_per_second_http_anchored_over_plain"], "{:.2f} ×"
    )
    rows["99th percentile of reads beside writes, relative to that without anchors"] = _at_most(
        1, service["read_p99_ms_anchored_over_plain"], "{:.1f} ×"
    )
    for graph in ("communities", "preferential"):
        anchors = start[f"{graph}_1000000_start_in_anchors"]
        rows[f"start of 1,000,000 vertices ({graph}), in anchors"] = _at_most(3, anchors, "{:.1f}")
        exponent = start[f"{graph}_start_exponent"]
        rows[f"growth of the cost of a start ({graph}), exponent"] = _at_most(1.1, exponent, "{:.2f}")
    memory = records["memory"]
    rows[f"memory of an anchor in addition to the model, {memory['vertices']:,} vertices"] = _at_most(
        IMMEDIATE_ANCHOR_MB, memory["peak_with_gradual_anchor_mb"] - memory["resident_mb"], "{:.0f} MB"
    )
    rows["speedup of two cores, large batches"] = _at_least(
        1.6, records["roofline"]["float32_two_over_one"], "{:.2f} ×"
    )
    return rows


def _at_most(goal: float, reached: float, form: str) -> list[str]:
    return _cells(goal, reached, form, reached <= goal)


def _at_least(goal: float, reached: float, form: str) -> list[str]:
    return _cells(goal, reached, form, reached >= goal)


def _cells(goal: float, reached: float, form: str, met: bool) -> list[str]:
    unit = form[form.index("}") + 1 :]
    return [f"{goal:g}{unit}", form.format(reached), "yes" if met else "**no**"]


def _describe_cost(records: dict[str, Any]) -> str:
    """Return a paragraph about the share of an anchor that an arrival pays."""
    stream, service = records["realtime"], records["service"]
    shares = [
        "{:.0f} and {:.0f} µs".format(*(_anchor_share(stream[f"{size}, {batch}"]) for batch in (1, 1_000)))
        for size in SIZES
    ]
    large = stream[f"{SIZES[-1]}, 1"]
    plain, anchored = (5e6 / service[f"edges_per_second_http_{kind}"] for kind in ("plain", "anchored"))
    return space_percent_signs(
        f"An arrival pays for its share of the anchor: {shares[0]} (one by one, in batches) at {SIZES[0]:,} vertices, "
        f"{shares[1]} at {SIZES[1]:,}. Over HTTP, an arrival with five edges takes {plain:.0f} µs without anchors and "
        f"{anchored:.0f} µs with them. The slowest arrival at {SIZES[-1]:,} vertices took "
        f"{large['default_slowest_us'] / 1_000:.1f} ms; without anchors, in the same run, "
        f"{large['without_slowest_us'] / 1_000:.1f} ms. None took more than "
        f"{large['default_thread_slowest_us'] / 1_000:.1f} and {large['without_thread_slowest_us'] / 1_000:.1f} ms of "
        "processor time: the rest is waiting for the machine."
    )


def _anchor_share(figures: dict[str, float]) -> float:
    return figures["default_mean_us"] - figures["without_mean_us"]
