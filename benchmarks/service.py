"""Benchmark of the service: write throughput, latencies of arrivals and reads, and recovery time.

Service and clients run on this machine. There are four measurements:

- edges over HTTP in requests of 1,000, compared with the same batches applied to a session;
- single arrivals in sequence, each answered once it is on disk, compared with a plain write and flush;
- reads of vectors at 1,000 per second while edges are written at full speed;
- the start of a service on a state with `--vertices` vertices.

All but the last are made with and without anchors, which cost more than the stream itself on a graph that only grows.
Ratios are more meaningful than absolute values, because disks and machines differ.

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
from _report import run_benchmark
from _service_process import ServiceProcess, run_service

from ripplevec import Batch, Session

DIM, DEGREE = 128, 5
EDGES_PER_REQUEST, CLIENTS = 1_000, 4
WARM_UP_EDGES, TIMED_EDGES = 100_000, 400_000
ARRIVALS = 2_000
READS_PER_SECOND, READ_SECONDS, READER_CONNECTIONS = 1_000, 10.0, 16
PARAMETERS: dict[str, Any] = {"dim": DIM}


def growing_edges(edges: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return edges of a growing graph: each vertex has five edges to random earlier ones."""
    src = np.repeat(np.arange(1, edges // DEGREE + 2), DEGREE)[:edges]
    dst = (np.random.default_rng(seed).random(edges) * src).astype(np.int64)
    return np.stack([src, dst], axis=1)


def split_into_requests(edges: np.ndarray[Any, Any]) -> list[list[list[str]]]:
    """Return the edges with text ids, 1,000 per request."""
    pairs = [[f"v{src}", f"v{dst}"] for src, dst in edges.tolist()]
    return [pairs[start : start + EDGES_PER_REQUEST] for start in range(0, len(pairs), EDGES_PER_REQUEST)]


def post(connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
    """Send JSON over a persistent connection and return the response; exit unless it succeeds."""
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    result = json.loads(response.read())
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {result}")
    return result


def send_all(port: int, requests: list[Any], clients: int = CLIENTS) -> float:
    """Return the seconds until all requests are answered; each client sends one request after the other."""
    pending = list(reversed(requests))

    def send_pending() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while pending:
            try:
                edges = pending.pop()
            except IndexError:
                return
            post(connection, "/v1/edges", {"edges": edges})

    threads = [threading.Thread(target=send_pending) for _ in range(clients)]
    start_time = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start_time


def measure_session(requests: list[Any], folder: Path, parameters: dict[str, Any]) -> float:
    """Return the edges per second into a session, with one batch and one flush per request."""
    with Session(folder, **parameters) as session:
        return _measure_rate(requests, lambda edges: session.apply(Batch.of(*map(list, zip(*edges, strict=True)))))


def _measure_rate(requests: list[Any], apply: Any) -> float:
    warm_up = WARM_UP_EDGES // EDGES_PER_REQUEST
    for edges in requests[:warm_up]:
        apply(edges)
    start_time = time.perf_counter()
    for edges in requests[warm_up:]:
        apply(edges)
    return (len(requests) - warm_up) * EDGES_PER_REQUEST / (time.perf_counter() - start_time)


def measure_http(requests: list[Any], service: ServiceProcess) -> float:
    """Return the edges per second through the service, measured by its clients."""
    warm_up = WARM_UP_EDGES // EDGES_PER_REQUEST
    send_all(service.port, requests[:warm_up])
    return (len(requests) - warm_up) * EDGES_PER_REQUEST / send_all(service.port, requests[warm_up:])


def measure_arrivals(service: ServiceProcess, vertices: int) -> tuple[float, float]:
    """Return the median and 99th percentile latency of single arrivals in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    neighbor_rows = np.random.default_rng(1).integers(0, vertices, (ARRIVALS + 50, DEGREE)).tolist()
    latencies = []
    for number, row in enumerate(neighbor_rows):
        body = {"arrivals": [{"id": f"single{number}", "neighbors": [f"v{neighbor}" for neighbor in row]}]}
        start_time = time.perf_counter()
        post(connection, "/v1/arrivals", body)
        latencies.append(time.perf_counter() - start_time)
    return _percentiles(latencies[50:])


def measure_flush(folder: Path) -> tuple[float, float]:
    """Return the median and 99th percentile latency of a 4 KiB write with a flush, in milliseconds."""
    latencies = []
    with (folder / "flushed").open("wb", buffering=0) as file:
        for _ in range(ARRIVALS // 4):
            start_time = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            latencies.append(time.perf_counter() - start_time)
    return _percentiles(latencies)


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return float(p50), float(p99)


def measure_reads_while_writing(service: ServiceProcess, vertices: int) -> dict[str, float]:
    """Measure reads at a fixed rate of 1,000 per second while edges are written at full speed."""
    results: Any = multiprocessing.get_context("spawn").Queue()
    reader = multiprocessing.get_context("spawn").Process(target=_run_reader, args=(service.port, vertices, results))
    edges = growing_edges(4_000_000, seed=3)
    edges[:, 0] += vertices
    stop, sent = threading.Event(), 0
    reader.start()
    start_time = time.perf_counter()

    def write() -> None:
        nonlocal sent
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        for start in range(0, len(edges), EDGES_PER_REQUEST):
            if stop.is_set():
                return
            pairs = [[f"v{src}", f"v{dst}"] for src, dst in edges[start : start + EDGES_PER_REQUEST].tolist()]
            post(connection, "/v1/edges", {"edges": pairs})
            sent += EDGES_PER_REQUEST

    writer = threading.Thread(target=write)
    writer.start()
    latencies, read_rate = results.get()
    stop.set()
    writer.join()
    seconds = time.perf_counter() - start_time
    reader.join()
    p50, p99 = _percentiles(latencies)
    return {
        "read_p50_ms": p50,
        "read_p99_ms": p99,
        "reads_per_second": read_rate,
        "edges_per_second_meanwhile": sent / seconds,
    }


def _run_reader(port: int, vertices: int, results: Any) -> None:
    latencies, seconds = asyncio.run(_read_at_fixed_rate(port, vertices))
    results.put((latencies, len(latencies) / seconds))


async def _read_at_fixed_rate(port: int, vertices: int) -> tuple[list[float], float]:
    """Read at scheduled times over several connections.

    Return the latencies, measured from the scheduled times, and the total seconds.
    """
    total = int(READS_PER_SECOND * READ_SECONDS)
    ids = np.random.default_rng(2).integers(0, vertices, total).tolist()
    await asyncio.sleep(1)  # until writing has started
    loop, latencies = asyncio.get_running_loop(), []
    start_time = loop.time()

    async def read_share(connection: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(connection, total, READER_CONNECTIONS):
            scheduled = start_time + number / READS_PER_SECOND
            await asyncio.sleep(max(0.0, scheduled - loop.time()))
            writer.write(b"GET /v1/vertices/v%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % ids[number])
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
            await reader.readexactly(size)
            if b" 200 " not in head[:20]:
                raise SystemExit(head.decode())
            latencies.append(loop.time() - scheduled)
        writer.close()

    await asyncio.gather(*(read_share(connection) for connection in range(READER_CONNECTIONS)))
    return latencies, loop.time() - start_time


def measure_recovery(folder: Path, vertices: int) -> dict[str, float]:
    """Return the seconds of recovery and process start of a service with a snapshot of this many vertices."""
    edges = growing_edges((vertices - 1) * DEGREE)
    state = folder / "large"
    with Session(state, anchor_growth=0, **PARAMETERS) as session:
        for start in range(0, len(edges), 100_000):
            session.apply(edges[start : start + 100_000])
        session.snapshot()
    with run_service(state) as service:
        event = service.ready_event()
        if (event["vertices"], event["replayed"]) != (vertices, 0):
            raise SystemExit(f"expected a snapshot of {vertices:,} vertices, got {event}")
        return {"recovery_seconds": event["seconds"], "process_start_seconds": service.start_seconds - event["seconds"]}


def measure_stream(requests: list[Any], folder: Path, anchors: bool) -> dict[str, float]:
    """Run all measurements on a stream, with default anchors or without anchors."""
    name, vertices = "anchored" if anchors else "plain", (WARM_UP_EDGES + TIMED_EDGES) // DEGREE
    parameters, options = (PARAMETERS, []) if anchors else (PARAMETERS | {"anchor_growth": 0}, ["--anchor-growth", "0"])
    session_rate = measure_session(requests, folder / f"session-{name}", parameters)
    with run_service(folder / f"state-{name}", "--dim", str(DIM), *options) as service:
        http_rate = measure_http(requests, service)
        p50, p99 = measure_arrivals(service, vertices)
        reads = measure_reads_while_writing(service, vertices)
    metrics = {
        "edges_per_second_durable": session_rate,
        "edges_per_second_http": http_rate,
        "http_over_durable": http_rate / session_rate,
        "arrival_p50_ms": p50,
        "arrival_p99_ms": p99,
        **reads,
    }
    return {f"{metric}_{name}": value for metric, value in metrics.items()}


def measure(vertices: int) -> dict[str, Any]:
    """Run all measurements."""
    requests = split_into_requests(growing_edges(WARM_UP_EDGES + TIMED_EDGES))
    with tempfile.TemporaryDirectory(dir=os.environ.get("RIPPLEVEC_BENCH_DIR")) as name:
        folder = Path(name)
        flush_p50, flush_p99 = measure_flush(folder)
        plain, anchored = measure_stream(requests, folder, False), measure_stream(requests, folder, True)
        return {
            **plain,
            **anchored,
            "flush_p50_ms": flush_p50,
            "flush_p99_ms": flush_p99,
            "arrival_over_flush_p50_plain": plain["arrival_p50_ms_plain"] / flush_p50,
            **{
                f"{metric}_anchored_over_plain": anchored[f"{metric}_anchored"] / plain[f"{metric}_plain"]
                for metric in ("edges_per_second_http", "read_p99_ms")
            },
            "recovered_vertices": vertices,
            **measure_recovery(folder, vertices),
        }


if __name__ == "__main__":
    run_benchmark(__doc__, measure, "vertices", 1_000_000)
