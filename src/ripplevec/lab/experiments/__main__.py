"""Command line to run one study: `python -m ripplevec.lab.experiments studies/quality.yaml`.

It writes the record, the tables and the pictures of the study.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ripplevec.errors import InvalidValueError, RipplevecError
from ripplevec.lab.experiments.reproduce import RunOptions, run_study
from ripplevec.lab.experiments.study import load_study


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, run the study and write its report."""
    options = _build_parser().parse_args(arguments)
    try:
        folder = options.results or options.study.resolve().parents[1] / "results"
        run_options = RunOptions(parse_filter(options.only), options.again, options.jobs)
        run_study(load_study(options.study, folder), folder, run_options)
    except (RipplevecError, OSError) as error:
        sys.exit(f"ripplevec.lab.experiments: {error}")


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ripplevec.lab.experiments", description=__doc__)
    parser.add_argument("study", type=Path, help="YAML file of the study")
    parser.add_argument(
        "--only", default="", help="run only matching trials, for example start=0.5,seed=0,dataset=cora"
    )
    parser.add_argument("--again", action="store_true", help="also run recorded trials, and replace their results")
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of trials to run in parallel processes (default: 1)"
    )
    parser.add_argument(
        "--results", type=Path, help="folder of the records (default: results/ next to the folder of the study)"
    )
    return parser


def parse_filter(only: str) -> dict[str, str]:
    """Return the names and values of `--only`."""
    parts = re.split(r",(?=\s*\w+=)", only)  # values may contain commas
    pairs = [part.partition("=") for part in parts if part]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidValueError.of("--only", "name=value pairs, separated by commas", name)
    return {name.strip(): value.strip() for name, _, value in pairs}


if __name__ == "__main__":
    main()
