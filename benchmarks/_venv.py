"""Virtual environments for the systems that a benchmark compares with, installed from PyPI."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path


def create_venv(folder: Path, requirements: Sequence[str], without_dependencies: Sequence[str] = ()) -> Path:
    """Create a virtual environment with these packages and return its interpreter."""
    venv.create(folder, with_pip=True)
    python = interpreter_path(folder)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *requirements], check=True, capture_output=True, text=True)
    if without_dependencies:
        subprocess.run([*pip, "--no-deps", *without_dependencies], check=True, capture_output=True, text=True)
    return python


def interpreter_path(folder: Path) -> Path:
    """Return the path of the interpreter of a virtual environment."""
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def list_versions(python: Path) -> dict[str, str]:
    """Return the versions of the packages that are installed for an interpreter."""
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=json"], check=True, capture_output=True, text=True
    )
    return {package["name"]: package["version"] for package in json.loads(listed.stdout)}


def isolated_variables(**more: str) -> dict[str, str]:
    """Return environment variables for a process in another virtual environment: without our PYTHONPATH."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
