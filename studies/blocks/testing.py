"""What others test of a store, what is tested here, and the figures."""

from __future__ import annotations

from blocks.records import read_record

NONE = "–"


def tested() -> str:
    """A table: per kind of test, what four projects are known for, what is done here, and what came of it."""
    rows = [
        (
            "power cuts, simulated",
            "a file system of its own loses, reorders or damages what was not flushed",
            "machines of a simulated cluster lose power and what was not flushed",
            NONE,
            NONE,
            "file operations traced, then replayed up to a point under five policies of loss",
            _power_cuts(),
        ),
        (
            "I/O errors",
            "every operation fails in its turn",
            "simulated disks fail",
            "files made unreadable under a broker",
            NONE,
            "a call fails (EIO, ENOSPC, a short write), once or from then on",
            _io_errors(),
        ),
        (
            "out of memory",
            "every allocation fails in its turn",
            NONE,
            NONE,
            NONE,
            "every allocation of a batch",
            _allocations(),
        ),
        (
            "deterministic simulation",
            NONE,
            "the whole cluster, from a seed",
            "the consensus protocol",
            NONE,
            "writer, correction, readers, followers and sink, interleaved from a seed",
            _schedules(),
        ),
        (
            "fuzzing",
            "statements and database files",
            NONE,
            NONE,
            NONE,
            "whole files damaged; saved models tampered with, checksums included",
            _fuzzing(),
        ),
        (
            "kills",
            "a process dies in the middle of a write",
            "machines and data centers reboot in simulation",
            "brokers are killed in system tests",
            "instances are killed again and again",
            "SIGKILL at random times and at chosen moments",
            _kills(),
        ),
        (
            "soak",
            "hundreds of millions of tests before a release",
            "simulations every night",
            "clusters under load for long",
            "a cluster under load and failures",
            "a service under traffic, reads and kills",
            _soak(),
        ),
    ]
    head = ["", "SQLite", "FoundationDB", "Kafka", "Qdrant", "here", "figures"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _power_cuts() -> str:
    found = read_record("power_cuts.json")
    if found is None:
        return NONE
    operations = sum(count for kind, count in found["operations"].items() if kind not in ("acknowledged", "saved"))
    return f"{found['points']:,} cuts over {operations:,} operations, {len(found['faults'])} faults"


def _io_errors() -> str:
    found = read_record("io_errors.json")
    return NONE if found is None else f"{found['calls']:,} failures, {len(found['faults'])} faults"


def _fuzzing() -> str:
    files, models = read_record("file_fuzz.json"), read_record("load_fuzz.json")
    if files is None or models is None:
        return NONE
    faults = len(files["faults"]) + len(models["faults"])
    return f"{files['cases']:,} files, {models['cases']:,} models, {faults} faults"


def _kills() -> str:
    found = read_record("crash.json")
    return NONE if found is None else f"{found['kills']:,} kills, {len(found['faults'])} faults"


def _soak() -> str:
    found = read_record("soak.json")
    return (
        NONE
        if found is None
        else f"{found['minutes']:g} minutes, {found['killed']} kills, {len(found['faults'])} faults"
    )


def _allocations() -> str:
    found = read_record("allocations.json")
    return NONE if found is None else f"{found['allocations']:,} failures, {len(found['faults'])} faults"


def _schedules() -> str:
    found = read_record("schedules.json")
    return NONE if found is None else f"{found['schedules']:,} schedules, {len(found['faults'])} faults"
