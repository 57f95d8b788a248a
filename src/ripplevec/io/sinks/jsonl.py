"""Changes and refused messages as lines of JSON: in a file that grows, or on standard output."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.protocols import BadMessage


class JsonlSink:
    """A file to which every batch adds a line with its changes (several, where there are many)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _Growing(path)

    def write(self, changes: Changes) -> None:
        """Add the lines of one batch."""
        for message in encode_change_messages(changes):
            self._file.add(message)

    def flush(self) -> None:
        """Return once all lines are on disk."""
        self._file.flush()

    def close(self) -> None:
        """Flush, and let go of the file."""
        self._file.close()


class StdoutSink:
    """Standard output, a line per batch (several, where it changed much)."""

    def write(self, changes: Changes) -> None:
        """Print the lines of one batch."""
        for message in encode_change_messages(changes):
            sys.stdout.buffer.write(message + b"\n")

    def flush(self) -> None:
        """Return once whoever reads can have it all."""
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Flush; standard output belongs to the process."""
        self.flush()


class JsonlDeadLetters:
    """A file of messages that held no events, a line each, on disk before the stream goes on."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _Growing(path)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Add one message with its reason."""
        self._file.add(dead_letter(source, bad_message))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def dead_letter(source: str, bad_message: BadMessage) -> bytes:
    """A message that held no events, as it is kept: where it came from, why it was refused, what it was."""
    fields = {
        "source": source,
        "where": bad_message.where,
        "reason": bad_message.reason,
        "message": bad_message.message,
    }
    return json.dumps(fields).encode()


class _Growing:
    """A file of lines that is added to; the half of a line that a crash may have left is taken away first."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("ab")  # noqa: SIM115  (closed by whoever owns it)
        whole = _whole_lines(Path(path))
        if whole < self._file.tell():
            self._file.truncate(whole)

    def add(self, line: bytes) -> None:
        self._file.write(line + b"\n")

    def flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self.flush()
        finally:  # what cannot be written is let go with the file: later it would land among the lines of another
            self._file.close()


def _whole_lines(path: Path, step: int = 1 << 16) -> int:
    """The size of a file up to its last newline."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(end - step, 0)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0
