"""Blocks of docs/performance.md: size and speed on one machine, from memory bandwidth to the worst case."""

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
    space_percent_signs,
    table_by_dataset,
)

GRAPHS = ("preferential", "rmat")


def first_run() -> str:
    """Return the seconds until the first vectors of a process that compiles, and of later ones."""
    record = read_record("cold_start.json")
    if record is None:
        return MISSING
    busy = record["load_average"] >= 1
    steps = {
        "import": "`import ripplevec`, a model created",
        "first_vector": "after `fit`: the first vector",
        "first_arrival": "after `add_vertex`: the first vector of an arrival",
        "example": "the whole first example of the README",
    }
    cases = {"cold": "nothing compiled", "alone": "nothing compiled, one process", "warm": "everything compiled"}
    suffix = "_processor" if busy else ""
    rows = {text: [f"{record[f'{case}_{step}{suffix}']:.1f} s" for case in cases] for step, text in steps.items()}
    unit = (
        "Processor time of the process that the user waits for, because the machine was busy; waiting for the second "
        "process is not counted."
        if busy
        else "Wall clock on two cores."
    )
    text = f"{unit} The load average before the measurement was {record['load_average']:.1f}."
    return f"{markdown_table(list(cases.values()), rows)}\n\n{fill(text, 120)}"


def roofline() -> str:
    """Return the speed of the stream relative to a bare loop that reads the same rows."""
    record = read_record("roofline.json")
    if record is None:
        return MISSING
    kinds = {
        f"{storage}, {number}": f"{storage}_{threads}_"
        for storage in ("float32", "float16")
        for threads, number in ((1, "one thread"), (2, "two threads"))
    }
    rows = {
        "edges/s": "{edges_per_second:,.0f}",
        "µs per arrival": "{us_per_arrival:.2f}",
        "rows read for placement, for refreshes": "{admit_reads_per_arrival:.1f}, {ripple_reads_per_arrival:.1f}",
        "rows read, GB/s": "{gigabytes_per_second:.1f}",
        "bare loop, GB/s": "{bare_gigabytes_per_second:.1f}",
        "copy, GB/s": "{copy_gigabytes_per_second:.1f}",
        "speed relative to the bare loop, rows only": "{ripple_share_of_bare:.0%}",
        "speed relative to the bare loop, with ids and edges": "{share_of_bare:.0%}",
    }
    columns = {kind: _strip_prefix(prefix, record) for kind, prefix in kinds.items()}
    text = (
        f"{record['vertices']:,} vertices, five edges per arrival. Two threads are "
        f"{record['float32_two_over_one']:.2f} × (float32) and {record['float16_two_over_one']:.2f} × (float16) as "
        f"fast as one. In a step of an anchor, two threads are {record['anchor_step_two_over_one']:.2f} × as fast as "
        f"one, and one thread reaches {record['float32_1_anchor_step_share_of_bare']:.0%} of the speed of the bare "
        "loop."
    )
    return f"{_format_table(columns, rows)}\n\n{fill(space_percent_signs(text), 120)}{_thread_gain(record)}"


def _thread_gain(record: dict[str, Any]) -> str:
    """Return the gain of a second thread for large batches, in all and per part, as a table after other text."""
    prefixes = [name.removesuffix("_total_one_ms") for name in record if name.endswith("_total_one_ms")]
    if not prefixes:
        return ""
    parts = ("total", "ids", "edges", "vectors", "changes")
    lines = ["", "", f"| | {' | '.join(parts)} |", f"|---|{'---:|' * len(parts)}"]
    for prefix in prefixes:
        _, kind, size = prefix.split("_")
        cells = [
            f"{record[f'{prefix}_{part}_one_ms']:,.0f} → {record[f'{prefix}_{part}_two_ms']:,.0f} ms, "
            f"{record[f'{prefix}_{part}_two_over_one']:.2f} ×"
            for part in parts
        ]
        lines.append(
            f"| batches of {int(size):,} edges, {'integer' if kind == 'int' else kind} ids | {' | '.join(cells)} |"
        )
    text = (
        "One thread → two threads, with the gain; the fastest of several batches. The load average before the "
        f"measurement was {record['batch_load_average']:.1f}."
    )
    return "\n".join([*lines, "", fill(text, 120)])


