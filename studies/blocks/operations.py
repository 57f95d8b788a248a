"""What a machine has to have, what durability costs, and what a service answers in."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import Any

from blocks.records import MISSING, format_number, markdown_table, read_record

VECTOR = 4 * 128  # bytes, of the columns that the benchmark has


def sizes() -> str:
    """What a million vertices take in memory, for those who choose a machine."""
    memory = read_record("memory.json")
    if memory is None:
        return MISSING
    resident, peak = memory["resident_beyond_imports_mb"], memory["peak_with_anchor_mb"]
    per_edge = (resident * 2**20 - VECTOR * memory["vertices"]) / memory["edges"]
    return fill(
        f"{memory['vertices']:,} vertices of 128 columns with {memory['edges']:,} edges take {resident:,.0f} MB beside "
        f"the {memory['resident_mb'] - resident:,.0f} MB of the libraries, and {peak:,.0f} MB in all at the peak of an "
        f"anchor (`python benchmarks/memory.py`): {VECTOR} bytes per vertex for its vector (4 × columns) and about "
        f"{per_edge:.0f} per edge for everything else.",
        120,
    )


def crashes() -> str:
    """How often a session was killed, and what came of it."""
    crash = read_record("crash.json")
    if crash is None:
        return MISSING
    sources = ", ".join(f"{count:,} {source}" for source, count in crash["by_source"].items())
    return fill(
        f"`make crash` has killed sessions {crash['kills']:,} times with SIGKILL ({sources}; at "
        f"{len(crash['by_moment'])} kinds of moments) over {crash['batches']:,} batches. The state found afterwards "
        f"was compared with one left alone {crash['openings_compared']:,} times: {len(crash['faults'])} differed.",
        120,
    )


def soak() -> str:
    """How a service was after hours of traffic and kills, over how it was before."""
    found = read_record("soak.json")
    if found is None:
        return MISSING
    parts, whole = found["parts"], found["overall"]
    exact = "every acknowledged batch was there, once, and the digests in the end were those of a model left alone"
    rates = [part["arrivals_per_second"] for part in parts]
    said = fill(
        f"{found['hours']:.2f} hours in {len(parts)} parts ({whole['continued_parts']} of them with the state of the "
        f"one before) at {min(rates):,.0f} to {max(rates):,.0f} arrivals a second, half of what the machine took, into "
        f"{found['vertices']:,} vertices: {whole['batches']:,} batches, {whole['anchors']:,} anchors, "
        f"{whole['snapshots']:,} snapshots, {whole['reads'] + whole['searches']:,} reads, {whole['killed']} kills; "
        f"{'; '.join(whole['faults']) or exact}.{_after_kills(whole)}{_memory(whole)}",
        120,
    )
    rows: dict[str, Iterable[str]] = {
        what: [f"{format_number(whole['latency_ms'][name][share])} ms" for share in ("p50", "p99", "p99.9")]
        for what, name in (("a batch", "write"), ("a vector", "read"), ("the nearest", "nearest"))
    }
    memory: dict[str, Iterable[str]] = {
        f"part {number}": _flat(part["flatness"]["resident_mb"], "MB") for number, part in _first_and_last(parts)
    }
    picture = "![Memory and latency over the last part](../results/figures/soak.svg)"
    tables = (
        markdown_table(["p50", "p99", "p99.9"], rows),
        markdown_table(["first third", "last third", "last over first"], memory),
    )
    return "\n\n".join([said, *tables, picture])


def _after_kills(whole: dict[str, Any]) -> str:
    if whole["away_seconds_median"] is None:
        return ""
    longest = whole["away_seconds_longest"]
    return f" Back after a kill in {whole['away_seconds_median']:.1f} s, {longest:.1f} s at most."


def _memory(whole: dict[str, Any]) -> str:
    slope = whole["memory_mb_per_hour"]
    return "" if slope is None else f" Memory: {slope:+.1f} MB an hour, by a line through all parts."


def _first_and_last(parts: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    numbered = list(enumerate(parts, 1))
    return [numbered[0], *numbered[1:][-1:]]


def _flat(figure: dict[str, float | None], unit: str) -> list[str]:
    if figure["last_over_first"] is None:
        return ["–", "–", "–"]
    thirds = [f"{format_number(figure[third])} {unit}".strip() for third in ("first_third", "last_third")]
    return [*thirds, f"{figure['last_over_first']:.2f} ×"]


def durable() -> str:
    """What it costs to have every batch on disk first."""
    found = read_record("durable.json")
    if found is None:
        return MISSING
    rows = {
        "one batch per flush, no anchors": found["no_anchors_one_by_one_over_memory"],
        "sixteen batches per flush, no anchors": found["no_anchors_grouped_over_memory"],
        "one batch per flush, anchors at once": found["anchors_one_by_one_over_memory"],
        "one batch per flush, anchors in the background": found["anchors_behind_over_memory"],
    }
    return _table("edges/s in batches of 1,000, over a model in memory", {n: f"{v:.2f} ×" for n, v in rows.items()})


def service() -> str:
    """Return throughput and latency of the service, without and with anchors."""
    found = read_record("service.json")
    if found is None:
        return MISSING
    rows = {
        "`POST /v1/edges`, 1,000 edges per request": "{edges_per_second_http:,.0f} edges/s",
        "the same, relative to a session without HTTP": "{http_over_durable:.2f} ×",
        "an arrival, p50 and p99": "{arrival_p50_ms:.1f} and {arrival_p99_ms:.1f} ms",
        "a read during full ingestion (1,000 reads/s), p50 and p99": "{read_p50_ms:.1f} and {read_p99_ms:.0f} ms",
    }
    cells = [
        (what, *(text.format(**_of(found, kind)) for kind in ("plain", "anchored"))) for what, text in rows.items()
    ]
    lines = ["| | no anchors | anchors |", "|---|---:|---:|", *(f"| {' | '.join(row)} |" for row in cells)]
    recovered = f"Recovery of {found['recovered_vertices']:,.0f} vertices takes {found['recovery_seconds']:.1f} s."
    return "\n".join([*lines, "", recovered])


def _of(found: dict[str, float], kind: str) -> dict[str, float]:
    return {name.removesuffix(f"_{kind}"): value for name, value in found.items() if name.endswith(f"_{kind}")}


def _table(title: str, rows: dict[str, str]) -> str:
    return "\n".join([f"| {title} | |", "|---|---:|", *(f"| {what} | {value} |" for what, value in rows.items())])
