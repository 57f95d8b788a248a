"""The distributions: a wheel with the package and nothing else, and an sdist that builds the same wheel."""

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
MAX_WHEEL_BYTES = 1_500_000  # half a megabyte is Swagger UI
MAX_SDIST_BYTES = 6_000_000
REQUIRED = {"msgspec", "numba", "numpy", "pyarrow", "rich", "scipy", "threadpoolctl", "typer"}

pytest.importorskip("hatchling")


def build(kind: str, tree: Path, folder: Path) -> Path:
    """Build a wheel or an sdist from a source tree, without downloads."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as files:
        return email.message_from_bytes(files.read(f"ripplevec-{__version__}.dist-info/METADATA"))


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as files:
        return {name for name in files.namelist() if ".dist-info/" not in name}


def test_wheel_contains_the_package_and_the_studies(wheel):
    sources = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    package = {path.relative_to(ROOT / "src").as_posix() for path in sources}
    studies = {f"ripplevec/studies/{path.name}" for path in (ROOT / "studies").glob("*.yaml")}
    assert contents(wheel) == package | studies


def test_wheel_contains_files_that_are_not_python(wheel):
    needed = {"ripplevec/py.typed", "ripplevec/service/page/index.html", "ripplevec/views/_kernels.cu"}
    assert needed | {"ripplevec/studies/quality.yaml", "ripplevec/cli/bench.json"} <= contents(wheel)


def test_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as files:
        files.extractall(tmp_path / "tree", filter="data")
    (tree,) = (tmp_path / "tree").iterdir()
    assert build("wheel", tree, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_sdist_contains_the_tests_and_the_documentation(sdist):
    with tarfile.open(sdist) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    assert {"tests/release/test_dist.py", "docs/method.md", "Makefile", "CITATION.cff", "LICENSE"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".git/", ".venv/"))]


def test_wheel_and_sdist_are_small(wheel, sdist):
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    assert sdist.stat().st_size < MAX_SDIST_BYTES


def test_metadata_for_a_package_index_are_complete(metadata):
    assert (metadata["Name"], metadata["Version"]) == ("ripplevec", __version__)
    assert (metadata["License-Expression"], metadata["License-File"]) == ("Apache-2.0", "LICENSE")
    assert (metadata["Requires-Python"], metadata["Description-Content-Type"]) == (">=3.11", "text/markdown")
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Author"]
    assert metadata["Summary"]


def test_dependencies_without_extras_are_few(metadata):
    plain = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert {re.match(r"[\w-]+", line)[0] for line in plain} == REQUIRED
