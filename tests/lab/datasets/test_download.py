from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from ripplevec.errors import FormatError
from ripplevec.lab.datasets.download import ATTEMPTS, checksum, download, is_intact


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "edges.txt"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_and_alone(site: Any, target: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    download(site.file(), target, lambda *state: told.append(state))
    assert target.read_bytes() == site.content
    assert left_in(target.parent) == ["edges.txt"]
    size = len(site.content)
    assert told[-1] == ("edges.txt", size, size)
    assert [here for _, here, _ in told] == sorted({here for _, here, _ in told})


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(site: Any, target: Path) -> None:
    site.cuts = [1000, 5000]
    told: list[tuple[str, int, int | None]] = []
    download(site.file(), target, lambda *state: told.append(state))
    assert site.asked == [None, "bytes=1000-", "bytes=6000-"]
    assert target.read_bytes() == site.content
    assert {total for *_, total in told} == {len(site.content)}


def test_what_came_before_it_broke_for_good_is_kept_for_the_next_time(site: Any, target: Path) -> None:
    site.cuts = [100] * ATTEMPTS
    with pytest.raises(ConnectionError, match="broken off"):
        download(site.file(), target)
    assert left_in(target.parent) == ["edges.txt.part"]
    download(site.file(), target)
    assert site.asked[-1] == f"bytes={100 * ATTEMPTS}-"
    assert target.read_bytes() == site.content


def test_a_server_that_cannot_resume_sends_all_again(site: Any, target: Path) -> None:
    site.ranges, site.cuts = False, [1000]
    download(site.file(), target)
    assert target.read_bytes() == site.content


def test_other_bytes_are_refused_and_not_kept(site: Any, target: Path) -> None:
    with pytest.raises(FormatError, match=rf"127\.0\.0\.1.*expected sha256 {'0' * 64}, got [0-9a-f]{{64}}"):
        download(site.file("0" * 64), target)
    assert left_in(target.parent) == []
    assert len(site.asked) == 1


@pytest.mark.parametrize("rest", [b"from elsewhere", b"x" * 300_000])
def test_a_part_that_does_not_fit_is_thrown_away(site: Any, target: Path, rest: bytes) -> None:
    target.parent.mkdir()
    target.with_name("edges.txt.part").write_bytes(rest)
    download(site.file(), target)
    assert site.asked == [f"bytes={len(rest)}-", None]
    assert target.read_bytes() == site.content
    assert left_in(target.parent) == ["edges.txt"]


def test_a_part_that_was_whole_already_is_taken(site: Any, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("edges.txt.part").write_bytes(site.content)
    download(site.file(), target)
    assert left_in(target.parent) == ["edges.txt"]
    assert len(site.asked) == 1


def test_a_wrong_file_in_its_place_is_replaced(site: Any, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"wrong")
    download(site.file(), target)
    assert is_intact(target, site.file())


def test_an_address_without_the_file_is_asked_once(site: Any, target: Path) -> None:
    site.status = 404
    with pytest.raises(HTTPError, match="404"):
        download(site.file(), target)
    assert len(site.asked) == 1
    assert left_in(target.parent) == []


def test_several_at_once_fetch_it_once(site: Any, target: Path) -> None:
    pytest.importorskip("fcntl")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download(site.file(), target), range(4)))
    assert site.asked == [None]
    assert checksum(target) == site.file().sha256
