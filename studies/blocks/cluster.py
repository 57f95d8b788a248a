"""Blocks of docs/cluster.md: the cost of shards on one machine, and a model of many machines."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import Any

from blocks.records import MISSING, RESULTS, ROOT, markdown_table, read_record, space_percent_signs

sys.path.append(str(ROOT / "benchmarks"))  # the cost model is next to the benchmark it is fitted to

import _cluster_model as model

SHARDS, SIZES = (1, 2, 4), (1, 200, 20_000)
PICTURE = "figures/scaling.svg"
MAX_ERROR = 0.2  # larger relative errors of the check are pointed out
REASONS = {
    model.CALLS: ", because the driver calls the shards one after the other and tracks the data between all pairs",
    model.DRIVER: ", because the driver processes a batch once for every shard",
    model.DRIVER_NETWORK: ", because the driver sends information about all new vertices to every shard",
}
MODEL_RECORDS = ("cluster.json", "driver.json", "memory.json", "ids.json")


def cluster() -> str:
    """Return seconds, throughput, call cost and traffic on one machine, without shards and with some."""
    record = read_record("cluster.json")
    if record is None:
        return MISSING
    columns: list[dict[str, Any]] = [
        _strip_prefix("single_", record),
        *(_strip_prefix(f"shards_{count}_", record) for count in SHARDS),
    ]
    alone = columns[0]
    rows = {f"a batch of {_edges(size)}": [_time(column[f"seconds_{size}"]) for column in columns] for size in SIZES}
    rows |= {
        f"throughput with {_edges(size)} per batch, relative to no shards": [
            MISSING,
            *(_ratio(column[f"of_single_{size}"]) for column in columns[1:]),
        ]
        for size in SIZES
    }
    shard_rows = {
        "additional time per batch": lambda column: _time(column["seconds_1"] - alone["seconds_1"]),
        "bytes sent between shards per arrival": lambda column: f"{column['bytes_per_arrival']:,.0f}",
        "bytes sent relative to the rows that had to be read": lambda column: f"{column['sent_over_needed']:.2f} ×",
        "bit-identical vectors": lambda column: "yes" if column["same"] else "**no**",
    }
    rows |= {label: [MISSING, *map(format_cell, columns[1:])] for label, format_cell in shard_rows.items()}
    head = ["no shards", "1 shard", *(f"{count} shards" for count in SHARDS[1:])]
    setting = (
        f"{record['vertices']:,.0f} vertices and arrivals with {model.EDGES_PER_ARRIVAL} edges, 128 dimensions. All "
        f"processes run on one machine with {record['cores']} cores, so more shards than cores only add cost."
    )
    return f"{markdown_table(head, rows)}\n\n{_wrap(setting)}"


def cluster_model() -> str:
    """Return the predictions for many machines, their assumptions, and the check of the model."""
    records = [read_record(name) for name in MODEL_RECORDS]
    if None in records:
        return MISSING
    measured, driver, memory, ids = records
    threads = (read_record("roofline.json") or {}).get("float32_two_over_one", 1.0)
    costs = model.calibrate(measured, driver, threads)
    paragraphs = [
        _describe_limits(costs),
        _describe_check(costs),
        _describe_fit(costs, threads),
        _describe_assumptions(costs),
        _describe_exclusions(memory, ids),
    ]
    text = "\n\n".join([_predictions_table(costs, memory, ids), *map(_wrap, paragraphs)])
    return (
        f"{text}\n\n![Edges per second by number of machines](../results/{PICTURE})"
        if (RESULTS / PICTURE).exists()
        else text
    )


def _predictions_table(costs: model.CostModel, memory: Any, ids: Any) -> str:
    rows: dict[str, list[str]] = {}
    for batch in model.BATCHES:
        many = [model.predict(costs, machines, batch) for machines in model.MACHINES]
        rows |= {
            f"**batches of {batch:,} edges**: edges/s": [_count(one.edges_per_second) for one in many],
            f"arrivals/s ({batch:,})": [_count(one.arrivals_per_second) for one in many],
            f"time of a batch ({batch:,})": [_time(one.seconds) for one in many],
            f"longest phase ({batch:,})": [
                space_percent_signs(f"{one.limit}, {one.share(one.limit):.0%}") for one in many
            ],
            f"MB/s sent per machine ({batch:,})": [f"{model.network_rate(costs, one) / 1e6:,.1f}" for one in many],
        }
    largest = model.BATCHES[-1]
    cautious = [model.predict(costs.cautious, machines, largest) for machines in model.MACHINES]
    rows[f"edges/s, cautious estimate ({largest:,})"] = [_count(one.edges_per_second) for one in cautious]
    rows["edges/s if only the driver's own work took time"] = [
        _count(model.driver_limit(costs, machines)) for machines in model.MACHINES
    ]
    rows["memory per machine"] = [
        f"{model.machine_bytes(memory, ids, machines) / model.GIB:.1f} GiB" for machines in model.MACHINES
    ]
    return markdown_table([f"{machines} machines" for machines in model.MACHINES], rows)


def _describe_limits(costs: model.CostModel) -> str:
    """Return a paragraph about the driver's share of the time, and whether more machines help."""
    batch = model.BATCHES[-1]
    many = [model.predict(costs, machines, batch) for machines in model.MACHINES]
    best = max(many, key=lambda one: one.edges_per_second)
    share = " and ".join(f"{one.share(*model.DRIVER_COSTS):.0%}" for one in (many[0], many[-1]))
    text = (
        f"The driver is one process. With batches of {batch:,} edges on {many[0].machines} and on "
        f"{many[-1].machines} machines, its calls, its own work and its network link take {share} of the time."
    )
    if best.machines < model.MACHINES[-1]:
        text += f" More than {best.machines} machines add memory but no speed{REASONS.get(many[-1].limit, '')}."
    return text


