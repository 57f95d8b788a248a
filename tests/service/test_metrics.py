"""Counters, gauges and the summary of the last minute."""

from __future__ import annotations

import numpy as np
import pytest

from ripplevec.changes import Changes
from ripplevec.service.metrics import Metrics


def make_changes(arrived: int, moved: int) -> Changes:
    ids = np.arange(arrived + moved)
    return Changes(ids, np.zeros((len(ids), 4), np.float32), lambda rows: rows, ids < arrived, ["gone"], 1, True)


def test_metrics_count_batches() -> None:
    metrics = Metrics()
    metrics.record_batch(10, make_changes(2, 3), 0.004)
    metrics.record_batch(5, make_changes(1, 0), 0.002)
    for anchors in (4, 4, 6):  # the first count is from before the service
        metrics.record_anchors(anchors)
    text = metrics.render().decode()
    for line in (
        "batches_total 2.0",
        "events_total 15.0",
        "arrivals_total 3.0",
        "changes_total 6.0",
        "anchors_total 2.0",
    ):
        assert f"ripplevec_{line}" in text
    assert "ripplevec_write_seconds_count 2.0" in text


def test_metrics_summarize_the_last_minute() -> None:
    metrics = Metrics()
    assert metrics.summarize_last_minute()["batches"] == 0
    metrics.record_batch(10, make_changes(2, 3), 0.004)
    metrics.record_batch(10, make_changes(2, 3), None)  # from a source: no request waited for it
    recent = metrics.summarize_last_minute()
    assert (recent["batches"], recent["events"], recent["arrivals"], recent["changes"]) == (2, 20, 4, 10)
    assert recent["p50"] == pytest.approx(0.004)


def test_gauge_is_read_on_demand() -> None:
    metrics, value = Metrics(), [1.0]
    metrics.add_gauge("level", "Water level.", lambda: value[0])
    value[0] = 7.0
    assert "ripplevec_level 7.0" in metrics.render().decode()


def test_gauge_that_fails_is_nan_and_others_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> float:
        raise OSError(24, "Too many open files")

    metrics = Metrics()
    metrics.add_gauge("broken", "Cannot be read.", failing)
    metrics.add_gauge("level", "Water level.", lambda: 3.0)
    text = metrics.render().decode()
    assert "ripplevec_broken NaN" in text
    assert "ripplevec_level 3.0" in text
    assert "metric failed" in caplog.text
