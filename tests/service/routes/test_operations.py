"""Endpoints for operation: statistics, metrics, health and readiness."""

from __future__ import annotations

import errno
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import ripplevec.service.lifecycle as runtime_module
from ripplevec.durability.session import Session


def test_stats_report_sizes_and_status(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], ["b", "c"])
    stats = service.http.get("/v1/stats").json()
    assert (stats["sequence"], stats["vertices"], stats["edges"], stats["status"]) == (1, 3, 2, "ready")
    assert "ready" not in stats  # the status of the service; a model is started or not
    assert stats["feed"] == {"oldest": 0, "newest": 1, "followers": 0}
    assert (stats["recent"]["batches"], stats["recent"]["arrivals"]) == (1, 3)
    assert "digest" not in stats
    assert "diagnostics" not in stats


def test_stats_digest_matches_the_model(service: Any) -> None:
    stats = service.http.get("/v1/stats?digest=true&full=true").json()
    assert stats["digest"] == service.runtime.model.digest()
    assert stats["diagnostics"]["vertices"] == len(service.runtime.model)


def value(text: str, name: str) -> float:
    (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found)


def test_metrics_count_events_and_requests(start: Any) -> None:
    service = start()
    service.edges(["a", "b"], ["b", "c"])
    service.edges(["x", "a"])
    service.http.delete("/v1/vertices/x")
    service.http.get("/v1/vertices/unknown")
    text = service.http.get("/metrics").text
    expected = {
        "ripplevec_batches_total": 3,
        "ripplevec_events_total": 4,
        "ripplevec_arrivals_total": 4,
        "ripplevec_removals_total": 1,
        "ripplevec_vertices": 3,
        "ripplevec_edges": 2,
        "ripplevec_sequence": 3,
        "ripplevec_ready": 1,
        "ripplevec_queue_requests": 0,
        "ripplevec_write_seconds_count": 3,
        'ripplevec_requests_total{method="POST",route="/v1/edges",status="200"}': 2,
        'ripplevec_requests_total{method="GET",route="/v1/vertices/{id}",status="404"}': 1,
    }
    assert {name: value(text, name) for name in expected} == expected
    assert "unknown" not in text


def test_metrics_report_drift_since_the_last_anchor(service: Any) -> None:
    assert value(service.http.get("/metrics").text, "ripplevec_drift_degrees") == 0
    service.edges(*[["r0", f"r{number}", 50.0] for number in range(20, 30)])
    assert value(service.http.get("/metrics").text, "ripplevec_drift_degrees") > 0


def test_service_during_recovery_is_alive_but_not_ready(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(*arguments: Any, **options: Any) -> Session:
        go_on.wait()
        return Session(*arguments, **options)

    monkeypatch.setattr(runtime_module, "Session", slow)
    service = start(ready=False)
    try:
        assert service.http.get("/healthz").json() == {"status": "recovering"}
        assert service.http.get("/readyz").status_code == 503
        for refused in (service.edges(["a", "b"]), service.http.get("/v1/stats"), service.http.get("/v1/vertices/a")):
            assert refused.status_code == 503
            assert refused.headers["retry-after"]
        assert value(service.http.get("/metrics").text, "ripplevec_ready") == 0
    finally:
        go_on.set()
    while service.http.get("/readyz").status_code != 200:
        time.sleep(0.005)
    assert value(service.http.get("/metrics").text, "ripplevec_ready") == 1
    assert service.edges(["a", "b"]).status_code == 200


def test_metrics_and_stats_without_file_handles_are_answered(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    service.edges(["a", "b"])
    service.runtime.session.snapshot()
    assert "ripplevec_snapshot_sequence 1.0" in service.http.get("/metrics").text

    def no_handle(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "iterdir", no_handle)
    text = service.http.get("/metrics")
    assert text.status_code == 200
    assert "ripplevec_snapshot_sequence 1.0" in text.text
    assert "ripplevec_vertices 2.0" in text.text
    assert service.http.get("/v1/stats").json()["snapshot"]["sequence"] == 1


@contextmanager
def no_free_file_handles() -> Iterator[None]:
    """Use up the file handles of this process; existing connections remain open."""
    limits, handles = resource.getrlimit(resource.RLIMIT_NOFILE), list[int]()
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, limits[1]))
    try:
        with suppress(OSError):
            while True:
                handles.append(os.dup(0))
        yield
    finally:
        for handle in handles:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_service_without_free_file_handles_answers_open_connections(start: Any) -> None:
    service = start()
    service.edges(["a", "b"])
    service.runtime.session.snapshot()
    paths = ("/metrics", "/v1/stats", "/healthz", "/readyz", "/v1/vertices/a", "/v1/vertices/a/nearest")
    for path in paths:
        assert service.http.get(path).status_code == 200, path
    with no_free_file_handles():
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        answers = {path: service.http.get(path) for path in paths}
        written = service.edges(["b", "c"])
    for path, answer in answers.items():
        assert answer.status_code == 200, (path, answer.text)
    assert value(answers["/metrics"].text, "ripplevec_snapshot_sequence") == 1
    assert written.status_code == 200, written.text
    assert service.http.get("/v1/stats").json()["sequence"] == 2


def test_readiness_after_refused_anchor_has_a_warning(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ripplevec.rules.anchor import CorrectionError
    from ripplevec.rules.gradual_correction import GradualCorrection
    from ripplevec.rules.ripple import RippleRule

    def no_good(*arguments: Any, **options: Any) -> Any:
        raise CorrectionError("nothing usable")

    assert service.http.get("/readyz").json() == {"status": "ready"}
    with monkeypatch.context() as patch:
        patch.setattr(GradualCorrection, "advance", no_good)
        patch.setattr(RippleRule, "solve_anchor", no_good)  # anchors of shards are computed at once
        for number in range(400):
            service.edges([f"new {number}", f"new {max(number - 1, 0)}"], [f"new {number}", 0])
            if service.runtime.model.engine.anchors_refused:
                break
    answer = service.http.get("/readyz")
    assert answer.status_code == 200
    assert "anchors refused in a row: 1" in answer.json()["warning"]
    assert value(service.http.get("/metrics").text, "ripplevec_anchors_refused") == 1
