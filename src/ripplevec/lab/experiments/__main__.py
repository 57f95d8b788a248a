"""`python -m ripplevec.lab.experiments studies/quality.yaml`: run a study, write its record and its report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ripplevec.errors import InvalidValueError, RipplevecError
from ripplevec.lab.experiments.reproduce import Choice, carry_out
from ripplevec.lab.experiments.spec import load


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, report."""
    options = _parser().parse_args(arguments)
    try:
        folder = options.results or options.study.resolve().parents[1] / "results"
        carry_out(load(options.study, folder), folder, Choice(_wanted(options.only), options.again, options.jobs))
    except (RipplevecError, OSError) as error:
        sys.exit(f"ripplevec.lab.experiments: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ripplevec.lab.experiments", description=__doc__)
    parser.add_argument("study", type=Path, help="the YAML file of a study")
    parser.add_argument("--only", default="", help="run only some cells, such as start=0.5,seed=0,dataset=cora")
    parser.add_argument("--again", action="store_true", help="also run what is recorded, and replace it")
    parser.add_argument("--jobs", type=int, default=1, help="how many cells run side by side, in processes (1)")
    parser.add_argument("--results", type=Path, help="where the record lies (results/ beside the folder of the study)")
    return parser


def _wanted(only: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in only.split(",") if part]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidValueError.of("--only", "name=value, separated by commas", name)
    return {name.strip(): value.strip() for name, _, value in pairs}


if __name__ == "__main__":
    main()
