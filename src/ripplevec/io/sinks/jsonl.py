"""JSON Lines sinks: changes in a file or on standard output, and rejected messages in a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from ripplevec.changes import Changes
from ripplevec.io.change_messages import encode_change_messages
from ripplevec.io.protocols import BadMessage


class JsonlSink:
    """A file to which every batch appends a line with its changes (several lines if there are many)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _AppendOnlyFile(path)

    def write(self, changes: Changes) -> None:
        """Append the lines of one batch."""
        for message in encode_change_messages(changes):
            self._file.append(message)

    def flush(self) -> None:
        """Return once all lines are on disk."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


class StdoutSink:
    """Standard output, one line per batch (several lines if it has many changes)."""

    def write(self, changes: Changes) -> None:
        """Print the lines of one batch."""
        for message in encode_change_messages(changes):
            sys.stdout.buffer.write(message + b"\n")

    def flush(self) -> None:
        """Return once all lines have been passed to the reader."""
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Flush; standard output belongs to the process and stays open."""
        self.flush()


class JsonlDeadLetters:
    """A file of rejected messages, one per line, on disk before the stream continues."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = _AppendOnlyFile(path)

    def record(self, source: str, bad_message: BadMessage) -> None:
        """Append one message with its reason."""
        self._file.append(encode_dead_letter(source, bad_message))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def dead_letter_fields(source: str, bad_message: BadMessage) -> dict[str, str]:
    """Return the fields under which a rejected message is stored: source, where, reason, message."""
    return {
        "source": source,
        "where": bad_message.where,
        "reason": bad_message.reason,
        "message": bad_message.message,
    }


def encode_dead_letter(source: str, bad_message: BadMessage) -> bytes:
    """Return a rejected message as JSON."""
    return json.dumps(dead_letter_fields(source, bad_message)).encode()


class _AppendOnlyFile:
    """A file of lines that grows; an incomplete line left by a crash is removed when it is opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("ab")  # noqa: SIM115  (closed by the owner)
        complete_size = _size_of_complete_lines(Path(path))
        if complete_size < self._file.tell():
            self._file.truncate(complete_size)

    def append(self, line: bytes) -> None:
        self._file.write(line + b"\n")

    def flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self.flush()
        finally:  # drop what cannot be written; it would otherwise appear later among lines written by another process
            self._file.close()


def _size_of_complete_lines(path: Path, step: int = 1 << 16) -> int:
    """Return the size of a file up to its last newline."""
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
