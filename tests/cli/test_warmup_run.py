from __future__ import annotations

from ripplevec.cli import warmup_run


def test_warmup_workloads_run_in_processes(monkeypatch):
    monkeypatch.setattr(warmup_run, "WORKLOADS", {"integer ids": warmup_run.WORKLOADS["integer ids"]})
    assert [name for name, _ in warmup_run.run_workloads()] == ["integer ids"]


def test_warmup_workload_uses_the_kernels_of_single_arrivals():
    from ripplevec.rules._arrival_kernel import apply_arrival

    warmup_run.WORKLOADS["text ids"]()
    assert apply_arrival.signatures
