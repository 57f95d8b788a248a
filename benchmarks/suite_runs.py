"""Run the test suite repeatedly beside other work, to find tests that fail only on a busy machine.

    python benchmarks/suite_runs.py [--runs 1] [--busy 2] [--json FILE] [PYTEST_ARGUMENT ...]

While the suite runs with one process per core, other processes (`--busy`) compute without a pause. The record lists,
for every run, the numbers of tests, the names of those that failed, the minutes and the mean load average. Later calls
add their runs to it. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from ripplevec.lab.experiments.record import describe_environment

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_SECONDS = 5.0


def compute_forever() -> None:
    """Keep a core busy until the process is terminated."""
    while True:
        sum(range(100_000))


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run processes that compute without a pause."""
    processes = [multiprocessing.Process(target=compute_forever, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.join()


def run_suite(busy: int, arguments: list[str]) -> dict[str, Any]:
    """Run the suite once beside busy processes; return the description of the run."""
    with tempfile.TemporaryDirectory() as folder, busy_processes(busy):
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *arguments]
        began, loads = time.monotonic(), []
        suite = subprocess.Popen([*command, f"--junitxml={report}"], cwd=ROOT)
        try:
            while suite.poll() is None:
                loads.append(os.getloadavg()[0])
                time.sleep(SAMPLE_SECONDS)
        finally:
            suite.terminate()  # does nothing if the suite has ended
        if not report.exists():
            raise SystemExit(f"pytest ended with status {suite.returncode} and wrote no report")
        minutes = (time.monotonic() - began) / 60
        counts = count_tests(report)
    return {
        **counts,
        "exit_code": suite.returncode,
        "minutes": round(minutes, 2),
        "busy_processes": busy,
        "load_average": round(fmean(loads), 2),
        "environment": describe_environment(),
    }


def count_tests(report: Path) -> dict[str, Any]:
    """Return the numbers of passed and skipped tests of a JUnit report, and the names of the failed ones."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return {
        "passed": len(cases) - len(failed) - skipped,
        "skipped": skipped,
        "failed": sorted(f"{case.get('classname')}.{case.get('name')}" for case in failed),
    }


def main() -> int:
    """Parse the options, run the suite, and extend the record after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options, arguments = parser.parse_known_args()
    exit_code = 0
    for _ in range(options.runs):
        run = run_suite(options.busy, arguments)
        print(json.dumps({name: value for name, value in run.items() if name != "environment"}))
        exit_code = exit_code or int(run["exit_code"] != 0)
        if options.json:
            extend_record(options.json, run)
    return exit_code


def extend_record(path: Path, run: dict[str, Any]) -> None:
    """Add a run to the record, and replace the file atomically."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    draft = path.with_name(f"{path.name}.part")
    draft.write_text(json.dumps({"runs": [*runs, run]}, indent=1) + "\n")
    os.replace(draft, path)


if __name__ == "__main__":
    sys.exit(main())
