"""Blocks of docs/cluster.md: the cost of shards on one machine, and a model of many machines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from blocks.records import MISSING, RESULTS, ROOT, markdown_table, read_record, space_percent_signs

sys.path.append(str(ROOT / "benchmarks"))  # the cost model is next to the benchmark it is fitted to

import _cluster_model as model

SHARDS, SIZES = (1, 2, 4, 8), (1, 200, 20_000)
PICTURE = "figures/scaling.svg"
MAX_ERROR = 0.2  # larger relative errors of the check are pointed out
ARRIVAL_GOAL = 0.008  # seconds of a batch of one arrival on two shards
MACHINE_GOALS = {16: 8.0, 64: 25.0}  # goals for the throughput in the largest batches
MODEL_RECORDS = ("cluster.json", "messages.json", "memory.json", "ids.json")


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
    if "load" in record:
        setting += f" The load average was {record['load']:.1f} (median, including the benchmark)."
    two = columns[1 + SHARDS.index(2)]
    paragraphs = [setting]
    if all(f"driver_{size}" in alone and f"processor_{size}" in two for size in SIZES):
        paragraphs.append(_describe_processor_time(alone, two, record["cores"]))
    return "\n\n".join([markdown_table(head, rows), *map(_wrap, paragraphs)])


def _describe_processor_time(alone: dict[str, Any], two: dict[str, Any], cores: int) -> str:
    """Return a paragraph about what limits two shards: their processor time, and how long they wait."""
    smallest, small, large = SIZES
    work = {size: two[f"driver_{size}"] + two[f"processor_{size}"] for size in SIZES}
    work_alone, reachable = alone[f"driver_{large}"], alone[f"seconds_{large}"] * cores / work[large]
    return (
        f"**What limits two shards.** For {_edges(large)}, driver and shards take {_time(work[large])} of processor "
        f"time, {work[large] / work_alone:.1f} times that of a model without shards ({_time(work_alone)}): ids are "
        "sent to their shards, every endpoint is entered with the number of the other one, and rows are packed, sent "
        f"and received. Even if they never waited for each other, two shards on {cores} cores would reach only "
        f"{reachable:.2f} × of the throughput. They do wait: the cores are idle for "
        f"{1 - work[large] / cores / two[f'seconds_{large}']:.0%} of the time. Small batches are limited by costs that "
        f"do not depend on their size: a single arrival takes {_time(work[smallest])} of processor time, "
        f"{_edges(small)} take {_time(work[small])}."
    )


def cluster_goals() -> str:
    """Return the goals for shards, the values reached, and what bounds the predictions for many machines."""
    measured, messages = read_record("cluster.json"), read_record("messages.json")
    if measured is None or messages is None or not model.can_calibrate(measured, messages):
        return MISSING
    costs = _calibrate(measured, messages)
    small, large = SIZES[1:]
    rows = {
        f"throughput of two shards, {_edges(size)} per batch": _compare(measured[f"shards_2_of_single_{size}"], goal)
        for size, goal in ((large, 0.8), (small, 0.2))
    }
    seconds = measured["shards_2_seconds_1"]
    met = "yes" if seconds <= ARRIVAL_GOAL else "**no**"
    rows["time of a batch of one arrival on two shards"] = [_time(ARRIVAL_GOAL), _time(seconds), met]
    batch, alone = model.BATCHES[-1], model.single_machine_rate(measured)
    for machines, goal in MACHINE_GOALS.items():
        predicted = model.predict(costs, machines, batch).edges_per_second / alone
        rows[f"predicted throughput of {machines} machines, {batch:,} edges per batch"] = _compare(predicted, goal)
    return f"{markdown_table(['goal', 'reached', 'met'], rows)}\n\n{_wrap(_describe_work(costs))}"


def _compare(reached: float, goal: float) -> list[str]:
    """Return the cells of a goal for a throughput."""
    digits = 1 if goal > 1 else 2
    return [f"{goal:g} ×", f"{reached:.{digits}f} ×", "yes" if reached >= goal else "**no**"]


def _describe_work(costs: model.CostModel) -> str:
    """Return a paragraph about the work per arrival, which bounds the throughput of many machines."""
    more = {machines: 1 + costs.remote * model.remote_share(machines) / costs.work for machines in MACHINE_GOALS}
    factors = " and ".join(f"{factor:.1f} on {machines} machines" for machines, factor in more.items())
    bounds = " and ".join(f"{machines / factor:.0f} ×" for machines, factor in more.items())
    return (
        "**What limits many machines.** Almost all neighbors of an arrival are on other machines then. Sending and "
        f"receiving their rows multiplies the work per arrival by {factors}. Even if messages took no time, the "
        f"throughput could not exceed {bounds}. With more machines, each has less work per batch, but every exchange "
        "still has a message for each of the others."
    )


def _calibrate(measured: Any, messages: Any) -> model.CostModel:
    """Return the cost model, fitted to the records."""
    return model.calibrate(measured, messages, (read_record("roofline.json") or {}).get("float32_two_over_one", 1.0))


def cluster_model() -> str:
    """Return the predictions for many machines, their assumptions, and the check of the model."""
    records = [read_record(name) for name in MODEL_RECORDS]
    measured, messages, memory, ids = records
    if None in records or not model.can_calibrate(measured, messages):
        return MISSING
    costs = _calibrate(measured, messages)
    paragraphs = [
        _describe_limits(costs, measured),
        _describe_check(costs),
        _describe_fit(costs),
        _describe_assumptions(),
        _describe_exclusions(memory, ids),
    ]
    text = "\n\n".join([_predictions_table(costs, measured, memory, ids), *map(_wrap, paragraphs)])
    return (
        f"{text}\n\n![Edges per second by number of machines](../results/{PICTURE})"
        if (RESULTS / PICTURE).exists()
        else text
    )


def _predictions_table(costs: model.CostModel, measured: Any, memory: Any, ids: Any) -> str:
    rows: dict[str, list[str]] = {}
    alone = model.single_machine_rate(measured)
    for batch in model.BATCHES:
        many = [model.predict(costs, machines, batch) for machines in model.MACHINES]
        rows |= {
            f"**batches of {batch:,} edges**: edges/s": [_count(one.edges_per_second) for one in many],
            f"relative to one machine without shards ({batch:,})": [
                f"{one.edges_per_second / alone:.1f} ×" for one in many
            ],
            f"time of a batch ({batch:,})": [_time(one.seconds) for one in many],
            f"longest phase ({batch:,})": [
                space_percent_signs(f"{one.limit}, {one.share(one.limit):.0%}") for one in many
            ],
        }
    rows["memory per machine"] = [
        f"{model.machine_bytes(memory, ids, machines) / model.GIB:.1f} GiB" for machines in model.MACHINES
    ]
    return markdown_table([f"{machines} machines" for machines in model.MACHINES], rows)


def _describe_limits(costs: model.CostModel, measured: Any) -> str:
    """Return a paragraph about the parts of the time on the most machines."""
    batch, machines = model.BATCHES[-1], model.MACHINES[-1]
    prediction = model.predict(costs, machines, batch)
    parts = sorted(prediction.pieces, key=prediction.pieces.__getitem__, reverse=True)
    shares = ", ".join(f"{name} {prediction.share(name):.0%}" for name in parts)
    arrivals, alone = batch // model.EDGES_PER_ARRIVAL, model.single_machine_rate(measured)
    on_small = [model.predict(costs, count, batch, large=False).edges_per_second / alone for count in model.MACHINES]
    return (
        f"With batches of {batch:,} edges on {machines} machines, the time consists of: {shares}. Such a batch takes "
        f"{costs.count_exchanges(machines, arrivals, large=True):,} exchanges, in each of which a shard sends a "
        "message to every other one. They were counted with as few edges between new vertices as on the graph assumed "
        "below. On the small graph of the measurements, where many edges connect new vertices, it takes "
        f"{costs.count_exchanges(machines, arrivals):,} exchanges, and the speeds would be "
        f"{', '.join(f'{speed:.1f} ×' for speed in on_small)}. The driver makes one call for any number of shards."
    )


def _describe_check(costs: model.CostModel) -> str:
    processor = _list_errors(model.CHECKS, costs.processor_errors)
    elapsed = _list_errors(model.SHARDS, costs.elapsed_errors)
    text = (
        f"**Check.** The work was fitted to one and two shards only. For batches of {model.LARGEST:,} arrivals, the "
        f"model predicts this much processor time relative to the measured one: {processor}. If processor time is "
        f"divided by the cores of this machine, it predicts this much elapsed time: {elapsed}."
    )
    inaccurate = max(map(abs, (*costs.processor_errors, *costs.elapsed_errors))) > MAX_ERROR
    return text + (" Regard the table as an order of magnitude." if inaccurate else "")


def _list_errors(shards: Sequence[int], errors: Sequence[float]) -> str:
    return ", ".join(
        f"{abs(error):.0%} {'more' if error > 0 else 'less'} on {count} shard{'s' * (count > 1)}"
        for count, error in zip(shards, errors, strict=True)
    )


def _describe_fit(costs: model.CostModel) -> str:
    return (
        f"**Fitted values.** A call takes {_time(costs.call)}. The rest is processor time: an exchange takes a shard "
        f"{_time(costs.exchange)} plus {_time(costs.message)} per message, and an arrival takes the shards "
        f"{1e6 * costs.work:.1f} µs of work, and the driver {1e6 * costs.driver:.2f} µs. If all neighbors were on "
        f"other shards, an arrival would take {1e6 * costs.remote:.1f} µs more. A shard with two cores of its own is "
        f"assumed to gain the same from the second one as a model without shards, {costs.threads:.2f} ×."
    )


def _describe_assumptions() -> str:
    return (
        f"**Assumptions, not measured.** The graph has {model.VERTICES:,} vertices and {model.EDGES:,} edges. Every "
        f"machine has one shard, two cores and a link of {8 * model.LINK / 1e9:.0f} Gbit/s, and a message takes "
        f"{1e3 * model.LATENCY:.2f} ms longer between machines. Vertices are distributed evenly, an arrival costs the "
        "same as on the small graph, and nothing overlaps. Rows are stored and sent as float16; ids are text."
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