def _describe_check(costs: model.CostModel) -> str:
    text = (
        f"**Check.** The work was not fitted to measurements with {model.CHECK} shards. For batches of "
        f"{model.LARGEST:,} arrivals on {model.CHECK} shards, the model predicts {abs(costs.check):.0%} "
        f"{'more' if costs.check > 0 else 'less'} time and {abs(costs.traffic_check):.1%} "
        f"{'more' if costs.traffic_check > 0 else 'less'} traffic than measured."
    )
    return text + (" Regard the table as an order of magnitude." if abs(costs.check) > MAX_ERROR else "")


def _describe_fit(costs: model.CostModel, threads: float) -> str:
    return (
        f"**Fitted values.** A batch of one arrival takes {_time(costs.call)}, plus {_time(costs.shard)} per shard and "
        f"{_time(costs.pair)} per pair of shards. A large batch needs {costs.calls:.0f} calls, "
        f"{costs.calls_over_one:.1f} × as many as a single arrival. An arrival takes {1e6 * costs.serial:.1f} µs "
        f"of the driver, plus {1e6 * costs.serial_per_shard:.2f} µs per shard, and {1e6 * costs.work:.1f} µs of work. "
        f"If all neighbors were on other shards, exchanging rows would take {1e6 * costs.exchange:.1f} µs and "
        f"{costs.sent:,.0f} bytes per arrival, with float32 rows. A single shard on two cores is assumed to gain the "
        f"same as one machine, {threads:.2f} ×."
    )


def _describe_assumptions(costs: model.CostModel) -> str:
    fast = model.predict(costs, 64, model.BATCHES[-1], gain=4).edges_per_second
    slow = model.predict(costs, 64, model.BATCHES[-1]).edges_per_second
    return (
        f"**Assumptions, not measured.** The graph has {model.VERTICES:,} vertices and {model.EDGES:,} edges. Every "
        "machine has one shard, which works at the speed of one thread (four times this speed would make 64 machines "
        f"{fast / slow:.2f} × as fast). A machine has {8 * model.LINK / 1e9:.0f} Gbit/s, and a call to another machine "
        f"takes {1e3 * model.LATENCY:.1f} ms longer. Vertices are distributed evenly, an arrival costs the same as on "
        "the small graph, and nothing overlaps. Rows are stored and sent as float16; ids are text. The cautious "
        "estimate attributes all time that two shards did not save to the driver instead of the exchange of rows."
    )


def _describe_exclusions(memory: Any, ids: Any) -> str:
    whole = model.state_bytes(memory, ids) / model.GIB
    return (
        "**Not included.** The model does not include anchors and snapshots. A snapshot of the whole state of "
        f"{whole:,.0f} GiB passes through the driver to its disk, one shard after the other. The network link of the "
        f"driver alone needs {whole * model.GIB / model.LINK:,.0f} s for it."
    )


def _edges(arrivals: int) -> str:
    return f"{arrivals * model.EDGES_PER_ARRIVAL:,} edges"


def _count(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def _ratio(value: float) -> str:
    return f"{value:.2g} ×" if value >= 0.01 else f"{value:.1g} ×"


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} µs"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _wrap(text: str) -> str:
    return fill(space_percent_signs(text), 120, break_long_words=False, break_on_hyphens=False)


def _strip_prefix(prefix: str, record: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in record.items() if name.startswith(prefix)}
