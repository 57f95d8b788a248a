from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ripplet.datasets.base import SourceFile
from ripplet.datasets.files import MissingDataError, find
from ripplet.errors import FormatError

FILE = SourceFile("edges.txt", hashlib.sha256(b"0 1\n").hexdigest(), "example.org/graphs")


def test_a_file_with_the_right_checksum_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPPLET_DATA", str(tmp_path))
    (tmp_path / "edges.txt").write_bytes(b"0 1\n")
    assert find(FILE) == tmp_path / "edges.txt"


def test_without_the_variable_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIPPLET_DATA", raising=False)
    with pytest.raises(MissingDataError, match=r"edges\.txt.*RIPPLET_DATA.*not set.*example\.org/graphs"):
        find(FILE)


def test_a_missing_file_is_named_with_its_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPPLET_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"edges\.txt.*RIPPLET_DATA.*example\.org/graphs"):
        find(FILE)


def test_other_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPPLET_DATA", str(tmp_path))
    (tmp_path / "edges.txt").write_bytes(b"0 2\n")
    with pytest.raises(FormatError, match=FILE.sha256):
        find(FILE)
