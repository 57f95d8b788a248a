"""Exhaustive runs of the tests that fail every allocation once and that run threads in many seeded orders.

    python benchmarks/fault_injection.py [--seeds 3000] [--results results]

`make test` runs both with samples. This script fails every NumPy allocation of every case, tries many seeds of the
deterministic scheduler, and writes `allocations.json` and `schedules.json` for the table in docs/durability.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from _report import write_record

ROOT = Path(__file__).parents[1]
EVERY = 1_000_000  # more than there are allocations in any case


def run_tests(selection: str, environment: dict[str, str], counted: str) -> dict[str, Any]:
    """Run the selected tests; return the sum of the property they report, and the names of failed tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-n0",
            "-p",
            "no:cacheprovider",
            "--timeout=0",
            "-o",
            "junit_family=xunit1",
            f"--junitxml={report}",
        ]
        command = [sys.executable, "-m", "pytest", *options, *selection.split()]
        subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    properties = [found for case in cases for found in case.iter("property") if found.get("name") == counted]
    failed = [
        str(case.get("name")) for case in cases if case.find("failure") is not None or case.find("error") is not None
    ]
    if not properties and not failed:
        raise SystemExit(f"no test reported {counted}: {selection}")
    return {counted: sum(int(str(found.get("value"))) for found in properties), "faults": failed}


def main() -> None:
    """Run both kinds of tests and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3_000)
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    allocations = "tests/test_interrupted.py -k failed_allocation"
    schedules = "tests/test_interleavings.py -k of_all_threads"
    records = {
        "allocations": run_tests(allocations, {"RIPPLEVEC_INTERRUPTS": str(EVERY)}, "allocations"),
        "schedules": run_tests(schedules, {"RIPPLEVEC_SEEDS": str(options.seeds)}, "schedules"),
    }
    for name, record in records.items():
        print(f"{name}: {record[name]:,}, {len(record['faults'])} faults")
        write_record(options.results / f"{name}.json", record)
    raise SystemExit(any(record["faults"] for record in records.values()))


if __name__ == "__main__":
    main()
