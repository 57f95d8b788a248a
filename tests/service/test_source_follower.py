"""Sources that a service follows."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ripplevec.batch import ids_to_list
from ripplevec.durability.session import Session
from ripplevec.errors import FormatError, HeaderWarning, InvalidValueError
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings
from ripplevec.service.source_follower import open_source


def wait_until(condition: Any) -> None:
    while not condition():
        time.sleep(0.01)


def sequence(service: Any) -> int:
    return int(service.http.get("/v1/stats").json()["sequence"])


def test_source_growing_file_is_followed_and_resumed(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\na,b\nb,c\n")
    service = start(source=str(path))
    wait_until(lambda: service.http.get("/v1/stats").json()["edges"] == 2)
    with path.open("a") as file:
        file.write("c,d\n")
    wait_until(lambda: service.http.get("/v1/stats").json()["edges"] == 3)
    assert service.edges(["d", "e"]).status_code == 200
    batches = service.http.get("/v1/changes?since=0").json()["batches"]
    assert [batch["sequence"] for batch in batches] == list(range(1, sequence(service) + 1))
    digest = service.digest()
    service.stop()
    service = start(source=str(path))
    time.sleep(0.3)  # time in which it could read the same lines again
    assert service.digest() == digest
    with path.open("a") as file:
        file.write("x,y\n")
    wait_until(lambda: service.http.get("/v1/vertices/y").status_code == 200)


def test_open_source_names_the_options_of_an_address(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("hero1,hero2\nann,bob\n")
    source = open_source(str(path))
    source.open(None)
    expected = r"If it is a header: \?header=yes in the address, or name its columns: \?src=NAME.*an edge: \?header=no"
    with pytest.warns(HeaderWarning, match=expected):
        source.read(0)
    source.close()
    with closing(open_source(f"{path}?header=yes")) as source:
        source.open(None)
        result = source.read(0)
    assert result is not None
    assert ids_to_list(result.batch.src) == ["ann"]
    path.write_text("a,b\n1,2\n")
    with closing(open_source(f"{path}?src=b&dst=c")) as source:
        source.open(None)
        with pytest.raises(
            FormatError, match=r"expected columns b, c, got a, b\. Name the columns: \?src=NAME&dst=NAME"
        ):
            source.read(0)


def test_source_and_requests_together_lose_no_batch(start: Any, tmp_path: Path) -> None:
    path = tmp_path / "edges.jsonl"
    path.write_text("".join(json.dumps([f"s{n}", f"s{n + 1}"]) + "\n" for n in range(5000)))
    service = start(source=str(path))
    for number in range(30):
        assert service.edges([f"r{number}", f"r{number + 1}"]).status_code == 200
    wait_until(lambda: service.http.get("/v1/stats").json()["edges"] == 5030)
    wait_until(lambda: service.runtime.feed.newest == sequence(service))
    batches = service.http.get("/v1/changes?since=0&limit=1000").json()["batches"]
    numbers = sorted({batch["sequence"] for batch in batches})
    assert numbers == list(range(1, sequence(service) + 1))
    text = service.http.get("/metrics").text
    assert "ripplevec_events_total 5030.0" in text


def test_source_bad_message_is_stored_and_skipped(start: Any, tmp_path: Path) -> None:
    path, letters = tmp_path / "edges.jsonl", tmp_path / "dead.jsonl"
    path.write_text('["a", "b"]\nnonsense\n["b", "c"]\n')
    service = start(source=str(path), dead_letters=str(letters))
    wait_until(lambda: service.http.get("/v1/stats").json()["edges"] == 2)
    service.stop()
    assert "nonsense" in letters.read_text()


def test_source_invalid_address_stops_the_service(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="stream"):
        open_source("redis://localhost:6379/0")
    server = Server(Settings(state=tmp_path / "state", port=0, source="http://localhost/x"))
    server.run()
    assert isinstance(server.failure, InvalidValueError)
    Session(tmp_path / "state").close()
