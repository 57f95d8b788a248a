"""Replay targets: a session directory and a service; Redis and Kafka are in the integration tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ripplevec import client
from ripplevec.attributes.input import attach_attributes, attributes_to_json, read_attributes
from ripplevec.batch import Batch, Op, ids_to_list
from ripplevec.durability.session import Session
from ripplevec.errors import InvalidValueError, StateError
from ripplevec.io.brokers import UnreachableError
from ripplevec.io.messages import decode_json, decode_messages
from ripplevec.io.readers.attribute_files import PendingAttributes
from ripplevec.replay import targets
from ripplevec.replay.targets import AttributedTarget, ServiceTarget, encode_messages, open_target


class Recorder(HTTPServer):
    """Records every request and answers 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[tuple[str, str, Any, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Recorder

    def answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((self.command, self.path, body, self.headers["Authorization"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"labels": 1, "sequence": 1}')

    do_POST = do_PUT = answer

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_directory_target_keeps_every_batch(tmp_path: Path) -> None:
    target = open_target(str(tmp_path / "state"), dim=4, seed=3)
    target.send(Batch.of(["a", "b"], ["b", "c"]))
    target.send(Batch.of(["c"], ["d"]))
    target.close()
    with Session(tmp_path / "state") as session:
        assert session.model.sequence == 2
        assert session.model.ids == ["a", "b", "c", "d"]
        assert (session.model.dim, session.model.seed) == (4, 3)


def test_directory_target_in_use_is_refused(tmp_path: Path) -> None:
    with Session(tmp_path / "state", dim=4), pytest.raises(StateError):
        open_target(str(tmp_path / "state"))


def test_service_target_sends_each_label_once_before_its_vertex(recorder: Recorder) -> None:
    target = open_target(recorder.url, labels={"a": "red", "b": "blue", "z": "green"})
    target.send(Batch.of(["a"], ["b"]))
    target.send(Batch.of(["a"], ["c"], [2.0]))
    target.close()
    labels, first, second = recorder.calls
    assert labels[:3] == ("PUT", "/v1/labels", {"labels": [["a", "red"], ["b", "blue"]]})
    assert first[:2] == second[:2] == ("POST", "/v1/edges")
    assert (first[2]["edges"], second[2]["edges"]) == ([["a", "b"]], [["a", "c", 2.0]])
    assert first[2]["key"] != second[2]["key"]


def test_service_target_sends_the_token_from_the_environment(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(targets.TOKEN, "w" * 20)
    target = open_target(recorder.url)
    target.send(Batch.of(["a"], ["b"]))
    target.close()
    assert [call[3] for call in recorder.calls] == [f"Bearer {'w' * 20}"]


def test_unreachable_service_target_raises_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "Client", partial(client.Client, retries=0))
    target = ServiceTarget("http://127.0.0.1:9", {})
    with pytest.raises(UnreachableError, match=r"http://127\.0\.0\.1:9 cannot be reached.*ripplevec serve"):
        target.send(Batch.of(["a"], ["b"]))
    target.close()


@pytest.mark.parametrize("where", ["ftp://somewhere/x", "kafka://host:9092", "redis://host:6379/0"])
def test_target_with_unsupported_address_is_refused(where: str) -> None:
    with pytest.raises(InvalidValueError, match="address"):
        open_target(where)


def test_model_parameters_for_a_service_target_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="directory"):
        open_target("http://127.0.0.1:9", dim=8)


@pytest.mark.parametrize("op", [None, [Op.ADD, Op.REMOVE]])
@pytest.mark.parametrize("weight", [None, [2.0, 0.5]])
@pytest.mark.parametrize("time", [None, [3.5, float("nan")]])
def test_messages_decode_to_the_original_events(op: Any, weight: Any, time: Any) -> None:
    batch = Batch.of(["é", 2], [1, "b"], weight, op, time)
    for row, message in enumerate(encode_messages(batch)):
        decoded = decode_json(message).batch
        assert ids_to_list(decoded.src) == [ids_to_list(batch.src)[row]]
        assert ids_to_list(decoded.dst) == [ids_to_list(batch.dst)[row]]
        expected = np.nan if time is None else time[row]
        assert (np.nan if decoded.time is None else decoded.time[0]) == pytest.approx(expected, nan_ok=True)
        assert (1.0 if decoded.weight is None else decoded.weight[0]) == (1.0 if weight is None else weight[row])
        assert (Op.ADD if decoded.op is None else decoded.op[0]) == (Op.ADD if op is None else op[row])


def attributed_batches() -> list[Batch]:
    return [Batch.of(["a", "b"], ["b", "c"]), Batch.of(["c", "d"], ["d", "a"], time=[1.0, 2.0])]


TAGS = {"a": {"x": 1.0}, "d": {"y": 2.0, "x": 1.0}, "alone": {"y": 1.0}}


def test_attributed_target_sends_attributes_with_the_first_batch_of_a_vertex(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {"dim": 8, "attribute_dim": 4, "start_size": 3}
    target = AttributedTarget(open_target(str(tmp_path), **parameters), PendingAttributes(read_attributes(TAGS)))
    for batch in attributed_batches():
        target.send(batch)
    target.send_rest()
    target.close()
    with Session(tmp_path) as session:
        assert session.sequence == 3
        assert session.nearest_by_attributes("d", 1)[0][0] in ("a", "alone")
        assert session.model.diagnostics()["attributed"] == 3


def test_encode_messages_of_attributes_are_documents_that_decode_to_the_same_batch() -> None:
    batch = attach_attributes(attributed_batches()[1], read_attributes(TAGS))
    messages = list(encode_messages(batch))
    assert len(messages) == len(batch)  # KafkaTarget keys every message by the source of its row
    decoded = decode_messages([("", message) for message in messages]).to_batch()
    assert decoded.attributes is not None
    assert batch.attributes is not None
    assert attributes_to_json(decoded.attributes) == attributes_to_json(batch.attributes)
    assert ids_to_list(decoded.src)[:2] == ids_to_list(batch.src)[:2]


def test_service_target_sends_attributes_with_edges(recorder: Recorder) -> None:
    target = ServiceTarget(recorder.url, {})
    target.send(attach_attributes(attributed_batches()[0], read_attributes({"a": {"x": 1}})))
    target.close()
    ((method, path, body, _),) = recorder.calls
    assert (method, path, body["attributes"]) == ("POST", "/v1/edges", [{"id": "a", "attributes": {"x": 1.0}}])
    assert body["edges"] == [["a", "b"], ["b", "c"]]
