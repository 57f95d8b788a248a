from __future__ import annotations

import inspect
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import coo_array

import ripplevec
from ripplevec import Op
from ripplevec.client import protocol
from ripplevec.client.protocol import (
    NotFoundError,
    ServiceError,
    TooOldError,
    UnexpectedResponseError,
    UnreachableServiceError,
)
from ripplevec.errors import StateError, UnknownEdgeError, UnknownVertexError
from ripplevec.service.security import Tokens
from ripplevec.service.settings import Limits


@pytest.fixture
def client(service: Any) -> Iterator[ripplevec.Client]:
    with ripplevec.Client(service.url) as client:
        yield client


def test_client_sends_event_times_to_the_model(start: Any) -> None:
    parameters = {"dim": 4, "threads": 1, "half_life": 10.0, "expire_after": 35.0, "anchor_growth": 0}
    service, model = start(parameters=parameters), ripplevec.Embedder(**parameters)
    ring = [(i, (i + step) % 40) for i in range(40) for step in (1, 2, 5)]
    edges = ripplevec.Batch.of(*map(list, zip(*ring, strict=True)), time=[i / 4 for i in range(len(ring))])
    with ripplevec.Client(service.url) as client:
        for target in (client, model):
            target.add_edges(edges)
            target.add_vertex("v", [0, 1], [1.0, 2.0], 40.0)
            target.add_vertex("w", ["v"], time=50.0)
        assert client.vertex("v")["strength"] == pytest.approx(0.5 * (1 + 2) + 1)
        assert client.stats()["edges"] == model.engine.edges < len(ring)
        assert client.stats(digest=True)["digest"] == model.digest()


def test_client_methods_give_the_results_of_an_embedder(start: Any) -> None:
    service = start()
    ring = [(i, (i + step) % 40) for i in range(40) for step in (1, 2, 5)]
    model = ripplevec.Embedder(dim=8, threads=1, anchor_growth=0)
    with ripplevec.Client(service.url) as client:
        for target in (client, model):
            target.add_edges(ring)
            target.add_edges([(0, 20, 2.5)])
            target.remove_edges([(0, 1)])
        assert np.array_equal(client.add_vertex("v", [0, 1], [1, 2]), model.add_vertex("v", [0, 1], [1, 2]))
        assert np.array_equal(client.vectors([3, "v"]), model.vectors([3, "v"]))
        assert np.array_equal(client.vector(3), model[3])
        assert np.array_equal(client.preview([1, 2]), model.preview([1, 2]))
        assert client.nearest(3, 5) == model.nearest(3, 5)
        assert client.nearest(model[3], 5) == model.nearest(model[3], 5)
        newcomers = {"new": [1, 2]}
        pairs = [(3, 9), ("v", 20), ("new", 3)]
        assert np.array_equal(client.score(pairs, newcomers=newcomers), model.score(pairs, newcomers=newcomers))
        assert client.recommend(3, 5) == model.recommend(3, 5)
        options = {"among": np.arange(30), "exclude": None, "newcomers": newcomers}
        assert client.recommend([3, "new"], 4, **options) == model.recommend([3, "new"], 4, **options)
        client.remove_vertex(7)
        assert client.stats()["vertices"] == 40
        assert client.vertex("v")["degree"] == 2


def test_british_spelling_of_neighbors_is_accepted_but_not_both(client: ripplevec.Client) -> None:
    assert np.array_equal(client.preview(neighbours=["r0", "r1"]), client.preview(["r0", "r1"]))
    client.add_vertex("v", neighbours=["r0", "r1"])
    assert client.vertex("v")["degree"] == 2
    with pytest.raises(ripplevec.InvalidValueError, match="neighbours"):
        client.add_vertex("w", ["r0"], neighbours=["r1"])


def test_add_edges_accepts_arrays_and_batches(start: Any) -> None:
    service = start()
    with ripplevec.Client(service.url) as client:
        assert client.add_edges(np.array([[1, 2], [2, 3]]))["arrived"] == 3
        assert client.add_edges(ripplevec.Batch.of(["a"], ["b"], [2.0]))["arrived"] == 2
    assert service.http.get("/v1/vertices/a").json()["strength"] == 2


