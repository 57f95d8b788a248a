"""Blocks of docs/scaling.md: the cost of shards on one machine, and a model of many machines."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import Any

from blocks.records import MISSING, RESULTS, ROOT, markdown_table, read_record

sys.path.append(str(ROOT / "benchmarks"))  # the cost model is next to the benchmark it is fitted to

import _cluster_model as model

SHARDS, SIZES = (1, 2, 4), (1, 200, 20_000)
PICTURE = "figures/scaling.svg"
FAR_OFF = 0.2  # a check further off than this is said to be
WHY = {
    model.CALLS: ": the driver calls one shard after the other, and keeps account of what goes between any two of them",
    model.DRIVER: ": the driver goes through a batch once for every shard",
    model.DRIVER_NETWORK: ": the driver sends every shard what all have to know of the newcomers",
}
MODEL_OF = ("cluster.json", "driver.json", "memory.json", "ids.json")


def cluster() -> str:
    """Return seconds, throughput, call cost and traffic on one machine, without shards and with some."""
    found = read_record("cluster.json")
    if found is None:
        return MISSING
    columns: list[dict[str, Any]] = [
        _strip_prefix("single_", found),
        *(_strip_prefix(f"shards_{count}_", found) for count in SHARDS),
    ]
    alone = columns[0]
    rows = {f"a batch of {_edges(size)}": [_time(column[f"seconds_{size}"]) for column in columns] for size in SIZES}
    rows |= {
        f"throughput of {_edges(size)}, over no shards": [
            MISSING,
            *(_ratio(c[f"of_single_{size}"]) for c in columns[1:]),
        ]
        for size in SIZES
    }
    said = {
        "more for any batch": lambda column: _time(column["seconds_1"] - alone["seconds_1"]),
        "sent from shard to shard, an arrival": lambda column: f"{column['bytes_per_arrival']:,.0f} bytes",
        "over the rows that had to be read": lambda column: f"{column['sent_over_needed']:.2f} ×",
        "the same vectors, to the bit": lambda column: "yes" if column["same"] else "**no**",
    }
    rows |= {what: [MISSING, *map(say, columns[1:])] for what, say in said.items()}
    head = ["no shards", "1 shard", *(f"{count} shards" for count in SHARDS[1:])]
    setting = (
        f"{found['vertices']:,.0f} vertices and arrivals with {model.EDGES_PER_ARRIVAL} edges, 128 columns, all "
        f"processes on one machine with {found['cores']} cores: more shards than cores cannot be faster, only dearer."
    )
    return f"{markdown_table(head, rows)}\n\n{_wrapped(setting)}"


def cluster_model() -> str:
    """Return the predictions for many machines, their assumptions, and the check of the model."""
    records = [read_record(name) for name in MODEL_OF]
    if None in records:
        return MISSING
    measured, driver, memory, ids = records
    threads = (read_record("roofline.json") or {}).get("float32_two_over_one", 1.0)
    found = model.calibrate(measured, driver, threads)
    said = [_limits(found), _checked(found), _assumed(found, threads), _left_out(memory, ids)]
    text = "\n\n".join([_predictions(found, memory, ids), *map(_wrapped, said)])
    return f"{text}\n\n![Edges a second](../results/{PICTURE})" if (RESULTS / PICTURE).exists() else text


def _predictions(found: model.CostModel, memory: Any, ids: Any) -> str:
    rows: dict[str, list[str]] = {}
    for batch in model.BATCHES:
        many = [model.predict(found, machines, batch) for machines in model.MACHINES]
        rows |= {
            f"**batches of {batch:,} edges**: edges/s": [_count(one.edges_per_second) for one in many],
            f"arrivals/s ({batch:,})": [_count(one.arrivals_per_second) for one in many],
            f"time of a batch ({batch:,})": [_time(one.seconds) for one in many],
            f"what takes longest ({batch:,})": [f"{one.limit}, {one.share(one.limit):.0%}" for one in many],
            f"MB/s that a machine sends ({batch:,})": [f"{model.network_rate(found, one) / 1e6:,.1f}" for one in many],
        }
    largest = model.BATCHES[-1]
    cautious = [model.predict(found.cautious, machines, largest) for machines in model.MACHINES]
    rows[f"edges/s, cautiously ({largest:,})"] = [_count(one.edges_per_second) for one in cautious]
    rows["edges/s, were there only the driver's own work"] = [
        _count(model.driver_limit(found, machines)) for machines in model.MACHINES
    ]
    rows["memory of a machine"] = [
        f"{model.machine_bytes(memory, ids, machines) / model.GIB:.1f} GiB" for machines in model.MACHINES
    ]
    return markdown_table([f"{machines} machines" for machines in model.MACHINES], rows)


def _limits(found: model.CostModel) -> str:
    """Whether more machines help, and if not, why."""
    batch = model.BATCHES[-1]
    many = [model.predict(found, machines, batch) for machines in model.MACHINES]
    best = max(many, key=lambda one: one.edges_per_second)
    taken = " and ".join(f"{one.share(*model.DRIVER_COSTS):.0%}" for one in (many[0], many[-1]))
    said = (
        f"With batches of {batch:,} edges on {many[0].machines} and on {many[-1].machines} machines, {taken} of the "
        "time is that of the driver, which is one process: its calls, its own work and its link."
    )
    if best.machines < model.MACHINES[-1]:
        said += f" More than {best.machines} machines give room and no speed{WHY.get(many[-1].limit, '')}."
    return said


def _checked(found: model.CostModel) -> str:
    said = (
        f"The check: batches of {model.LARGEST:,} arrivals on {model.CHECK} shards, which the work was not fitted to, "
        f"would take {abs(found.check):.0%} {'longer' if found.check > 0 else 'less'} than they do, and send "
        f"{abs(found.traffic_check):.1%} {'more' if found.traffic_check > 0 else 'less'}."
    )
    return said + (" Take the table for an order of magnitude." if abs(found.check) > FAR_OFF else "")


def _assumed(found: model.CostModel, threads: float) -> str:
    more = model.predict(found, 64, model.BATCHES[-1], gain=4).edges_per_second
    one = model.predict(found, 64, model.BATCHES[-1]).edges_per_second
    return (
        f"Fitted: {_time(found.call)} a batch of one arrival, {_time(found.shard)} more for a shard and "
        f"{_time(found.pair)} for a pair of shards; {found.calls:.0f} calls in a large batch, "
        f"{found.calls_over_one:.1f} × those of a single arrival; for an arrival {1e6 * found.serial:.1f} µs of the "
        f"driver and {1e6 * found.serial_per_shard:.2f} µs for every shard, {1e6 * found.work:.1f} µs of work, "
        f"{1e6 * found.exchange:.1f} µs of exchanging rows were all neighbors elsewhere, and {found.sent:,.0f} bytes, "
        f"with float32 rows; a shard alone on two cores is taken to gain what one machine does, {threads:.2f} ×. "
        f"Assumed, not measured: one shard per machine; of its threads the speed of one (four times that would make 64 "
        f"machines {more / one:.2f} × as fast); "
        f"{8 * model.LINK / 1e9:.0f} Gbit/s a machine and {1e3 * model.LATENCY:.1f} ms more for a call; vertices fall "
        "evenly to machines; an arrival costs what it costs on the small graph; nothing overlaps. Cautiously: what two "
        "shards did not speed up is held to be the driver's, not the exchange of rows. "
        "Rows are kept and sent as float16, names are text."
    )


def _left_out(memory: Any, ids: Any) -> str:
    whole = model.state_bytes(memory, ids) / model.GIB
    return (
        f"Left out: anchors, and snapshots. A snapshot of all {whole:,.0f} GiB goes through the driver, one shard "
        f"after the other, and to its disk: over its link alone that takes {whole * model.GIB / model.LINK:,.0f} s."
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


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _strip_prefix(prefix: str, found: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