def large() -> str:
    """Return the measurements with a hundred million edges, in half and in single precision."""
    records = [record for name in ("large.json", "large_float32.json") if (record := read_record(name)) is not None]
    graphs = {f"{name}, {record['storage']}": record[name] for record in records for name in GRAPHS if name in record}
    if not graphs:
        return MISSING
    rows = {
        "vertices": "{vertices:,.0f}",
        "edges": "{edges:,.0f}",
        "stream of the last nine tenths": "{stream_seconds:,.0f} s, {edges_per_second:,.0f} edges/s",
        "memory of the stream, peak and afterward": "{stream_peak_gib:.1f} GiB, {resident_gib:.1f} GiB",
        "cost of an edge at the end, relative to a graph of a hundredth of the size": "{cost_over_a_hundredth:.2f} ×",
        "start, with a tenth of the edges": "{start_seconds:,.0f} s, {start_peak_gib:.1f} GiB peak",
        "an anchor of the whole graph": "{anchor_seconds:,.0f} s, {anchor_peak_gib:.1f} GiB peak",
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
        "speedup of two cores": "{two_over_one:.2f} ×",
        "memory of the state": "{state_mb:,.0f} MB",
        "additional memory": "{beside_the_state_mb:,.0f} MB",
        "share of the spectrum found by the first anchor": "{found_by_the_first:.1%}",
        "share found by the second anchor": "{found_by_the_second:.1%}",
    }
    text = (
        f"On a GPU (H200), an anchor of {gpu['vertices']:,.0f} vertices and {gpu['edges']:,.0f} edges takes "
        f"{gpu['gpu_seconds']:.1f} s, {gpu['cpu_over_gpu']:.1f} × as fast as on the {gpu['threads']} CPU cores of the "
        f"same machine. The largest relative difference between both results is {gpu['values_apart']:.0e} for the "
        f"eigenvalues and {gpu['inner_products_apart']:.0e} for the inner products of vectors."
    )
    columns = {f"{size['vertices']:,.0f} vertices": size for size in sizes}
    return "\n\n".join([_format_table(columns, rows), fill(text, 120), *_gradual_anchor_on_gpu()])


def _gradual_anchor_on_gpu() -> list[str]:
    """Return what a stream costs whose anchors a GPU computes in the background, if it was measured."""
    record = read_record("realtime_gpu.json")
    if record is None:
        return []
    vertices = max(record["sizes"])
    stream = record[f"{vertices}, 1"]
    text = (
        f"Gradual anchors on the GPU: while single vertices arrive in a graph of {vertices:,.0f} vertices, the stream "
        f"takes {stream['ratio']:.1f} × as long as without anchors. Of the arrivals, 99.9 % take at most "
        f"{stream['default_p999_us'] / 1000:.1f} ms, and the slowest {stream['default_slowest_us'] / 1000:.1f} ms, of "
        f"which {stream['default_thread_slowest_us'] / 1000:.1f} ms at most are processor time. The stream ran "
        "on two cores."
    )
    return [fill(text, 120)]


def start() -> str:
    """Return the cost of a start on a large graph, in anchors, and the Ritz sum that it finds."""
    record = read_record("start.json")
    if record is None:
        return MISSING
    rows = {
        "start": "{start_in_anchors:.1f} anchors",
        "iteration to convergence": "{converged_in_anchors:.1f} anchors",
        "Ritz sum below the converged one by": "{ritz_sum_missing_percent:.2f} %",
        "additional memory of the start": "{start_mb:,.0f} MB",
        "additional memory of the iteration to convergence": "{converged_mb:,.0f} MB",
        "growth of the start, from a tenth of the vertices": "n^{start_exponent:.2f}",
        "growth of an anchor": "n^{anchor_exponent:.2f}",
    }
    columns = {
        f"{record['vertices']:,.0f} vertices, {title}": _strip_prefix(f"{name}_", record)
        | _strip_prefix(f"{name}_{record['vertices']:.0f}_", record)
        for name, title in {"communities": "communities", "preferential": "preferential attachment"}.items()
    }
    return _format_table(columns, rows)


def anchor_spread() -> str:
    """Return the accuracy of anchors that are spread over more and more growth of the graph."""
    record = read_record("anchor_spread.json")
    if record is None:
        return MISSING
    rows = {
        "share of the eigenvalue sum": "{captured:.2%}",
        "largest cosine of two columns": "{largest_cosine:.3f}",
        "MRR of hidden edges": "{mrr:.3f}",
    }
    spreads = dict.fromkeys(name.split(", ")[1] for name in record if name.endswith(", captured"))
    titles = {"communities": "communities", "preferential": "preferential attachment"}
    return "\n\n".join(
        f"{titles[graph].capitalize()}:\n\n"
        + _format_table({spread: _strip_prefix(f"{graph}, {spread}, ", record) for spread in spreads}, rows)
        for graph in titles
    )