EDGE_FORMS: dict[str, Callable[[], Any]] = {
    "array": lambda: np.array([[0, 1], [2, 3]]),
    "DataFrame": lambda: pd.DataFrame({"src": [0, 2], "dst": [1, 3]}),
    "Arrow table": lambda: pa.table({"source": [0, 2], "target": [1, 3]}),
    "sparse matrix": lambda: coo_array((np.ones(2), ([0, 2], [1, 3])), shape=(40, 40)),
    "NetworkX graph": lambda: nx.Graph([(0, 1), (2, 3)]),
    "triples of NumPy integers": lambda: [(np.int64(0), np.int64(1), 2.5), (np.int64(2), np.int64(3), 1.0)],
}


@pytest.mark.parametrize("form", EDGE_FORMS)
def test_edges_in_any_form_are_added_and_removed_as_by_an_embedder(start: Any, form: str) -> None:
    parameters = {"dim": 4, "threads": 1, "anchor_growth": 0}
    service, model = start(parameters=parameters), ripplevec.Embedder(**parameters)
    ring = [(i, (i + step) % 40) for i in range(40) for step in (1, 2, 5)]
    with ripplevec.Client(service.url) as client:
        for target in (client, model):
            target.add_edges(ring)
            target.add_edges(EDGE_FORMS[form]())
            target.remove_edges(EDGE_FORMS[form]())
        assert client.stats(digest=True)["digest"] == model.digest()
        assert client.stats()["edges"] == len(ring) - 2


def test_partial_fit_names_the_columns_of_a_table_as_an_embedder(start: Any) -> None:
    parameters = {"dim": 4, "threads": 1, "half_life": 10.0, "anchor_growth": 0}
    service, model = start(parameters=parameters), ripplevec.Embedder(**parameters)
    table = pd.DataFrame({"payer": ["a", "b"], "payee": ["b", "c"], "amount": [1.5, 2.0], "day": [1.0, 3.0]})
    columns = {"src": "payer", "dst": "payee", "weight": "amount", "time": "day"}
    with ripplevec.Client(service.url) as client:
        for target in (client, model):
            target.partial_fit(table, **columns)
            target.partial_fit([("c", "d"), ("d", "a")], time=[4.0, 5.0])
        assert client.stats(digest=True)["digest"] == model.digest()


def test_batch_with_operations_is_applied_as_by_an_embedder(start: Any) -> None:
    parameters = {"dim": 4, "threads": 1, "half_life": 10.0, "anchor_growth": 0}
    service, model = start(parameters=parameters), ripplevec.Embedder(**parameters)
    ops = [Op.VERTEX, Op.ADD, Op.REMOVE, Op.REMOVE_VERTEX]
    nan = float("nan")
    mixed = ripplevec.Batch.of(["v", "a", "b", 1], ["v", "v", "c", 1], [1, 2.5, 1, 1], ops, [nan, 7.0, nan, nan])
    with ripplevec.Client(service.url) as client:
        for target in (client, model):
            target.add_edges([("a", "b"), ("b", "c"), ("c", 1)])
            target.partial_fit(mixed)
            target.remove_edges(ripplevec.Batch.of(["a"], ["b"], op=[Op.REMOVE]))
        assert client.stats(digest=True)["digest"] == model.digest()
        with pytest.raises(UnknownVertexError, match="unknown vertex 'x'"):
            client.partial_fit(ripplevec.Batch.vertices(["x"], Op.REMOVE_VERTEX))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda target: target.remove_edges(ripplevec.Batch.of(["r0"], ["r1"])), "a batch of removals only"),
        (lambda target: target.remove_edges("r0"), "edges: expected"),
        (lambda target: target.score(nx.path_graph(2)), "pairs of vertices only"),
    ],
)
def test_client_refuses_edges_that_an_embedder_refuses(client: ripplevec.Client, write: Any, message: str) -> None:
    for target in (client, ripplevec.Embedder(dim=2).fit([("r0", "r1"), ("r1", "r2"), ("r2", "r3")])):
        with pytest.raises(ripplevec.InvalidValueError, match=message):
            write(target)


