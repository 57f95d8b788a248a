"""Blocks of docs/scale.md: size and speed on one machine, from memory bandwidth to the worst case."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import Any

from blocks.records import (
    MISSING,
    format_signed,
    load_results,
    markdown_table,
    mean_paired_difference,
    read_record,
    table_by_dataset,
)

GRAPHS = ("preferential", "rmat")


def roofline() -> str:
    """Return the speed of the stream relative to a bare loop that reads the same rows."""
    found = read_record("roofline.json")
    if found is None:
        return MISSING
    kinds = {
        f"{storage}, {number}": f"{storage}_{threads}_"
        for storage in ("float32", "float16")
        for threads, number in ((1, "one thread"), (2, "two threads"))
    }
    rows = {
        "edges/s": "{edges_per_second:,.0f}",
        "µs per arrival": "{us_per_arrival:.2f}",
        "rows read to admit, to refresh": "{admit_reads_per_arrival:.1f}, {ripple_reads_per_arrival:.1f}",
        "GB/s of rows": "{gigabytes_per_second:.1f}",
        "GB/s of the bare loop": "{bare_gigabytes_per_second:.1f}",
        "GB/s of a copy": "{copy_gigabytes_per_second:.1f}",
        "share of the bare loop: rows alone": "{ripple_share_of_bare:.0%}",
        "share of the bare loop: names and edges too": "{share_of_bare:.0%}",
    }
    figures = {kind: _strip_prefix(prefix, found) for kind, prefix in kinds.items()}
    said = (
        f"{found['vertices']:,} vertices, five edges an arrival. Two threads over one: "
        f"{found['float32_two_over_one']:.2f} × (float32), {found['float16_two_over_one']:.2f} × (float16); a step of "
        f"an anchor {found['anchor_step_two_over_one']:.2f} ×, at {found['float32_1_anchor_step_share_of_bare']:.0%} "
        "of the bare loop."
    )
    return f"{_format_table(figures, rows)}\n\n{said}"


def large() -> str:
    """Return the measurements with a hundred million edges, in half and in single precision."""
    found = [record for name in ("large.json", "large_float32.json") if (record := read_record(name)) is not None]
    graphs = {f"{name}, {record['storage']}": record[name] for record in found for name in GRAPHS if name in record}
    if not graphs:
        return MISSING
    rows = {
        "vertices": "{vertices:,.0f}",
        "edges": "{edges:,.0f}",
        "stream, from a tenth on": "{stream_seconds:,.0f} s, {edges_per_second:,.0f} edges/s",
        "memory, at the most and after it": "{stream_peak_gib:.1f} GiB, {resident_gib:.1f} GiB",
        "an edge in the last tenth, over a hundredth of the size": "{cost_over_a_hundredth:.2f} ×",
        "start, on a tenth": "{start_seconds:,.0f} s, {start_peak_gib:.1f} GiB at the most",
        "an anchor of all": "{anchor_seconds:,.0f} s, {anchor_peak_gib:.1f} GiB at the most",
    }
    return _format_table(graphs, rows)


def anchor() -> str:
    """Return the cost of an anchor on one and on ten million vertices, and on a GPU."""
    sizes = [record for name in ("anchor.json", "anchor_10m.json") if (record := read_record(name)) is not None]
    gpu = read_record("anchor_gpu.json")
    if not sizes or gpu is None:
        return MISSING
    rows = {
        "edges": "{edges:,.0f}",
        "one core": "{one_thread_seconds:.1f} s",
        "two cores": "{two_threads_seconds:.1f} s",
        "one over two": "{two_over_one:.2f} ×",
        "memory of the state": "{state_mb:,.0f} MB",
        "memory beside it": "{beside_the_state_mb:,.0f} MB",
        "found by the first anchor, of all there is": "{found_by_the_first:.1%}",
        "by the second": "{found_by_the_second:.1%}",
    }
    said = (
        f"On a GPU (H200), {gpu['vertices']:,.0f} vertices and {gpu['edges']:,.0f} edges: {gpu['gpu_seconds']:.1f} s, "
        f"{gpu['cpu_over_gpu']:.1f} × as fast as the {gpu['threads']} cores beside it; values apart by "
        f"{gpu['values_apart']:.0e}, inner products of vectors by {gpu['inner_products_apart']:.0e}."
    )
    figures = {f"{size['vertices']:,.0f} vertices": size for size in sizes}
    return f"{_format_table(figures, rows)}\n\n{said}"


def mapped() -> str:
    """Return the cost of memory-mapped vectors."""
    found = read_record("mapped.json")
    if found is None:
        return MISSING
    said = (
        f"{found['vertices']:,.0f} vertices, {found['vectors_mb']:,.0f} MB of vectors, arrivals with edges to anybody: "
        f"{found['us_in_memory']:.1f} µs an arrival in memory, {found['us_in_a_file']:.1f} µs in a file that fits into "
        f"memory ({found['file_over_memory']:.2f} ×)"
    )
    if "us_with_room_for_half" not in found:
        return f"{said}."
    return (
        f"{said}, {found['us_with_room_for_half']:,.0f} µs where memory has room for half of it "
        f"({found['half_over_memory']:,.0f} ×): then nearly every arrival waits for the disk."
    )


def half_precision() -> str:
    """Return the scores with 16-bit and 32-bit rows on the five data sets."""
    study = load_results("storage")
    rows = {
        f"{what}, {bits} bits": study.mean_and_deviation(figure, f"{bits} bits")
        for what, figure in (("current", "current_micro"), ("on arrival", "arrival_micro"))
        for bits in (32, 16)
    }

    def lost(dataset: str) -> str:
        bits = (study.by_seed("current_micro", f"{bits} bits", dataset) for bits in (16, 32))
        return format_signed(mean_paired_difference(*bits))

    return table_by_dataset(rows | {"current, difference": lost})


def ids() -> str:
    """Return the speed and memory of the id table."""
    found = read_record("ids.json")
    if found is None:
        return MISSING
    rows = {
        "names known, looked up": "{look_ups_per_second:,.0f} a second",
        "names unknown, looked up": "{unknown_look_ups_per_second:,.0f} a second",
        "new names": "{new_names_per_second:,.0f} a second",
        "rows to names": "{rows_to_names_per_second:,.0f} a second",
        "memory of a name": "{bytes_per_id:.0f} bytes",
        "a look-up, over a dict and over pandas": "{over_dict:.1f} ×, {over_pandas:.1f} × as fast",
    }
    figures = {
        kind: _strip_prefix(prefix, found) for kind, prefix in {"64-bit integers": "int_", "text": "text_"}.items()
    }
    return f"{_format_table(figures, rows)}\n\n{found['ids']:,.0f} names, one core."


def ann() -> str:
    """Return recall, latency and memory of the search index during a stream."""
    found = read_record("ann.json")
    if found is None:
        return MISSING
    setting = (
        f"Measured on {found['vertices']:,.0f} vertices. A fifth of them arrive during the measurement, with "
        f"{found['anchors']:,.0f} anchors, while others are removed. In the churn test, {found['churn_share']:.0%} of "
        "the vertices are then replaced by others."
    )
    rows = {
        "recall@10 against exact search, mean": "{recall_mean:.3f}",
        "recall@10, lowest": "{recall_least:.3f}",
        "recall@10 directly after a batch": "{recall_right_after_batches:.3f}",
        "recall@10 after the churn test": "{churn_recall:.3f}",
        "a query with the index": "{milliseconds_through_index:.1f} ms",
        "an exact query": "{milliseconds_exactly:.1f} ms ({exact_over_index:.1f} ×)",
        "entries per vertex that were replaced because it moved": "{indexed_again_per_vertex:.2f}",
        "memory of the index per vertex": "{bytes_per_vertex:,.0f} bytes",
        "the same, highest in the first half of the churn test": "{churn_bytes_per_vertex_first_half:,.0f} bytes",
        "the same, highest in the second half": "{churn_bytes_per_vertex_second_half:,.0f} bytes",
    }
    values = markdown_table(["value"], {label: [text.format(**found)] for label, text in rows.items()})
    return f"{fill(setting, 120)}\n\n{values}"


def worst() -> str:
    """Return the latencies on a hub with many leaves, and during a burst of edges."""
    found = read_record("worst.json")
    if found is None:
        return MISSING
    return (
        f"On a hub with {found['leaves']:,} leaves an arrival takes {found['star_p50_ms']:.2f} ms (p50), "
        f"{found['star_p99_ms']:.2f} ms (p99), {found['star_p999_ms']:.2f} ms (p99.9). While edges from "
        f"everybody on one side to everybody on the other come in at {found['burst_edges_per_second']:,.0f} a second, "
        f"in batches of 1,000, a read takes {found['burst_read_p50_ms']:.1f} ms (p50), "
        f"{found['burst_read_p99_ms']:.1f} ms (p99)."
    )


def aims_at_scale() -> str:
    """Return the goals at scale, and the values reached."""
    memory, large, single = read_record("roofline.json"), read_record("large.json"), read_record("large_float32.json")
    anchor, bad, names = read_record("anchor.json"), read_record("worst.json"), read_record("ids.json")
    aims: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("rows at depth 1, of the bare loop: 55 %", memory, lambda r: f"{r['float32_1_ripple_share_of_bare']:.0%}"),
        ("edges/s on one core: 800,000", memory, lambda r: f"{r['float32_1_edges_per_second']:,.0f}, names included"),
        ("two cores, large batches: 1.7 ×", memory, lambda r: f"{r['float32_two_over_one']:.2f} ×"),
        ("an anchor on two cores: 1.4 ×", anchor, lambda r: f"{r['two_over_one']:.2f} ×"),
        ("100,000,000 edges, 16 bits: 10 GiB", large, lambda r: _each(r, "stream_peak_gib", "{:.1f} GiB")),
        ("the same: 10 minutes", large, lambda r: _each(r, "stream_seconds", "{:,.0f} s")),
        ("the same, 32 bits: 16 GiB", single, lambda r: _each(r, "stream_peak_gib", "{:.1f} GiB")),
        (
            "an edge, over a hundredth of the size: 2.5 ×",
            large,
            lambda r: _each(r, "cost_over_a_hundredth", "{:.2f} ×"),
        ),
        ("its anchor: 20 GiB", large, lambda r: _each(r, "anchor_peak_gib", "{:.1f} GiB")),
        ("look-ups of integers: 20,000,000/s", names, lambda r: f"{r['int_look_ups_per_second']:,.0f}"),
        ("of text: 2,000,000/s", names, lambda r: f"{r['text_look_ups_per_second']:,.0f}"),
        ("an arrival on a hub, p99.9: 5 ms", bad, lambda r: f"{r['star_p999_ms']:.2f} ms"),
    ]
    return markdown_table(
        ["reached"], {what: [MISSING if record is None else say(record)] for what, record, say in aims}
    )


def _each(record: dict[str, Any], name: str, text: str) -> str:
    return ", ".join(f"{text.format(record[graph][name])} ({graph})" for graph in GRAPHS if graph in record)


def _format_table(columns: dict[str, dict[str, Any]], rows: dict[str, str]) -> str:
    """Return a table with a column per record; each row is a format text applied to the records."""
    return markdown_table(
        columns, {what: [text.format(**figures) for figures in columns.values()] for what, text in rows.items()}
    )


def _strip_prefix(prefix: str, found: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
