"""What a package index gets: a wheel with all of the package and nothing else, an sdist that makes the same wheel."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ripplevec import __version__

ROOT = Path(__file__).resolve().parents[2]
LARGEST_WHEEL = 1_000_000
LARGEST_SDIST = 5_000_000
NEEDED = {"numba", "numpy", "pyarrow", "rich", "scipy", "threadpoolctl", "typer"}

pytest.importorskip("hatchling")


def built(kind: str, tree: Path, folder: Path) -> Path:
    """One of the two, made from a tree, without fetching anything."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as files:
        return email.message_from_bytes(files.read(f"ripplevec-{__version__}.dist-info/METADATA"))


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as files:
        return {name for name in files.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_the_package_and_the_studies(wheel):
    sources = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    package = {path.relative_to(ROOT / "src").as_posix() for path in sources}
    studies = {f"ripplevec/studies/{path.name}" for path in (ROOT / "studies").glob("*.yaml")}
    assert contents(wheel) == package | studies


def test_the_wheel_holds_what_is_not_python_too(wheel):
    needed = {"ripplevec/py.typed", "ripplevec/service/page/index.html", "ripplevec/views/_kernels.cu"}
    assert needed | {"ripplevec/studies/quality.yaml", "ripplevec/cli/bench.json"} <= contents(wheel)


def test_the_sdist_makes_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path / "tree", filter="data")
    (tree,) = (tmp_path / "tree").iterdir()
    assert built("wheel", tree, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_sdist_holds_the_tests_and_the_pages(sdist):
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"tests/release/test_dist.py", "docs/method.md", "Makefile", "CITATION.cff", "LICENSE"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".git/", ".venv/"))]


def test_neither_has_grown_large(wheel, sdist):
    assert wheel.stat().st_size < LARGEST_WHEEL
    assert sdist.stat().st_size < LARGEST_SDIST


def test_what_an_index_is_told(metadata):
    assert (metadata["Name"], metadata["Version"]) == ("ripplevec", __version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert (metadata["Requires-Python"], metadata["Description-Content-Type"]) == (">=3.11", "text/markdown")
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Author"]
    assert metadata["Summary"]


def test_without_extras_only_a_few_libraries_are_asked_for(metadata):
    plain = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in plain} == NEEDED