def test_unknown_vertex_raises_a_key_error(client: ripplevec.Client) -> None:
    with pytest.raises(UnknownVertexError, match="nobody"):
        client.vectors(["r0", "nobody"])
    for call in (client.vertex, client.nearest, client.remove_vertex):
        with pytest.raises(NotFoundError) as error:
            call("nobody")
        assert isinstance(error.value, KeyError)


def test_refused_request_raises_the_reason(client: ripplevec.Client) -> None:
    with pytest.raises(ServiceError, match=r"422.*weight") as error:
        client.add_vertex("v", ["r0"], [-1])
    assert error.value.status == 422


def test_integer_and_text_ids_stay_distinct(start: Any) -> None:
    with ripplevec.Client(start().url) as client:
        client.add_edges([(1, "a")])
        client.add_edges([("1", "b")])
        assert (client.vertex(1)["id"], client.vertex("1")["id"]) == (1, "1")
        client.remove_vertex(1)
        assert client.vertex("1")["id"] == "1"


UUID_ID = UUID("c21f5a21-3efd-4064-bbb4-9c4387402e9d")


@pytest.fixture(scope="module")
def mixed(attributed: Any) -> Iterator[tuple[ripplevec.Client, ripplevec.Embedder]]:
    """Return a client and the model of its service, which also has vertices with integers and a UUID as ids."""
    with ripplevec.Client(attributed.url) as client:
        edges = [(5, 6), (6, 7), (7, UUID_ID), (UUID_ID, 5), ("p0", 5)]
        client.partial_fit(edges, attributes={5: {"graph": 1}, UUID_ID: {"protein": 1}})
        yield client, attributed.runtime.model


@pytest.mark.parametrize("vertex", [np.int64(5), np.uint8(5), UUID_ID], ids=repr)
@pytest.mark.parametrize(
    "read",
    [
        lambda target, vertex: target.nearest(vertex, np.int64(2)),
        lambda target, vertex: target.nearest(vertex, 2, among=[vertex, np.int32(6), "p0"]),
        lambda target, vertex: target.nearest_many([vertex, 6], np.int64(2)),
        lambda target, vertex: target.nearest_by_attributes(vertex, np.int64(1)),
        lambda target, vertex: target.nearest_by_attributes(vertex, among=np.array(["p0", "p7"])),
        lambda target, vertex: target.nearest_by_attributes({"graph": np.float32(1)}, among=[vertex, "p7"]),
        lambda target, vertex: target.age([vertex, 6]),
        lambda target, vertex: target.neighbors(vertex, np.int64(2)),
        lambda target, vertex: target.recommend(vertex, np.int64(2)),
        lambda target, vertex: target.recommend([vertex], 2, among=[np.int64(6), UUID_ID]),
        lambda target, vertex: target.degree(vertex),
        lambda target, vertex: target.score([(vertex, 6), (7, np.int64(8))], newcomers={np.int64(8): [vertex]}),
    ],
)
def test_client_reads_accept_ids_and_numbers_that_a_model_accepts(mixed: Any, vertex: Any, read: Any) -> None:
    client, model = mixed
    assert np.array_equal(np.array(read(client, vertex), object), np.array(read(model, vertex), object))


@pytest.mark.parametrize("vertex", [np.int64(50), UUID(int=50)], ids=repr)
def test_client_writes_accept_ids_and_numbers_that_a_model_accepts(mixed: Any, vertex: Any) -> None:
    client, model = mixed
    weights = [np.float32(0.5), np.int64(2)]
    for given in (weights, np.array([0.5, 2], np.float16)):
        assert np.array_equal(client.preview([np.int64(5), 6], given), model.preview([5, 6], [0.5, 2.0]))
    client.add_vertex(vertex, [np.int64(5), UUID_ID], weights, attributes={"graph": np.float32(1)})
    assert dict(model.neighbors(vertex)) == {5: 0.5, str(UUID_ID): 2.0}
    client.put_labels({vertex: "red"})
    found = client.vertex(vertex)
    assert (found["id"], found["label"]) == (model.ids[-1], "red")
    client.remove_vertex(vertex)
    assert vertex not in model


