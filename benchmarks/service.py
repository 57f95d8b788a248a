"""The service: what it takes in, how soon it answers, and how soon it is back.

Everything runs on this machine, clients included: edges over HTTP in requests of 1,000, against the same batches into a
durable session; single arrivals one after the other, each answered once it is on disk, against a bare write and flush;
reads of vectors at 1,000 a second while edges come in as fast as they are taken; and the start of a service on a state
of `--vertices` vertices. All but the last with anchors, which on a graph that does nothing but grow cost more than the
stream itself, and without. Ratios mean more than figures: disks and machines differ.

    python benchmarks/service.py --vertices 1000000 --json results/service.json
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import os
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from _report import run
from _service_process import ServiceProcess, run_service

from ripplevec import Batch, Session

DIM, DEGREE = 128, 5
REQUEST, CLIENTS = 1_000, 4
WARM, TAKEN = 100_000, 400_000  # edges
ARRIVALS = 2_000
READS, READ_SECONDS, READERS = 1_000, 10.0, 16
PARAMETERS: dict[str, Any] = {"dim": DIM}


def growing_edges(edges: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Every vertex comes with five edges to earlier ones chosen at random."""
    src = np.repeat(np.arange(1, edges // DEGREE + 2), DEGREE)[:edges]
    dst = (np.random.default_rng(seed).random(edges) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


def requests_of(edges: np.ndarray[Any, Any]) -> list[list[list[str]]]:
    """Edges as text ids, 1,000 to a request."""
    pairs = [[f"v{src}", f"v{dst}"] for src, dst in edges.tolist()]
    return [pairs[first : first + REQUEST] for first in range(0, len(pairs), REQUEST)]


def post(connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
    """Send JSON over a connection that stays open; the answer, which must be one of success."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {answer}")
    return answer


def send_all(port: int, requests: list[Any], clients: int = CLIENTS) -> float:
    """Seconds until all requests are answered, several clients sending one after the other."""
    waiting = list(reversed(requests))

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while waiting:
            try:
                edges = waiting.pop()
            except IndexError:
                return
            post(connection, "/v1/edges", {"edges": edges})

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


# what is measured


def durable(requests: list[Any], folder: Path, parameters: dict[str, Any]) -> float:
    """Edges per second into a session, a batch and a flush per request."""
    with Session(folder, **parameters) as session:
        return _taken(requests, lambda edges: session.apply(Batch.of(*map(list, zip(*edges, strict=True)))))


def _taken(requests: list[Any], take: Any) -> float:
    warm = WARM // REQUEST
    for edges in requests[:warm]:
        take(edges)
    began = time.perf_counter()
    for edges in requests[warm:]:
        take(edges)
    return (len(requests) - warm) * REQUEST / (time.perf_counter() - began)


def over_http(requests: list[Any], service: ServiceProcess) -> float:
    """Edges per second through the service, as its clients see it."""
    warm = WARM // REQUEST
    send_all(service.port, requests[:warm])
    return (len(requests) - warm) * REQUEST / send_all(service.port, requests[warm:])


def single_arrivals(service: ServiceProcess, known: int) -> tuple[float, float]:
    """The median and the 99th percentile of single arrivals, in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    ends = np.random.default_rng(1).integers(0, known, (ARRIVALS + 50, DEGREE)).tolist()
    taken = []
    for number, row in enumerate(ends):
        body = {"arrivals": [{"id": f"single{number}", "neighbors": [f"v{end}" for end in row]}]}
        began = time.perf_counter()
        post(connection, "/v1/arrivals", body)
        taken.append(time.perf_counter() - began)
    return _percentiles(taken[50:])


def bare_flush(folder: Path) -> tuple[float, float]:
    """The same of a write of 4 KiB and a flush, and nothing else."""
    taken = []
    with (folder / "flushed").open("wb", buffering=0) as file:
        for _ in range(ARRIVALS // 4):
            began = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return _percentiles(taken)


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return float(p50), float(p99)


def reads_while_writing(service: ServiceProcess, first: int) -> dict[str, float]:
    """Latencies of reads that come 1,000 a second whatever happens, while edges are taken in at full speed."""
    results: Any = multiprocessing.get_context("spawn").Queue()
    reader = multiprocessing.get_context("spawn").Process(target=_read, args=(service.port, first, results))
    edges = growing_edges(4_000_000, seed=3)
    edges[:, 0] += first
    stop, sent = threading.Event(), 0
    reader.start()
    began = time.perf_counter()

    def feed() -> None:
        nonlocal sent
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        for place in range(0, len(edges), REQUEST):
            if stop.is_set():
                return
            pairs = [[f"v{src}", f"v{dst}"] for src, dst in edges[place : place + REQUEST].tolist()]
            post(connection, "/v1/edges", {"edges": pairs})
            sent += REQUEST

    feeder = threading.Thread(target=feed)
    feeder.start()
    taken, reads = results.get()
    stop.set()
    feeder.join()
    seconds = time.perf_counter() - began
    reader.join()
    p50, p99 = _percentiles(taken)
    return {
        "read_p50_ms": p50,
        "read_p99_ms": p99,
        "reads_per_second": reads,
        "edges_per_second_meanwhile": sent / seconds,
    }


def _read(port: int, known: int, results: Any) -> None:
    taken, seconds = asyncio.run(_paced(port, known))
    results.put((taken, len(taken) / seconds))


async def _paced(port: int, known: int) -> tuple[list[float], float]:
    """Reads at fixed times, by a few connections; latencies from when each was due, and the seconds it all took."""
    total = int(READS * READ_SECONDS)
    ids = np.random.default_rng(2).integers(0, known, total).tolist()
    await asyncio.sleep(1)  # until the writing is under way
    loop, taken = asyncio.get_running_loop(), []
    began = loop.time()

    async def one(which: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(which, total, READERS):
            due = began + number / READS
            await asyncio.sleep(max(0.0, due - loop.time()))
            writer.write(b"GET /v1/vertices/v%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % ids[number])
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
            await reader.readexactly(size)
            if b" 200 " not in head[:20]:
                raise SystemExit(head.decode())
            taken.append(loop.time() - due)
        writer.close()

    await asyncio.gather(*(one(which) for which in range(READERS)))
    return taken, loop.time() - began


def recovery(folder: Path, vertices: int) -> dict[str, float]:
    """Seconds from the start of the process until the service is ready, with a snapshot of so many vertices."""
    edges = growing_edges((vertices - 1) * DEGREE)
    state = folder / "large"
    with Session(state, anchor_growth=0, **PARAMETERS) as session:
        for first in range(0, len(edges), 100_000):
            session.apply(edges[first : first + 100_000])
        session.snapshot()
    with run_service(state) as service:
        event = service.ready_event()
        if (event["vertices"], event["replayed"]) != (vertices, 0):
            raise SystemExit(f"expected a snapshot of {vertices:,} vertices, got {event}")
        return {"recovery_seconds": event["seconds"], "process_start_seconds": service.start_seconds - event["seconds"]}


def streams(requests: list[Any], folder: Path, anchors: bool) -> dict[str, float]:
    """Everything that is measured on a stream, with the corrections that are the default, or without any."""
    name, known = "anchored" if anchors else "plain", (WARM + TAKEN) // DEGREE
    parameters, options = (PARAMETERS, []) if anchors else (PARAMETERS | {"anchor_growth": 0}, ["--anchor-growth", "0"])
    kept = durable(requests, folder / f"session-{name}", parameters)
    with run_service(folder / f"state-{name}", "--dim", str(DIM), *options) as service:
        taken = over_http(requests, service)
        p50, p99 = single_arrivals(service, known)
        reads = reads_while_writing(service, known)
    found = {
        "edges_per_second_durable": kept,
        "edges_per_second_http": taken,
        "http_over_durable": taken / kept,
        "arrival_p50_ms": p50,
        "arrival_p99_ms": p99,
        **reads,
    }
    return {f"{figure}_{name}": value for figure, value in found.items()}


def measure(vertices: int) -> dict[str, Any]:
    """All figures, in one run."""
    requests = requests_of(growing_edges(WARM + TAKEN))
    with tempfile.TemporaryDirectory(dir=os.environ.get("RIPPLEVEC_BENCH_DIR")) as name:
        folder = Path(name)
        flush_p50, flush_p99 = bare_flush(folder)
        plain, anchored = streams(requests, folder, False), streams(requests, folder, True)
        return {
            **plain,
            **anchored,
            "flush_p50_ms": flush_p50,
            "flush_p99_ms": flush_p99,
            "arrival_over_flush_p50_plain": plain["arrival_p50_ms_plain"] / flush_p50,
            "recovered_vertices": vertices,
            **recovery(folder, vertices),
        }


if __name__ == "__main__":
    run(__doc__, measure, "vertices", 1_000_000)
