"""How large and how fast on one machine: memory bandwidth, ten million vertices, anchors, names, the worst case."""

from __future__ import annotations

from collections.abc import Iterable

from blocks.records import NOTHING, content, table


def roofline() -> str:
    """The stream over a bare loop that reads the same rows."""
    found = content("roofline.json")
    if found is None:
        return NOTHING
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
    cells: dict[str, Iterable[str]] = {
        what: [text.format(**_under(prefix, found)) for prefix in kinds.values()] for what, text in rows.items()
    }
    said = (
        f"{found['vertices']:,} vertices, five edges an arrival. Two threads over one: "
        f"{found['float32_two_over_one']:.2f} × (float32), {found['float16_two_over_one']:.2f} × (float16); a step of "
        f"an anchor {found['anchor_step_two_over_one']:.2f} ×, at {found['float32_1_anchor_step_share_of_bare']:.0%} "
        "of the bare loop."
    )
    return f"{table(list(kinds), cells)}\n\n{said}"


def large() -> str:
    """A hundred million edges."""
    found = content("large.json")
    if found is None:
        return NOTHING
    graphs = {name: found[name] for name in ("preferential", "rmat") if name in found}
    rows = {
        "vertices": "{vertices:,.0f}",
        "edges": "{edges:,.0f}",
        "stream, from a tenth on": "{stream_seconds:,.0f} s, {edges_per_second:,.0f} edges/s",
        "memory after it": "{resident_gib:.1f} GiB",
        "an edge in the last tenth, over a hundredth of the size": "{cost_over_a_hundredth:.2f} ×",
        "start, on a tenth": "{start_seconds:,.0f} s, {start_peak_gib:.1f} GiB at the most",
        "an anchor of all": "{anchor_seconds:,.0f} s, {anchor_peak_gib:.1f} GiB at the most",
    }
    cells: dict[str, Iterable[str]] = {
        what: [text.format(**graph) for graph in graphs.values()] for what, text in rows.items()
    }
    return table([f"{name}, {found['storage']}" for name in graphs], cells)


def anchor() -> str:
    """What an anchor of a million vertices takes, and one of ten million on a GPU."""
    cores, gpu = content("anchor.json"), content("anchor_gpu.json")
    if cores is None or gpu is None:
        return NOTHING
    return (
        f"{cores['vertices']:,.0f} vertices and {cores['edges']:,.0f} edges: {cores['one_thread_seconds']:.1f} s on "
        f"one core, {cores['two_threads_seconds']:.1f} s on two ({cores['two_over_one']:.2f} ×, the same bits), "
        f"{cores['beside_the_state_mb']:,.0f} MB beside {cores['state_mb']:,.0f} MB of state. On a GPU (H200), "
        f"{gpu['vertices']:,.0f} vertices and {gpu['edges']:,.0f} edges: {gpu['gpu_seconds']:.1f} s, "
        f"{gpu['cpu_over_gpu']:.1f} × as fast as the {gpu['threads']} cores beside it; values apart by "
        f"{gpu['values_apart']:.0e}, inner products of vectors by {gpu['inner_products_apart']:.0e}."
    )


def worst() -> str:
    """A hub that everybody joins, and a burst of edges."""
    found = content("worst.json")
    if found is None:
        return NOTHING
    return (
        f"On a hub with {found['leaves']:,} leaves an arrival takes {found['star_p50_ms']:.2f} ms (p50), "
        f"{found['star_p99_ms']:.2f} ms (p99), {found['star_p999_ms']:.2f} ms (p99.9). While a million edges between "
        f"two sides come in at {found['burst_edges_per_second']:,.0f} a second, in batches of 1,000, a read takes "
        f"{found['burst_read_p50_ms']:.1f} ms (p50), {found['burst_read_p99_ms']:.1f} ms (p99)."
    )


def _under(prefix: str, found: dict[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