@pytest.mark.parametrize(
    "call",
    [
        lambda target: target.nearest(True),
        lambda target: target.nearest(5, 2.5),
        lambda target: target.nearest(5, True),
        lambda target: target.nearest([0.5, "x"]),
        lambda target: target.nearest([float("nan")] * 8),
        lambda target: target.nearest(np.zeros((2, 8))),
        lambda target: target.nearest_many(np.full((1, 8), np.inf)),
        lambda target: target.recommend(True),
        lambda target: target.degree(1.5),
        lambda target: target.neighbors(5, -1),
        lambda target: target.neighbors(5, 1.0),
        lambda target: target.age(5),
        lambda target: target.preview([5, 6], ["x", 1]),
        lambda target: target.preview([5, 6], [1.0]),
    ],
)
def test_client_refuses_values_that_a_model_refuses(mixed: Any, call: Any) -> None:
    for target in mixed:
        with pytest.raises(ripplevec.InvalidValueError):
            call(target)


def test_client_refuses_values_that_json_cannot_represent(client: ripplevec.Client) -> None:
    with pytest.raises(ripplevec.InvalidValueError, match="request: expected values that JSON can represent"):
        client.add_edges([("a", "b")], key=UUID_ID)  # type: ignore[arg-type]
    with pytest.raises(ripplevec.InvalidValueError, match="since: expected a whole number, got '1'"):
        next(client.changes("1"))  # type: ignore[arg-type]


def test_put_labels_sets_them(start: Any) -> None:
    with ripplevec.Client(start().url) as client:
        client.add_edges([("a", 1)])
        assert client.put_labels({"a": "red", 1: "blue"}) == 2
        assert client.vertex(1)["label"] == "blue"


def test_token_is_sent_with_requests(start: Any) -> None:
    token = "a-token-of-some-length"
    service = start(tokens=Tokens.of([], [token]), token=token)
    with ripplevec.Client(service.url, token=token) as client:
        assert client.add_edges([("a", "b")])["sequence"] == 1
    with ripplevec.Client(service.url) as client, pytest.raises(ServiceError, match="401"):
        client.stats()


def use_transport(monkeypatch: pytest.MonkeyPatch, transport: httpx.BaseTransport) -> None:
    """Let clients created from now on use this transport."""
    client_options = protocol.client_options
    monkeypatch.setattr(
        protocol, "client_options", lambda *arguments: client_options(*arguments) | {"transport": transport}
    )


