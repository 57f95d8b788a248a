from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from ripplevec.errors import FormatError
from ripplevec.lab.datasets.download import (
    MAX_ATTEMPTS,
    MissingDataError,
    SourceFile,
    cache_folder,
    checksum,
    download,
    find_local,
    is_intact,
    locate,
)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new" / "edges.txt"


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_download_stores_whole_file_and_reports_progress(site: Any, target: Path) -> None:
    reports: list[tuple[str, int, int | None]] = []
    download(site.file(), target, lambda *state: reports.append(state))
    assert target.read_bytes() == site.content
    assert files_in(target.parent) == ["edges.txt"]
    size = len(site.content)
    assert reports[-1] == ("edges.txt", size, size)
    assert [here for _, here, _ in reports] == sorted({here for _, here, _ in reports})


def test_download_interrupted_resumes_at_received_bytes(site: Any, target: Path) -> None:
    site.cuts = [1000, 5000]
    reports: list[tuple[str, int, int | None]] = []
    download(site.file(), target, lambda *state: reports.append(state))
    assert site.requested_ranges == [None, "bytes=1000-", "bytes=6000-"]
    assert target.read_bytes() == site.content
    assert {total for *_, total in reports} == {len(site.content)}


def test_download_after_too_many_interruptions_keeps_part_for_next_call(site: Any, target: Path) -> None:
    site.cuts = [100] * MAX_ATTEMPTS
    with pytest.raises(ConnectionError, match="interrupted 3 times"):
        download(site.file(), target)
    assert files_in(target.parent) == ["edges.txt.part"]
    download(site.file(), target)
    assert site.requested_ranges[-1] == f"bytes={100 * MAX_ATTEMPTS}-"
    assert target.read_bytes() == site.content


def test_download_from_server_without_ranges_starts_over(site: Any, target: Path) -> None:
    site.ranges, site.cuts = False, [1000]
    download(site.file(), target)
    assert target.read_bytes() == site.content


def test_download_with_wrong_checksum_raises_and_discards(site: Any, target: Path) -> None:
    with pytest.raises(FormatError, match=rf"127\.0\.0\.1.*expected sha256 {'0' * 64}, got [0-9a-f]{{64}}"):
        download(site.file("0" * 64), target)
    assert files_in(target.parent) == []
    assert len(site.requested_ranges) == 1


@pytest.mark.parametrize("rest", [b"from elsewhere", b"x" * 300_000])
def test_download_with_unrelated_part_discards_it(site: Any, target: Path, rest: bytes) -> None:
    target.parent.mkdir()
    target.with_name("edges.txt.part").write_bytes(rest)
    download(site.file(), target)
    assert site.requested_ranges == [f"bytes={len(rest)}-", None]
    assert target.read_bytes() == site.content
    assert files_in(target.parent) == ["edges.txt"]


def test_download_with_complete_part_uses_it(site: Any, target: Path) -> None:
    target.parent.mkdir()
    target.with_name("edges.txt.part").write_bytes(site.content)
    download(site.file(), target)
    assert files_in(target.parent) == ["edges.txt"]
    assert len(site.requested_ranges) == 1


def test_download_over_wrong_file_replaces_it(site: Any, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"wrong")
    download(site.file(), target)
    assert is_intact(target, site.file())


def test_download_with_http_404_raises_after_one_request(site: Any, target: Path) -> None:
    site.status = 404
    with pytest.raises(HTTPError, match="404"):
        download(site.file(), target)
    assert len(site.requested_ranges) == 1
    assert files_in(target.parent) == []


def test_download_by_concurrent_callers_sends_one_request(site: Any, target: Path) -> None:
    pytest.importorskip("fcntl")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download(site.file(), target), range(4)))
    assert site.requested_ranges == [None]
    assert checksum(target) == site.file().sha256


def test_source_file_address_joins_origin_and_name() -> None:
    assert SourceFile("edges.txt", "", "https://example.org/graphs").address == "https://example.org/graphs/edges.txt"


@pytest.fixture
def folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIPPLEVEC_DATA", str(tmp_path))
    return tmp_path


def test_locate_prefers_data_folder(site: Any, folder: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    for place in (folder, cache):
        (place / "edges.txt").write_bytes(site.content)
    assert locate(site.file()) == find_local(site.file()) == folder / "edges.txt"
    assert site.requested_ranges == []


def test_locate_without_file_in_data_folder_uses_cache(site: Any, folder: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "edges.txt").write_bytes(site.content)
    assert locate(site.file()) == find_local(site.file()) == cache / "edges.txt"
    assert site.requested_ranges == []


@pytest.mark.usefixtures("folder")
def test_locate_without_local_file_downloads_once(site: Any, cache: Path) -> None:
    assert find_local(site.file()) is None
    assert [locate(site.file()) for _ in range(2)] == [cache / "edges.txt"] * 2
    assert site.requested_ranges == [None]


def test_locate_ignores_file_with_wrong_checksum(site: Any, folder: Path, cache: Path) -> None:
    (folder / "edges.txt").write_bytes(b"0 2\n")
    assert find_local(site.file()) is None
    assert locate(site.file()) == cache / "edges.txt"


def test_cache_folder_follows_xdg_cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ripplevec"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "ripplevec"


def test_locate_offline_names_searched_paths_and_remedy(folder: Path, cache: Path) -> None:
    (folder / "edges.txt").write_bytes(b"0 2\n")
    file = SourceFile("edges.txt", "0" * 64, "http://127.0.0.1:1/graphs")  # nothing listens on port 1
    with pytest.raises(MissingDataError) as raised:
        locate(file)
    message = str(raised.value)
    assert message.startswith(f"edges.txt: {folder / 'edges.txt'} has another sha256, {cache / 'edges.txt'} is missing")
    assert re.search(r"http://127\.0\.0\.1:1/graphs/edges\.txt cannot be downloaded \(.*refused", message)
    assert message.endswith("put the file into a folder and set RIPPLEVEC_DATA to that folder")


@pytest.mark.usefixtures("cache")
def test_locate_with_http_404_raises_missing_data_error(site: Any) -> None:
    site.status = 404
    with pytest.raises(FileNotFoundError, match=r"cannot be downloaded \(HTTP Error 404"):
        locate(site.file())


def test_locate_with_unwritable_cache_names_data_folder_variable(site: Any, cache: Path) -> None:
    cache.parent.write_text("not a folder")
    with pytest.raises(MissingDataError, match="RIPPLEVEC_DATA"):
        locate(site.file())