def anchor_interval() -> str:
    """Return the accuracy of streams with fewer and fewer anchors."""
    record = read_record("anchor_interval.json")
    if record is None:
        return MISSING
    rows = {
        "MRR of hidden edges": "{mrr:.4f}",
        "MRR of hidden edges of recent vertices": "{mrr of recent:.4f}",
        "anchors": "{anchors:.0f}",
    }
    keys = [name.split(", ") for name in record if name.endswith(", mrr")]
    return "\n\n".join(
        f"{graph.capitalize()}:\n\n"
        + _format_table({i: _strip_prefix(f"{graph}, {i}, ", record) for name, i, _ in keys if name == graph}, rows)
        for graph in dict.fromkeys(name for name, *_ in keys)
    )


def anchor_drift() -> str:
    """Return what an anchor gains for recent vertices, beside the signals that might predict it."""
    record = read_record("anchor_drift.json")
    if record is None:
        return MISSING
    keys = [name.split(", ") for name in record if name.endswith(", spectrum")]
    lines = [
        "| | growth | MRR before | MRR after | gain | spectrum | movement | relative movement |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for graph, growth in dict.fromkeys((graph, growth) for graph, growth, *_ in keys):
        seeds = [seed for name, at, seed, _ in keys if (name, at) == (graph, growth)]
        trials = [_strip_prefix(f"{graph}, {growth}, {seed}, ", record) for seed in seeds]
        gain = _format_range([100 * (trial["mrr after"] / trial["mrr before"] - 1) for trial in trials], "+.0f", " %")
        before, after = (sum(trial[f"mrr {when}"] for trial in trials) / len(trials) for when in ("before", "after"))
        signals = [_format_range([trial[name] for trial in trials]) for name in ("spectrum", "movement")]
        relative = _format_range([trial["relative movement"] for trial in trials])
        lines.append(
            f"| {graph} | {100 * float(growth):.0f} % | {before:.4f} | {after:.4f} | {gain} | "
            f"{' | '.join(signals)} | {relative} |"
        )
    return "\n".join(lines)


def _format_range(values: list[float], form: str = ".2f", unit: str = "") -> str:
    """Return the smallest and the largest value, or one of them if both look the same."""
    return " to ".join(dict.fromkeys(f"{value:{form}}{unit}" for value in (min(values), max(values))))


def mapped() -> str:
    """Return the cost of memory-mapped vectors."""
    record = read_record("mapped.json")
    if record is None:
        return MISSING
    text = (
        f"With {record['vertices']:,.0f} vertices, {record['vectors_mb']:,.0f} MB of vectors and edges to random "
        f"vertices, an arrival takes {record['us_in_memory']:.1f} µs in memory and {record['us_in_a_file']:.1f} µs "
        f"in a file that fits into memory ({record['file_over_memory']:.2f} ×)."
    )
    if "us_with_room_for_half" not in record:
        return fill(text, 120)
    half = (
        f" If memory has room for half of the file, an arrival takes {record['us_with_room_for_half']:,.0f} µs "
        f"({record['half_over_memory']:,.0f} ×), because nearly every arrival waits for the disk."
    )
    return fill(text + half, 120)


def half_precision() -> str:
    """Return the scores with 16-bit and 32-bit rows on the five data sets."""
    study = load_results("storage")
    rows = {
        f"{label}, {bits} bits": study.mean_and_deviation(metric, f"{bits} bits")
        for label, metric in (("current", "current_micro"), ("on arrival", "arrival_micro"))
        for bits in (32, 16)
    }

    def lost(dataset: str) -> str:
        bits = (study.by_seed("current_micro", f"{bits} bits", dataset) for bits in (16, 32))
        return format_signed(mean_paired_difference(*bits))

    return table_by_dataset(rows | {"current, difference": lost})


def ids() -> str:
    """Return the speed and memory of the id table."""
    record = read_record("ids.json")
    if record is None:
        return MISSING
    rows = {
        "look-ups of known ids": "{look_ups_per_second:,.0f} per second",
        "look-ups of unknown ids": "{unknown_look_ups_per_second:,.0f} per second",
        "insertions of new ids": "{new_names_per_second:,.0f} per second",
        "rows to ids": "{rows_to_names_per_second:,.0f} per second",
        "memory per id": "{bytes_per_id:.0f} bytes",
        "speed of look-ups relative to a dict, to pandas": "{over_dict:.1f} ×, {over_pandas:.1f} ×",
    }
    columns = {
        kind: _strip_prefix(prefix, record) for kind, prefix in {"64-bit integers": "int_", "text": "text_"}.items()
    }
    return f"{_format_table(columns, rows)}\n\n{record['ids']:,.0f} ids, one core."


def ann() -> str:
    """Return recall, latency and memory of the search index during a stream."""
    record = read_record("ann.json")
    if record is None:
        return MISSING
    setting = (
        f"Measured on {record['vertices']:,.0f} vertices. A fifth of them arrive during the measurement, with "
        f"{record['anchors']:,.0f} anchors, while others are removed. In the churn test, "
        f"{record['churn_share']:.0%} of the vertices are then replaced by others."
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
    values = markdown_table(["value"], {label: [text.format(**record)] for label, text in rows.items()})
    return f"{fill(space_percent_signs(setting), 120)}\n\n{values}"


def worst() -> str:
    """Return the latencies on a hub with many leaves, and during a burst of edges."""
    record = read_record("worst.json")
    if record is None:
        return MISSING
    return fill(
        f"An arrival at a hub with {record['leaves']:,} leaves takes {record['star_p50_ms']:.2f} ms (p50), "
        f"{record['star_p99_ms']:.2f} ms (p99), {record['star_p999_ms']:.2f} ms (p99.9). During a burst that connects "
        f"all vertices of one group with all vertices of another, {record['burst_edges_per_second']:,.0f} edges per "
        f"second in batches of 1,000, a read takes {record['burst_read_p50_ms']:.1f} ms (p50), "
        f"{record['burst_read_p99_ms']:.1f} ms (p99).",
        120,
    )


def goals_at_scale() -> str:
    """Return the goals at scale, and the values reached."""
    memory, large, single = read_record("roofline.json"), read_record("large.json"), read_record("large_float32.json")
    anchor, worst, ids = read_record("anchor.json"), read_record("worst.json"), read_record("ids.json")
    goals: list[tuple[str, str, Any, Callable[[Any], str]]] = [
        (
            "row updates at depth 1, relative to the bare loop",
            "55 %",
            memory,
            lambda r: space_percent_signs(f"{r['float32_1_ripple_share_of_bare']:.0%}"),
        ),
        (
            "edges/s on one core",
            "800,000",
            memory,
            lambda r: f"{r['float32_1_edges_per_second']:,.0f}, including id look-ups",
        ),
        ("speedup of two cores, large batches", "1.7 ×", memory, lambda r: f"{r['float32_two_over_one']:.2f} ×"),
        ("speedup of two cores, anchor", "1.4 ×", anchor, lambda r: f"{r['two_over_one']:.2f} ×"),
        (
            "100,000,000 edges, float16: memory",
            "10 GiB",
            large,
            lambda r: _each(r, "stream_peak_gib", "{:.1f} GiB"),
        ),
        ("100,000,000 edges, float16: time", "10 min", large, lambda r: _each(r, "stream_seconds", "{:,.0f} s")),
        (
            "100,000,000 edges, float32: memory",
            "16 GiB",
            single,
            lambda r: _each(r, "stream_peak_gib", "{:.1f} GiB"),
        ),
        (
            "cost of an edge, relative to a graph of a hundredth of the size",
            "2.5 ×",
            large,
            lambda r: _each(r, "cost_over_a_hundredth", "{:.2f} ×"),
        ),
        (
            "anchor of 100,000,000 edges, float16: memory",
            "20 GiB",
            large,
            lambda r: _each(r, "anchor_peak_gib", "{:.1f} GiB"),
        ),
        ("look-ups of integer ids per second", "20,000,000", ids, lambda r: f"{r['int_look_ups_per_second']:,.0f}"),
        ("look-ups of text ids per second", "2,000,000", ids, lambda r: f"{r['text_look_ups_per_second']:,.0f}"),
        ("an arrival at a hub, p99.9", "5 ms", worst, lambda r: f"{r['star_p999_ms']:.2f} ms"),
    ]
    return markdown_table(
        ["goal", "reached"],
        {label: [goal, MISSING if record is None else show(record)] for label, goal, record, show in goals},
    )


def _each(record: dict[str, Any], name: str, text: str) -> str:
    return ", ".join(f"{text.format(record[graph][name])} ({graph})" for graph in GRAPHS if graph in record)


def _format_table(columns: dict[str, dict[str, Any]], rows: dict[str, str]) -> str:
    """Return a table with a column per record; each row is a format text applied to the records."""
    cells = {
        label: [space_percent_signs(text.format(**record)) for record in columns.values()]
        for label, text in rows.items()
    }
    return markdown_table(columns, cells)


def _strip_prefix(prefix: str, record: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in record.items() if name.startswith(prefix)}
