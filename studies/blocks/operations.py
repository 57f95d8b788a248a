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
    resident = memory["resident_beyond_imports_mb"]
    gradual, immediate = memory["peak_with_gradual_anchor_mb"], memory["peak_with_anchor_mb"]
    per_edge = (resident * 2**20 - VECTOR_BYTES * memory["vertices"]) / memory["edges"]
    return fill(
        f"{memory['vertices']:,} vertices with 128 dimensions and {memory['edges']:,} edges take {resident:,.0f} MB, "
        f"in addition to the {memory['resident_mb'] - resident:,.0f} MB of the libraries. That is {VECTOR_BYTES} bytes "
        f"per vertex for its vector (4 × dimensions) and about {per_edge:.0f} bytes per edge for everything else. The "
        f"total peak is {gradual:,.0f} MB during a gradual anchor, the default, and {immediate:,.0f} MB during "
        "`model.anchor()` (`python benchmarks/memory.py`).",
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


SOAK_METRICS = {
    "resident_mb": ("memory", "MB"),
    "processor_ms_per_batch": ("processor time per batch", "ms"),
    "write_p50_over_work": ("write of a batch, p50", "×"),
    "write_p99_over_work": ("write of a batch, p99", "×"),
    "read_p50_over_health": ("read of a vector, p50", "×"),
    "read_p99_over_health": ("read of a vector, p99", "×"),
    "nearest_p50_over_health": ("`nearest`, p50", "×"),
    "nearest_p99_over_health": ("`nearest`, p99", "×"),
}


def soak() -> str:
    """Return memory, processor time and relative latency of a service over hours of traffic and kills."""
    record = read_record("soak.json")
    if record is None:
        return MISSING
    parts = record["parts"]
    rows = {
        label if len(parts) == 1 else f"{label}, part {number}": _trend_cells(part["flatness"][name], unit)
        for name, (label, unit) in SOAK_METRICS.items()
        for number, part in _first_and_last(parts)
    }
    picture = "![Memory and latency over the last part](../results/figures/soak.svg)"
    table = markdown_table(["first third", "last third", "last / first"], rows)
    return "\n\n".join([fill(_describe_soak(record), 120), table, picture])


def soak_on_shards() -> str:
    """Return what the soak test of a service on Ray actors has found."""
    record = read_record("soak_shards.json")
    return MISSING if record is None else fill(f"On {record['shards']} shards: {_describe_soak(record)}", 120)


def _describe_soak(record: dict[str, Any]) -> str:
    """Return the size of a soak test and its faults."""
    parts, whole = record["parts"], record["overall"]
    snapshots = f"{whole['snapshots']:,} snapshot{'' if whole['snapshots'] == 1 else 's'}"
    exact = "every acknowledged batch was applied exactly once, and the final digests equal those of an undisturbed run"
    return (
        f"{record['hours']:.2f} hours in {_count_parts(parts, whole)}, {_describe_load(parts)}, with "
        f"{record['vertices']:,} vertices: {whole['batches']:,} batches, {whole['anchors']:,} anchors, "
        f"{snapshots}, {whole['reads'] + whole['searches']:,} reads, {whole['killed']} kills; "
        f"{'; '.join(whole['faults']) or exact}.{_recovery_time(parts, whole)}{_memory_trend(whole)}"
    )


def _count_parts(parts: list[dict[str, Any]], whole: dict[str, Any]) -> str:
    if len(parts) == 1:
        return "one part"
    return f"{len(parts)} parts ({whole['continued_parts']} of them continued the state of the previous part)"


def _describe_load(parts: list[dict[str, Any]]) -> str:
    rates = _range([f"{part['arrivals_per_second']:,.0f}" for part in parts])
    shares = _range([f"{100 * part['load']:.0f}" for part in parts])
    averages = _range([f"{part['load_average_median']:.1f}" for part in parts])
    cores = _range([str(part["environment"]["machine"]["cores"]) for part in parts])
    return (
        f"at {rates} arrivals per second ({shares} % of the maximum rate measured directly before), on a machine with "
        f"{cores} cores and a load average of {averages} (median, including the test)"
    )


def _range(values: list[str]) -> str:
    """Return the smallest and the largest of formatted numbers; one of them if they are equal."""
    ordered = sorted(set(values), key=lambda text: float(text.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _recovery_time(parts: list[dict[str, Any]], whole: dict[str, Any]) -> str:
    if whole["away_seconds_median"] is None:
        return ""
    loads = ((kill, part["load_average_median"]) for part in parts for kill in part["kills_at"])
    longest, replayed, load = max((kill["away"], kill["replayed"], load) for kill, load in loads)
    return (
        f" Recovery after a kill took {whole['away_seconds_median']:.1f} s (median) and at most {longest:.1f} s, for "
        f"{replayed:,} replayed batches at a load average of {load:.1f}."
    )


def _memory_trend(whole: dict[str, Any]) -> str:
    slope, error = whole["memory_mb_per_hour"], whole["memory_mb_per_hour_error"]
    if slope is None:
        return " No process applied enough batches between two kills to evaluate its memory."
    return (
        f" In processes after their first 1,000 batches ({whole['memory_hours']:.1f} hours), memory changed by "
        f"{slope:+.1f} ± {error:.1f} MB per hour (linear fit with standard error)."
    )


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
        "one batch per flush, no anchors": "no_anchors_one_by_one_over_memory",
        "sixteen batches per flush, no anchors": "no_anchors_grouped_over_memory",
        "one batch per flush, anchors": "anchors_one_by_one_over_memory",
        "sixteen batches per flush, anchors": "anchors_grouped_over_memory",
    }
    title = "edges/s in batches of 1,000, relative to a model in memory"
    return _two_columns(title, {label: f"{record[key]:.2f} ×" for label, key in rows.items()})


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
