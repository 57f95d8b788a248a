"""Records of results: one JSON file per study, rewritten after every trial, with the environment of each trial.

In the file, the trials are called `cells` and their metrics `figures`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ripplevec import __version__
from ripplevec.errors import FormatError
from ripplevec.lab.experiments.measurements.base import Configuration, Metrics, TrialResult
from ripplevec.util.checked_directory import atomic_write
from ripplevec.util.parallel import resolve_threads

FORMAT_VERSION = 1
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "gensim", "torch")
PACKAGE_FOLDER = Path(__file__).parents[2]  # src/ripplevec


@dataclass(frozen=True, slots=True)
class Record:
    """The finished trials of a study by configuration key, and the environments they ran in."""

    path: Path
    trials: dict[str, dict[str, Any]] = field(default_factory=dict)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a record file; return an empty record if the file does not exist."""
        if not path.exists():
            return cls(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT_VERSION:
                raise FormatError(
                    f"{path}: expected a record of format {FORMAT_VERSION}, got {content['format']}. "
                    "Move the file away."
                )
            return cls(
                path,
                {configuration_key(trial["configuration"]): trial for trial in content["cells"]},
                content["environments"],
            )
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{path}: expected the record of a study, got {error!r}. Move the file away.") from error

    def __contains__(self, configuration: Configuration) -> bool:
        return configuration_key(configuration) in self.trials

    def metrics(self, configuration: Configuration) -> Metrics | None:
        """Return the metrics of a trial, or None if it has not been run."""
        trial = self.trials.get(configuration_key(configuration))
        return None if trial is None else trial["figures"]

    def add(
        self, configuration: Configuration, result: TrialResult, seconds: float, environment: dict[str, Any]
    ) -> None:
        """Add a trial, replacing an earlier one of the same configuration, and write the file."""
        name = hashlib.blake2b(json.dumps(environment, sort_keys=True).encode(), digest_size=4).hexdigest()
        self.environments[name] = environment
        self.trials[configuration_key(configuration)] = {
            "configuration": configuration,
            "figures": result.metrics,
            "parameters": result.parameters,
            "seconds": seconds,
            "environment": name,
        }
        self.write()

    def write(self) -> None:
        """Write the file atomically; environments that no trial refers to are dropped."""
        used = {trial["environment"] for trial in self.trials.values()}
        content = {
            "format": FORMAT_VERSION,
            "environments": {name: value for name, value in self.environments.items() if name in used},
            "cells": list(self.trials.values()),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as part:
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def configuration_key(configuration: Configuration) -> str:
    """Return a text that identifies a configuration, independent of the order of its keys."""
    return json.dumps(configuration, sort_keys=True)


def describe_environment() -> dict[str, Any]:
    """Return what metrics may depend on besides the configuration: versions, machine, source commit."""
    return {
        "versions": {"ripplevec": __version__, "python": platform.python_version(), **_library_versions()},
        "machine": {"cpu": _cpu_model(), "cores": resolve_threads(None), "system": platform.system()},
        "commit": _run_git("log", "-1", "--format=%H", "--", "."),
        "modified": bool(_run_git("status", "--porcelain", "--", ".")),
    }


def _library_versions() -> dict[str, str]:
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _run_git(*arguments: str) -> str | None:
    """Return the output of a git command in the package folder; None outside a repository or without git."""
    try:
        completed = subprocess.run(
            ["git", *arguments], cwd=PACKAGE_FOLDER, capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip() or None
