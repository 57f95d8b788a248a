"""Block `tested` of docs/durability.md: the durability tests of Ripplevec and of other stores."""

from __future__ import annotations

from blocks.records import read_record

NONE = "–"


def tested() -> str:
    """Return a table with a row per kind of test: four other projects, this project and its results."""
    rows = [
        (
            "simulated power failures",
            "a simulated file system loses, reorders or damages unflushed data",
            "simulated machines lose power and unflushed data",
            NONE,
            NONE,
            "logged file operations are replayed up to a point, with five kinds of loss",
            _power_cuts(),
        ),
        (
            "I/O errors",
            "every operation fails once",
            "simulated disks fail",
            "files of a running broker become unreadable",
            NONE,
            "a call fails (EIO, ENOSPC, short write), once or permanently",
            _io_errors(),
        ),
        (
            "out of memory",
            "every allocation fails once",
            NONE,
            NONE,
            NONE,
            "every allocation of a batch fails once",
            _allocations(),
        ),
        (
            "deterministic simulation",
            NONE,
            "the whole cluster, determined by a seed",
            "the consensus protocol",
            NONE,
            "writer, anchors, readers, followers and sink, in an order determined by a seed",
            _schedules(),
        ),
        (
            "fuzzing",
            "SQL statements and database files",
            NONE,
            NONE,
            NONE,
            "damaged files; manipulated saved models with valid checksums; random streams",
            _fuzzing(),
        ),
        (
            "kills",
            "a process dies in the middle of a write",
            "simulated machines and data centers reboot",
            "brokers are killed in system tests",
            "instances are killed repeatedly",
            "SIGKILL at random and at chosen times",
            _kills(),
        ),
        (
            "soak",
            "hundreds of millions of tests before every release",
            "simulations every night",
            "clusters under long load",
            "a cluster under load and failures",
            "a service under writes, reads and kills",
            _soak(),
        ),
    ]
    head = ["test", "SQLite", "FoundationDB", "Kafka", "Qdrant", "Ripplevec", "result"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _power_cuts() -> str:
    record = read_record("power_cuts.json")
    if record is None:
        return NONE
    operations = sum(count for kind, count in record["operations"].items() if kind not in ("acknowledged", "saved"))
    return f"{record['points']:,} power failures over {operations:,} operations, {len(record['faults'])} faults"


def _io_errors() -> str:
    record = read_record("io_errors.json")
    return NONE if record is None else f"{record['calls']:,} failures, {len(record['faults'])} faults"


def _fuzzing() -> str:
    files, models, streams = (read_record(f"{name}_fuzz.json") for name in ("file", "load", "stream"))
    if files is None or models is None or streams is None:
        return NONE
    faults = len(files["faults"]) + len(models["faults"]) + streams["faults"]
    return f"{files['cases']:,} files, {models['cases']:,} models, {streams['streams']:,} streams, {faults} faults"


def _kills() -> str:
    record = read_record("crash.json")
    return NONE if record is None else f"{record['kills']:,} kills, {len(record['faults'])} faults"


def _soak() -> str:
    record = read_record("soak.json")
    if record is None:
        return NONE
    overall = record["overall"]
    return f"{record['hours']:.2f} hours, {overall['killed']} kills, {len(overall['faults'])} faults"


def _allocations() -> str:
    record = read_record("allocations.json")
    return NONE if record is None else f"{record['allocations']:,} failures, {len(record['faults'])} faults"


def _schedules() -> str:
    record = read_record("schedules.json")
    return NONE if record is None else f"{record['schedules']:,} schedules, {len(record['faults'])} faults"
