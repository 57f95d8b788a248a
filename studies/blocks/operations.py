"""Blocks about operation: memory requirements, the cost and tests of durability, and the speed of the service."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from blocks.records import MISSING, format_number, markdown_table, read_record

VECTOR_BYTES = 4 * 128  # a vector in the benchmark has 128 dimensions in float32


def sizes() -> str:
    """Return the memory that a million vertices need."""
    memory = read_record("memory.json")
    if memory is None:
        return MISSING
    resident, peak = memory["resident_beyond_imports_mb"], memory["peak_with_anchor_mb"]
    per_edge = (resident * 2**20 - VECTOR_BYTES * memory["vertices"]) / memory["edges"]
    return fill(
        f"{memory['vertices']:,} vertices with 128 dimensions and {memory['edges']:,} edges take {resident:,.0f} MB, "
        f"in addition to the {memory['resident_mb'] - resident:,.0f} MB of the libraries. That is {VECTOR_BYTES} bytes "
        f"per vertex for its vector (4 × dimensions) and about {per_edge:.0f} bytes per edge for everything else. The "
        f"total peak during an anchor is {peak:,.0f} MB (`python benchmarks/memory.py`).",
        120,
    )


def crashes() -> str:
    """Return how often sessions were killed, and whether they recovered the same state."""
    crash = read_record("crash.json")
    if crash is None:
        return MISSING
    sources = ", ".join(f"{source} {count:,}" for source, count in crash["by_source"].items())
    return fill(
        f"`make crash` has killed sessions with SIGKILL {crash['kills']:,} times over {crash['batches']:,} batches, at "
        f"{len(crash['by_moment'])} kinds of points in the code (by input: {sources}). The recovered state was "
        f"compared with that of an undisturbed session {crash['openings_compared']:,} times: {len(crash['faults'])} "
        "differed.",
        120,
    )


def soak() -> str:
    """Return latency and memory of a service over hours of traffic and kills."""
    record = read_record("soak.json")
    if record is None:
        return MISSING
    parts, whole = record["parts"], record["overall"]
    exact = "every acknowledged batch was applied exactly once, and the final digests equal those of an undisturbed run"
    rates = [part["arrivals_per_second"] for part in parts]
    text = fill(
        f"{record['hours']:.2f} hours in {len(parts)} parts ({whole['continued_parts']} of them continued the state of "
        f"the previous part) at {min(rates):,.0f} to {max(rates):,.0f} arrivals per second, half of the maximum rate "
        f"of the machine, with {record['vertices']:,} vertices: {whole['batches']:,} batches, {whole['anchors']:,} "
        f"anchors, {whole['snapshots']:,} snapshots, {whole['reads'] + whole['searches']:,} reads, {whole['killed']} "
        f"kills; {'; '.join(whole['faults']) or exact}.{_recovery_time(whole)}{_memory_trend(whole)}",
        120,
    )
    rows: dict[str, list[str]] = {
        label: [f"{format_number(whole['latency_ms'][name][share])} ms" for share in ("p50", "p99", "p99.9")]
        for label, name in (("write of a batch", "write"), ("read of a vector", "read"), ("`nearest`", "nearest"))
    }
    memory: dict[str, list[str]] = {
        f"part {number}": _trend_cells(part["flatness"]["resident_mb"], "MB") for number, part in _first_and_last(parts)
    }
    picture = "![Memory and latency over the last part](../results/figures/soak.svg)"
    tables = (
        markdown_table(["p50", "p99", "p99.9"], rows),
        markdown_table(["first third", "last third", "ratio"], memory),
    )
    return "\n\n".join([text, *tables, picture])


def _recovery_time(whole: dict[str, Any]) -> str:
    if whole["away_seconds_median"] is None:
        return ""
    longest = whole["away_seconds_longest"]
    return f" Recovery after a kill took {whole['away_seconds_median']:.1f} s (median) and at most {longest:.1f} s."


def _memory_trend(whole: dict[str, Any]) -> str:
    slope = whole["memory_mb_per_hour"]
    return "" if slope is None else f" Memory changed by {slope:+.1f} MB per hour (linear fit over all parts)."


def _first_and_last(parts: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    numbered = list(enumerate(parts, 1))
    return [numbered[0], *numbered[1:][-1:]]


def _trend_cells(trend: dict[str, Any], unit: str) -> list[str]:
    if trend["last_over_first"] is None:
        return ["–", "–", "–"]
    thirds = [f"{format_number(trend[third])} {unit}".strip() for third in ("first_third", "last_third")]
    return [*thirds, f"{trend['last_over_first']:.2f} ×"]


def durable() -> str:
    """Return the throughput of a session relative to a model in memory."""
    record = read_record("durable.json")
    if record is None:
        return MISSING
    rows = {
        "one batch per flush, no anchors": record["no_anchors_one_by_one_over_memory"],
        "sixteen batches per flush, no anchors": record["no_anchors_grouped_over_memory"],
        "one batch per flush, immediate anchors": record["anchors_one_by_one_over_memory"],
        "sixteen batches per flush, anchors in the background": record["anchors_behind_over_memory"],
    }
    title = "edges/s in batches of 1,000, relative to a model in memory"
    return _two_columns(title, {name: f"{value:.2f} ×" for name, value in rows.items()})


def service() -> str:
    """Return throughput and latency of the service, without and with anchors."""
    record = read_record("service.json")
    if record is None:
        return MISSING
    rows = {
        "`POST /v1/edges`, 1,000 edges per request": "{edges_per_second_http:,.0f} edges/s",
        "the same, relative to a session without HTTP": "{http_over_durable:.2f} ×",
        "an arrival, p50 and p99": "{arrival_p50_ms:.1f} and {arrival_p99_ms:.1f} ms",
        "a read during full ingestion (1,000 reads/s), p50 and p99": "{read_p50_ms:.1f} and {read_p99_ms:.0f} ms",
    }
    cells = [
        (label, *(text.format(**_select_kind(record, kind)) for kind in ("plain", "anchored")))
        for label, text in rows.items()
    ]
    lines = ["| | no anchors | anchors |", "|---|---:|---:|", *(f"| {' | '.join(row)} |" for row in cells)]
    recovered = f"Recovery of {record['recovered_vertices']:,.0f} vertices takes {record['recovery_seconds']:.1f} s."
    return "\n".join([*lines, "", recovered])


def _select_kind(record: dict[str, float], kind: str) -> dict[str, float]:
    return {name.removesuffix(f"_{kind}"): value for name, value in record.items() if name.endswith(f"_{kind}")}


def _two_columns(title: str, rows: dict[str, str]) -> str:
    return "\n".join([f"| {title} | |", "|---|---:|", *(f"| {label} | {value} |" for label, value in rows.items())])
