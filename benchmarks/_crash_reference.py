"""A process that takes in the streams of the crash test in memory and is never killed, to compare digests with."""

from __future__ import annotations

import json
import os

from _crash_process import SESSION, batch_of, send
from _crash_sources import SIZE, events

from ripplevec.durability.session_model import build_metadata, create_model


class Reference:
    """Asks the other process. It is forked first, so that its threads are not forked with those that are killed."""

    def __init__(self) -> None:
        (questions, to), (back, answers) = os.pipe(), os.pipe()
        self._child = os.fork()
        if not self._child:
            os.close(to)
            os.close(back)
            _answer(questions, answers)
            os._exit(0)
        os.close(questions)
        os.close(answers)
        self._to, self._back = to, os.fdopen(back, "rb")

    def digest(self, seed: int, batches: int, sequence: int) -> str | None:
        """The digest of a stream after this batch; None where the last question was about a later one."""
        send(self._to, (seed, batches, sequence))
        return json.loads(self._back.readline())

    def close(self) -> None:
        """End the process."""
        os.close(self._to)
        self._back.close()
        os.waitpid(self._child, 0)


class _Replay:
    """One stream, as far as it has been asked for."""

    def __init__(self, seed: int, batches: int) -> None:
        given = {name: value for name, value in SESSION.items() if name not in ("anchor_lag", "snapshot_every")}
        self.stream = seed, batches
        self._rows = events(batches * SIZE, seed)
        self._model = create_model(build_metadata(given, SESSION["anchor_lag"]), threads=1)

    def digest(self, sequence: int) -> str | None:
        while self._model.sequence < sequence:
            self._model.apply_batch(batch_of(self._rows, self._model.sequence))
        return self._model.digest() if self._model.sequence == sequence else None


def _answer(questions: int, answers: int) -> None:
    replay: _Replay | None = None
    with os.fdopen(questions, "rb") as lines:
        for line in lines:
            seed, batches, sequence = json.loads(line)
            if replay is None or replay.stream != (seed, batches):
                replay = _Replay(seed, batches)
            send(answers, replay.digest(sequence))
