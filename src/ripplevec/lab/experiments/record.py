"""What was measured, by what, where: one JSON file per study, rewritten whole after every cell."""

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
from ripplevec.io.atomic_file import atomic_write
from ripplevec.lab.experiments.kinds.base import Configuration, Figures, Measured
from ripplevec.util.parallel import resolve_threads

FORMAT = 1
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "gensim")
SOURCE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of a study that have been run, by the text of their configuration."""

    path: Path
    cells: dict[str, dict[str, Any]] = field(default_factory=dict)
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Record:
        """What the file holds; nothing where there is no file yet."""
        if not path.exists():
            return cls(path)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise FormatError(
                    f"{path}: expected a record of format {FORMAT}, got {content['format']}; move it away"
                )
            return cls(
                path, {key_of(cell["configuration"]): cell for cell in content["cells"]}, content["environments"]
            )
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{path}: expected the record of a study, got {error!r}; move it away") from error

    def __contains__(self, configuration: Configuration) -> bool:
        return key_of(configuration) in self.cells

    def figures(self, configuration: Configuration) -> Figures | None:
        """What a cell came to, if it has been run."""
        cell = self.cells.get(key_of(configuration))
        return None if cell is None else cell["figures"]

    def add(self, configuration: Configuration, measured: Measured, seconds: float, where: dict[str, Any]) -> None:
        """Note a cell, in place of an earlier one of the same configuration, and write the file."""
        name = hashlib.blake2b(json.dumps(where, sort_keys=True).encode(), digest_size=4).hexdigest()
        self.environments[name] = where
        self.cells[key_of(configuration)] = {
            "configuration": configuration,
            "figures": measured.figures,
            "parameters": measured.parameters,
            "seconds": seconds,
            "environment": name,
        }
        self.write()

    def write(self) -> None:
        """Write the file, whole or not at all; environments that no cell refers to any more are left out."""
        used = {cell["environment"] for cell in self.cells.values()}
        content = {
            "format": FORMAT,
            "environments": {name: where for name, where in self.environments.items() if name in used},
            "cells": list(self.cells.values()),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as part:
            part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def key_of(configuration: Configuration) -> str:
    """The same text for the same configuration, whatever the order it was written in."""
    return json.dumps(configuration, sort_keys=True)


def environment() -> dict[str, Any]:
    """What figures may depend on besides the configuration: versions, machine, commit of the source."""
    return {
        "versions": {"ripplevec": __version__, "python": platform.python_version(), **_versions()},
        "machine": {"cpu": _cpu(), "cores": resolve_threads(None), "system": platform.system()},
        "commit": _git("log", "-1", "--format=%H", "--", "."),
        "modified": bool(_git("status", "--porcelain", "--", ".")),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def _git(*arguments: str) -> str | None:
    """What git says of the source; nothing where it is not under version control or git is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=SOURCE, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
