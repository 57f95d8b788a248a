from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ripplevec.lab.datasets.base import SourceFile
from ripplevec.lab.datasets.files import MissingDataError, cache_folder, find, present


@pytest.fixture
def folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    return tmp_path


def test_the_named_folder_comes_first(site: Any, folder: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    for place in (folder, cache):
        (place / "edges.txt").write_bytes(site.content)
    assert find(site.file()) == present(site.file()) == folder / "edges.txt"
    assert site.asked == []


def test_the_cache_comes_second(site: Any, folder: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "edges.txt").write_bytes(site.content)
    assert find(site.file()) == present(site.file()) == cache / "edges.txt"
    assert site.asked == []


@pytest.mark.usefixtures("folder")
def test_the_address_comes_last_and_only_once(site: Any, cache: Path) -> None:
    assert present(site.file()) is None
    assert [find(site.file()) for _ in range(2)] == [cache / "edges.txt"] * 2
    assert site.asked == [None]


def test_other_bytes_do_not_count(site: Any, folder: Path, cache: Path) -> None:
    (folder / "edges.txt").write_bytes(b"0 2\n")
    assert present(site.file()) is None
    assert find(site.file()) == cache / "edges.txt"


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ripplevec"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "ripplevec"


def test_offline_the_message_says_what_was_sought_where_and_what_to_do(folder: Path, cache: Path) -> None:
    (folder / "edges.txt").write_bytes(b"0 2\n")
    file = SourceFile("edges.txt", "0" * 64, "http://127.0.0.1:1/graphs")  # nobody listens on port 1
    with pytest.raises(MissingDataError) as raised:
        find(file)
    message = str(raised.value)
    assert message.startswith(
        f"edges.txt: {folder / 'edges.txt'} has another sha256, {cache / 'edges.txt'} is not there"
    )
    assert re.search(r"http://127\.0\.0\.1:1/graphs/edges\.txt cannot be downloaded \(.*refused", message)
    assert message.endswith("put the file into a folder and set RIPPLEVEC_DATA to that folder")


@pytest.mark.usefixtures("cache")
def test_an_address_that_has_gone_says_so(site: Any) -> None:
    site.status = 404
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded \(HTTP Error 404"):
        find(site.file())


def test_a_cache_that_cannot_be_written_says_so(site: Any, cache: Path) -> None:
    cache.parent.write_text("not a folder")
    with pytest.raises(MissingDataError, match="RIPPLEVEC_DATA"):
        find(site.file())
