"""A replay put together: files, the built-in graph, a part at once, a limit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ripplevec.batch import Batch, Id, ids_to_list
from ripplevec.errors import FormatError
from ripplevec.replay.pacing import Report
from ripplevec.replay.run import Stream, built_in_stream, file_stream


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "edges.csv"
    rows = [(i, i + 1, (i * 7) % 20) for i in range(20)]
    path.write_text("src,dst,time\n" + "".join(f"{a},{b},{t}\n" for a, b, t in rows))
    return str(path)


def sent(stream: Stream) -> list[Id]:
    batches: list[Batch] = []
    with closing(stream):
        stream.play(batches.append)
    return [name for batch in batches for name in ids_to_list(batch.src)]


def test_a_file_goes_out_in_its_order_at_a_rate(file: str) -> None:
    stream = file_stream(file, {}, 6, whole=False).paced(1e6, None, 1000, 0, None)
    assert sent(stream) == list(range(20))
    assert stream.total is None


def test_a_file_goes_out_in_order_of_time_at_a_speed(file: str) -> None:
    stream = file_stream(file, {}, 6, whole=True).paced(None, 1e6, 1000, 0, None)
    assert sent(stream) == sorted(range(20), key=lambda i: (i * 7) % 20)
    assert stream.total == 20


@pytest.mark.parametrize("pace", [(1e6, None), (None, 1e6)])
def test_a_part_goes_out_before_the_clock_starts(file: str, pace: tuple[float | None, float | None]) -> None:
    stream = file_stream(file, {}, 6, whole=pace[1] is not None).paced(*pace, 4, 9, None)
    reports: list[Report] = []
    batches: list[Batch] = []
    report = stream.play(batches.append, reports.append)
    assert [len(batch) for batch in batches[:3]] == [4, 4, 1]
    assert stream.sent_at_once == 9
    assert report.events == 11
    assert sum(map(len, batches)) == 20
    assert [told.events for told in reports[:3]] == [0, 0, 0]


@pytest.mark.parametrize(("limit", "at_once", "whole"), [(7, 0, False), (7, 3, True), (7, 9, False), (50, 0, True)])
def test_a_limit_counts_everything(file: str, limit: int, at_once: int, whole: bool) -> None:
    pace = (None, 1e6) if whole else (1e6, None)
    stream = file_stream(file, {}, 6, whole=whole).paced(*pace, 5, at_once, limit)
    assert stream.total == min(limit, 20) if whole else 7
    assert len(sent(stream)) == min(limit, 20)


def test_the_built_in_graph_comes_with_labels() -> None:
    stream = built_in_stream(100, 0).paced(None, 1e6, 1000, 0, 40)
    batches: list[Batch] = []
    stream.play(batches.append)
    assert sum(map(len, batches)) == 40
    assert {name for batch in batches for name in ids_to_list(batch.src)} <= stream.labels.keys()


def test_a_file_without_times_has_no_speed(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\nb,c\n")
    with pytest.raises(FormatError, match="--rate"):
        file_stream(str(path), {}, 10, whole=True)


def test_an_interruption_before_the_clock_starts_ends_it() -> None:
    def send(batch: Batch) -> None:
        raise KeyboardInterrupt

    report = built_in_stream(50, 0).paced(1e6, None, 10, 30, None).play(send)
    assert report.interrupted
    assert report.events == 0