def test_write_with_lost_response_is_repeated_and_applied_once(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()

    class Lossy(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            answer.read()
            if request.url.path == "/v1/edges" and self.lost < 2:
                self.lost += 1
                raise httpx.ReadError("response lost", request=request)
            return answer

    transport = Lossy()
    use_transport(monkeypatch, transport)
    with ripplevec.Client(service.url) as client:
        receipt = client.add_edges([("a", "b")])
    assert transport.lost == 2
    assert receipt["repeated"]
    assert receipt["sequence"] == 1
    assert service.http.get("/v1/vertices/a").json()["strength"] == 1


def test_request_to_a_busy_service_is_retried(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start(limits=Limits(queue_requests=1))
    started, proceed, apply_many = threading.Event(), threading.Event(), service.runtime.session.apply_many

    def apply_slowly(entries: Any) -> Any:
        started.set()
        assert proceed.wait(30)
        return apply_many(entries)

    monkeypatch.setattr(service.runtime.session, "apply_many", apply_slowly)
    with ripplevec.Client(service.url) as client, ThreadPoolExecutor(2) as pool:
        writes = [pool.submit(client.add_edges, [("c", "d")])]
        assert started.wait(30)
        writes.append(pool.submit(client.add_edges, [("d", "e")]))
        while service.runtime.writer.queued_requests < 1:
            time.sleep(0.005)
        assert service.edges(["a", "b"]).status_code == 429
        threading.Timer(0.3, proceed.set).start()
        assert client.add_edges([("a", "b")])["sequence"] == 3
        assert [write.result()["sequence"] for write in writes] == [1, 2]


def test_request_without_retries_left_raises(start: Any) -> None:
    service = start()
    service.stop()
    with ripplevec.Client(service.url, retries=1) as client:
        with pytest.raises(UnreachableServiceError, match=rf"{service.url}.* cannot be reached: .*ripplevec serve"):
            client.stats()
        with pytest.raises(ripplevec.RipplevecError):
            next(client.changes(since=0))


def test_client_has_the_reads_of_a_model(start: Any) -> None:
    service = start()
    with ripplevec.Client(service.url) as client:
        client.partial_fit([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
        assert client.get("unknown", 7) == 7
        assert np.array_equal(client.get("a"), client.vector("a"))
        assert client.degree("c") == 3
        assert client.similarity("a", "b") == pytest.approx(service.runtime.model.similarity("a", "b"))


def test_changes_since_a_sequence_yields_later_batches(start: Any) -> None:
    service = start()
    with ripplevec.Client(service.url) as client:
        for number in range(3):
            client.add_edges([(number, number + 1)])
        client.remove_vertex(0)
        stream = client.changes(since=1)
        found = [next(stream) for _ in range(3)]
        assert [changes.sequence for changes in found] == [2, 3, 4]
        assert found[0].ids == [2]
        assert found[0].arrived == [True]
        assert found[0].vectors.shape == (1, 8)
        assert found[2].removed == [0]


def test_changes_of_ids_with_unicode_line_separators_are_read(start: Any) -> None:
    with ripplevec.Client(start().url) as client:
        client.add_edges([("a\u2028b", "c\u0085d")])
        assert sorted(next(client.changes(since=0)).ids) == ["a\u2028b", "c\u0085d"]


def test_changes_refused_while_busy_is_retried_and_raises_service_error(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start()
    statuses = [503, 200, 429, 429, 429]

    class Busy(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            status = statuses.pop(0)
            return super().handle_request(request) if status == 200 else httpx.Response(status)

    with ripplevec.Client(service.url) as client:
        client.add_edges([("a", "b")])
    use_transport(monkeypatch, Busy())
    with ripplevec.Client(service.url, retries=2) as client:
        assert next(client.changes(since=0)).sequence == 1
        with pytest.raises(ServiceError, match="429"):
            next(client.changes(since=0))
    assert not statuses


def test_changes_reconnects_after_a_lost_connection(start: Any) -> None:
    service = start()
    port = int(service.url.rpartition(":")[2])
    with ripplevec.Client(service.url, retries=50) as client:
        client.add_edges([("a", "b")])
        stream = client.changes(since=0)
        assert next(stream).sequence == 1
        service.stop()
        service = start(port=port)
        client.add_edges([("b", "c")])
        assert next(stream).sequence == 2


def test_changes_no_longer_kept_raises_too_old(start: Any) -> None:
    service = start(limits=Limits(retained_batches=1))
    with ripplevec.Client(service.url) as client:
        for number in range(4):
            client.add_edges([(number, number + 1)])
        with pytest.raises(TooOldError):
            next(client.changes(since=1))


def test_client_refuses_bad_attributes_before_a_request(attributed: Any) -> None:
    before = attributed.digest()
    with ripplevec.Client(attributed.url) as client:
        for call in (
            lambda: client.add_vertex("z", attributes={"x": float("nan")}),
            lambda: client.set_attributes(["p1", "p1"], [{"x": 1}, {"x": 2}]),
            lambda: client.partial_fit([("p1", "p2")], attributes={"p1": [1.0], "p2": [1.0, 2.0]}),
        ):
            with pytest.raises(ripplevec.InvalidValueError, match=r"row 0|Row 1|rows 0 and 1"):
                call()
        with pytest.raises(ServiceError, match="sparse rows"):
            client.set_attributes(["p1"], np.ones((1, 3)))
    assert attributed.digest() == before


def test_client_reads_many_vertices_like_the_model(service: Any, client: ripplevec.Client) -> None:
    model, names = service.runtime.model, ["r0", "r5"]
    assert np.array_equal(client.degree(names), model.degree(names))
    assert client.degree("r0") == model.degree("r0")
    assert client.nearest_many(names, 3) == model.nearest_many(names, 3)
    assert client.nearest_many(model[names], 3) == model.nearest_many(model[names], 3)
    assert np.array_equal(client.transform(names), model.transform(names))
    assert client.age(names).dtype == model.age(names).dtype
    assert np.array_equal(client.age(np.array(names)), model.age(names))
    for limit in (None, 0, 2, np.int64(3)):
        assert client.neighbors("r0", limit) == model.neighbors("r0", limit)
        assert client.neighbours("r0", limit) == model.neighbours("r0", limit)
    for query in ("r0", model["r0"]):
        assert client.nearest(query, 2, among=["r3", "r9"]) == model.nearest(query, 2, among=["r3", "r9"])


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.degree("x"),
        lambda client: client.degree(["r0", "x"]),
        lambda client: client.age(["r0", "x"]),
        lambda client: client.neighbors("x"),
        lambda client: client.nearest("x"),
        lambda client: client.nearest_many(["x"]),
        lambda client: client.vertex("x"),
        lambda client: client.remove_vertex("x"),
        lambda client: client.score([("r0", "x")]),
        lambda client: client.preview(["x"]),
    ],
)
def test_client_raises_the_error_of_a_model_for_an_unknown_vertex(client: ripplevec.Client, read: Any) -> None:
    with pytest.raises(UnknownVertexError, match="unknown vertex 'x'") as caught:
        read(client)
    assert isinstance(caught.value, NotFoundError)
    assert caught.value.missing == ["x"]
    assert pickle.loads(pickle.dumps(caught.value)).missing == ["x"]


def test_client_raises_the_error_of_a_model_for_an_unknown_edge(client: ripplevec.Client) -> None:
    with pytest.raises(UnknownEdgeError) as caught:
        client.remove_edges([("r0", "r20")])
    assert caught.value.missing == [("r0", "r20")]


def test_client_raises_the_error_of_a_model_for_a_refused_value(client: ripplevec.Client) -> None:
    with pytest.raises(ripplevec.InvalidValueError, match=r"answered 422: k: .*, got '0'") as caught:
        client.nearest("r0", 0)
    assert isinstance(caught.value, ServiceError)
    assert pickle.loads(pickle.dumps(caught.value)).status == 422


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "",
        "ftp://localhost",
        "http://",
        "http://localhost:port",
        "http://localhost:65536",
        8080,
    ],
)
def test_client_of_an_address_that_cannot_be_used_is_refused(url: Any) -> None:
    message = f"url: expected an address such as http.*, got {re.escape(repr(url))}"
    with pytest.raises(ripplevec.InvalidValueError, match=message):
        ripplevec.Client(url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": "two words"}, "token: expected ASCII text without spaces"),
        ({"token": "töken"}, "token: expected ASCII text without spaces"),
        ({"token": "token\n"}, "token: expected ASCII text without spaces and line ends, got other characters"),
        ({"timeout": "90"}, "timeout: expected a number of seconds > 0 .*, got '90'"),
        ({"timeout": -1}, "timeout: expected a number of seconds > 0 .*, got -1"),
        ({"timeout": float("inf")}, "timeout: expected a number of seconds > 0 .*, got inf"),
        ({"retries": 1.5}, "retries: expected a whole number ≥ 0, got 1.5"),
        ({"retries": -1}, "retries: expected a whole number ≥ 0, got -1"),
    ],
)
def test_client_with_an_option_that_cannot_be_used_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ripplevec.InvalidValueError, match=message):
        ripplevec.Client("http://127.0.0.1:1", **options)


def test_client_after_close_raises_state_error(service: Any) -> None:
    client = ripplevec.Client(service.url)
    changes = client.changes(since=0)
    next(changes)
    client.close()
    for call in (client.stats, lambda: client.add_edges([("a", "b")]), lambda: [*changes]):
        with pytest.raises(StateError, match=r"the client is closed\. Create another client\."):
            call()


def test_id_that_does_not_fit_in_an_address_is_refused(client: ripplevec.Client) -> None:
    with pytest.raises(ripplevec.InvalidValueError, match="request: expected an id that fits in an address, got"):
        client.vertex("x" * 70_000)


@contextmanager
def serve_bytes(body: bytes, **headers: str) -> Iterator[str]:
    """Run a server that answers every request with these bytes; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200)
            for name, value in {**headers, "Content_Length": str(len(body))}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *arguments: Any) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("body", "headers", "got"),
    [
        (b"<html>Welcome", {"Content_Type": "text/html"}, r"'<html>Welcome' of type 'text/html'"),
        (b"\xff", {}, "of type ''"),
        (b"{}", {}, r"'\{\}'"),
        (b"[1]", {}, r"'\[1\]'"),
        (b"no gzip", {"Content_Encoding": "gzip"}, "one that cannot be decoded"),
    ],
)
def test_response_of_another_server_raises_unexpected_response(body: bytes, headers: Any, got: str) -> None:
    message = rf"http://127\.0\.0\.1:\d+.*: expected a response of `ripplevec serve`, got .*{got}.*Check the address"
    with serve_bytes(body, **headers) as url, ripplevec.Client(url, retries=0) as client:
        for call in (client.stats, lambda: client.nearest("a"), lambda: client.vectors(["a"])):
            with pytest.raises(UnexpectedResponseError, match=message):
                call()
        with pytest.raises(UnexpectedResponseError, match=r"Content-Type.*Check the address"):
            next(client.changes(since=0))


@pytest.mark.parametrize("data", ["no json", "[]", '{"sequence": 1}'])
def test_change_event_that_cannot_be_read_raises_unexpected_response(data: str) -> None:
    event = f"event: changes\ndata: {data}\n\n".encode()
    with (
        serve_bytes(event, Content_Type="text/event-stream") as url,
        ripplevec.Client(url, retries=0) as client,
        pytest.raises(UnexpectedResponseError, match=rf"got the event {re.escape(repr(data))}"),
    ):
        next(client.changes(since=0))


def test_client_repr_names_the_address() -> None:
    assert repr(ripplevec.Client("http://127.0.0.1:1/")) == "Client('http://127.0.0.1:1')"


def test_client_of_another_server_says_that_the_endpoint_is_unknown(service: Any) -> None:
    with (
        ripplevec.Client(service.url + "/other") as client,
        pytest.raises(NotFoundError, match=r"expected an endpoint .*/docs"),
    ):
        client.nearest("r0")


def test_service_page_names_every_method_of_a_client_and_every_method_it_lacks() -> None:
    page = Path(__file__).parents[2].joinpath("docs/service.md").read_text()
    page = page[page.index("## From Python") : page.index("**Errors** of a client")]
    methods, missing = page.split("A client does **not** have:")
    kinds = (ripplevec.Client, ripplevec.Embedder)
    public, of_models = ({name for name in dir(kind) if not name.startswith("_")} for kind in kinds)
    parameters, spellings = set(inspect.signature(ripplevec.Embedder).parameters), {"neighbours"}
    internal = {"engine", "lock"} | {name for name in of_models if name.endswith("_with_sequence")}
    assert {name for name in public - {"close"} - spellings if f"`{name}`" not in methods} == set()
    assert {name for name in of_models - public - parameters - internal if f"`{name}`" not in missing} == set()
