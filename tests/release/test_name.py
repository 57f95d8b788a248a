"""The package has one name, in every file and file name."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLD_NAME = "ripple" + "t"  # belongs to an unrelated package on the index; written so that this file passes its own test


def tracked_files() -> list[Path]:
    """All files under version control, or the files of an unpacked source distribution."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    folders = ("src", "tests", "docs", "benchmarks", "studies", "examples", "tutorials", "release")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def test_old_name_in_any_tracked_file_is_absent():
    files = tracked_files()
    assert len(files) > 500
    named = [path for path in files if OLD_NAME in str(path.relative_to(ROOT)).lower()]
    containing = [path for path in files if OLD_NAME.encode() in path.read_bytes().lower()]
    assert named == []
    assert containing == []
