"""Reference process of the crash test: applies the streams in memory, is never killed, and returns digests."""

from __future__ import annotations

import json
import os

from _crash_process import SESSION, make_batch, send
from _crash_sources import BATCH_SIZE, generate_events

from ripplevec.durability.session_model import build_metadata, create_model


class Reference:
    """Client of the reference process, which is forked first: workers must not inherit its threads."""

    def __init__(self) -> None:
        (requests, send_requests), (receive_answers, answers) = os.pipe(), os.pipe()
        self._child = os.fork()
        if not self._child:
            os.close(send_requests)
            os.close(receive_answers)
            _serve_digests(requests, answers)
            os._exit(0)
        os.close(requests)
        os.close(answers)
        self._requests, self._answers = send_requests, os.fdopen(receive_answers, "rb")

    def digest(self, seed: int, batches: int, sequence: int) -> str | None:
        """Return the digest of a stream after a batch; None if a later batch of the stream was already requested."""
        send(self._requests, (seed, batches, sequence))
        digest: str | None = json.loads(self._answers.readline())
        return digest

    def close(self) -> None:
        """End the process."""
        os.close(self._requests)
        self._answers.close()
        os.waitpid(self._child, 0)


NOT_PARAMETERS = ("snapshot_every", "model")


class _Replay:
    """Replay of one stream, up to the last batch requested."""

    def __init__(self, seed: int, batches: int) -> None:
        parameters = {name: value for name, value in SESSION.items() if name not in NOT_PARAMETERS}
        self.stream = seed, batches
        self._rows = generate_events(batches * BATCH_SIZE, seed)
        self._model = create_model(build_metadata(parameters), threads=1)

    def digest(self, sequence: int) -> str | None:
        while self._model.sequence < sequence:
            self._model.apply_batch(make_batch(self._rows, self._model.sequence))
        return self._model.digest() if self._model.sequence == sequence else None


def _serve_digests(requests: int, answers: int) -> None:
    replay: _Replay | None = None
    with os.fdopen(requests, "rb") as lines:
        for line in lines:
            seed, batches, sequence = json.loads(line)
            if replay is None or replay.stream != (seed, batches):
                replay = _Replay(seed, batches)
            send(answers, replay.digest(sequence))
