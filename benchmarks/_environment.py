"""An environment of its own for what a benchmark compares with, from PyPI, and what runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path


def install(folder: Path, requirements: Sequence[str], bare: Sequence[str] = ()) -> Path:
    """An environment with these in it, the bare ones without what they ask for; its interpreter."""
    venv.create(folder, with_pip=True)
    python = interpreter(folder)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *requirements], check=True, capture_output=True, text=True)
    if bare:
        subprocess.run([*pip, "--no-deps", *bare], check=True, capture_output=True, text=True)
    return python


def interpreter(folder: Path) -> Path:
    """Where the interpreter of an environment is."""
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def versions(python: Path) -> dict[str, str]:
    """What is installed beside an interpreter."""
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True
    )
    return {package["name"]: package["version"] for package in json.loads(listed.stdout)}


def own_variables(**more: str) -> dict[str, str]:
    """The variables of this process for one in another environment: without the path of our modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
