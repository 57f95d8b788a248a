"""Consistency of reads and followers with the batches that a service writes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from histories import ROUNDING, Reference, make_batches

from ripplevec import Session
from ripplevec.batch import ids_to_list, select_rows

HOW: dict[str, Any] = {"dim": 4, "anchor_growth": 0.05, "change_threshold": 0.0, "seed": 3, "threads": 1}
BATCHES = [
    select_rows(batch, np.arange(len(batch) - (number % 4 == 0 < number)))
    for number, batch in enumerate(make_batches(70))
]
"""What is added; the last row of some is a removal, which has a request of its own."""


def test_service_reads_match_the_state_of_their_sequence(start: Any, tmp_path: Path) -> None:
    with Session(tmp_path / "alone", **HOW) as alone:
        reference = Reference.of(alone.model, alone.apply, BATCHES)
        assert reference.states[-1].anchors >= 2  # the start, and one that the stream paid for
    service = start(parameters=HOW)
    names = list(dict.fromkeys(name for state in reference.states for name in state.ids))
    over, faults, reads, followed = threading.Event(), list[BaseException](), [0], list[int]()

    def look(http: httpx.Client) -> tuple[int, dict[Any, np.ndarray]]:
        answer = http.post("/v1/vectors", json={"ids": names}).json()
        found = zip(answer["ids"], answer["vectors"], strict=True)
        vectors = {name: np.array(vector, np.float32) for name, vector in found}
        check(answer["sequence"], vectors)
        return answer["sequence"], vectors

    def check(sequence: int, vectors: dict[Any, np.ndarray]) -> None:
        state = reference.states[sequence]
        assert set(vectors) == set(state.ids), sequence
        found = np.array([vectors[name] for name in state.ids], np.float32).reshape(state.vectors.shape)
        assert np.abs(found - state.vectors).max(initial=0.0) <= ROUNDING, sequence

    def read() -> None:
        with httpx.Client(base_url=service.url, timeout=30) as http:
            while not over.is_set():
                look(http)
                reads[0] += 1

    def follow() -> None:
        with httpx.Client(base_url=service.url, timeout=30) as http:
            sequence, vectors = look(http)
            while sequence < len(BATCHES):
                answer = http.get("/v1/changes", params={"since": sequence, "wait": 5})
                assert answer.status_code == 200, answer.text
                for batch in answer.json()["batches"]:
                    for name in batch["removed"]:
                        vectors.pop(name, None)
                    vectors |= {each["id"]: np.array(each["vector"], np.float32) for each in batch["changes"]}
                    sequence = batch["sequence"]
                check(sequence, vectors)
            followed.append(sequence)

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in (read, read, follow, follow)]
    for thread in threads:
        thread.start()
    for batch in BATCHES:
        answer = service.edges(*zip(ids_to_list(batch.src), ids_to_list(batch.dst), strict=True))
        assert answer.status_code == 200, answer.text
    over.set()
    for thread in threads:
        thread.join(60)
    assert not faults, faults
    assert followed == [len(BATCHES)] * 2
    assert reads[0] > 5


def refused(ask: Callable[[], httpx.Response]) -> bool:
    """Whether a service that has failed, and is about to end, says so or has ended."""
    try:
        return ask().status_code == 503
    except httpx.TransportError:
        return True


def test_service_interrupted_batch_fails_and_recovers_from_journal(
    start: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    from ripplevec.rules.ripple import RippleRule

    service = start()
    ring = [[i, (i + step) % 40] for i in range(40) for step in (1, 2, 5)]
    assert service.edges(*ring, key="ring").status_code == 200
    with monkeypatch.context() as patch:

        def fail(*_: Any) -> Any:
            raise MemoryError

        patch.setattr(RippleRule, "apply", fail)
        assert service.edges([0, "new"], key="lost").status_code >= 500
    assert refused(lambda: service.edges([0, "new"], key="lost"))  # not answered as applied
    assert refused(lambda: service.http.get("/v1/vertices/new"))
    assert refused(lambda: service.http.get("/readyz"))
    service.stop()
    service = start()
    answer = service.edges([0, "new"], key="lost").json()
    assert answer["repeated"]
    with Session(tmp_path / "clean", dim=8, threads=1) as clean:
        clean.apply(ring)
        clean.apply([(0, "new")])
        assert service.digest() == clean.model.digest()
