"""A model of what a disk may hold after a power cut, given the file operations before it.

What a flush returned for is there. Of everything else, a policy decides: all of it, none of it, a random part, the last
write torn. A file's bytes are flushed with the file, its name with the directory it lies in.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePosixPath

from _io_shim import Operation

SECTOR = 512


@dataclass
class Node:
    """A file or a directory: what programs see, what is flushed, and the operations in between."""

    is_directory: bool
    data: bytearray = field(default_factory=bytearray)
    entries: dict[str, Node] = field(default_factory=dict)
    flushed_data: bytes = b""
    flushed_entries: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)  # writes and truncations
    changes: list[tuple[int, str, str, Node | None]] = field(default_factory=list)  # of entries: when, removed, set, to


class Disk:
    """All operations so far."""

    def __init__(self) -> None:
        self.root = Node(True)
        self.time = 0

    def _find(self, path: str) -> Node:
        node = self.root
        for part in PurePosixPath(path).parts:
            node = node.entries[part]
        return node

    def _place(self, path: str) -> tuple[Node, str]:
        pure = PurePosixPath(path)
        return self._find(str(pure.parent) if pure.parent.parts else ""), pure.name

    def _enter(self, path: str, node: Node | None, gone: str = "") -> None:
        """Change one entry of a directory; `gone` is the name it had there before."""
        directory, name = self._place(path)
        if gone:
            directory.entries.pop(gone, None)
        if node is None:
            directory.entries.pop(name, None)
        else:
            directory.entries[name] = node
        directory.changes.append((self.time, gone, name, node))

    def apply(self, done: Operation) -> None:
        """Take over one operation."""
        self.time += 1
        if done.kind in ("create", "mkdir"):
            self._enter(done.path, Node(done.kind == "mkdir"))
        elif done.kind == "remove":
            self._enter(done.path, None)
        elif done.kind == "rename":
            node = self._find(done.path)
            (old, name), (new, _) = self._place(done.path), self._place(done.other)
            if old is not new:
                raise AssertionError(f"expected renames within a directory, got {done.path} to {done.other}")
            self._enter(done.other, node, name)
        elif done.kind in ("write", "truncate"):
            node = self._find(done.path)
            change(node.data, done.kind, done.offset, done.data)
            node.pending.append((done.kind, done.offset, done.data))
        elif done.kind == "flush":
            self._flush(self._find(done.path))

    def _flush(self, node: Node) -> None:
        if node.is_directory:
            node.flushed_entries, node.changes = dict(node.entries), []
        else:
            node.flushed_data, node.pending = bytes(node.data), []


def change(data: bytearray, kind: str, offset: int, written: bytes) -> None:
    """Write to a file or set its length; what lies in between is zero."""
    end = offset + len(written)
    if kind == "truncate":
        data[offset:] = b""
    data.extend(bytes(max(end - len(data), 0)))
    data[offset:end] = written


Data = Callable[[Node], bytes]
Entries = Callable[[Node], dict[str, Node]]


def write_image(disk: Disk, place: Path, data: Data, entries: Entries) -> None:
    """Write what is left of a disk into a directory."""

    def put(node: Node, path: Path) -> None:
        if not node.is_directory:
            path.write_bytes(data(node))
            return
        path.mkdir(exist_ok=True)
        for name, child in entries(node).items():
            put(child, path / name)

    put(disk.root, place)


def kept_entries(node: Node, keep: Callable[[int], bool]) -> dict[str, Node]:
    """The flushed entries of a directory, with some of the later changes."""
    entries = dict(node.flushed_entries)
    for when, gone, name, child in node.changes:
        if keep(when):
            if gone:
                entries.pop(gone, None)
            entries.pop(name, None) if child is None else entries.update({name: child})
    return entries


def kept_data(node: Node, keep: Callable[[], bool]) -> bytes:
    """The flushed bytes of a file, with some of the later writes."""
    data = bytearray(node.flushed_data)
    for kind, offset, written in node.pending:
        if keep():
            change(data, kind, offset, written)
    return bytes(data)


def sectors(written: bytes, offset: int, chooser: random.Random) -> Iterator[tuple[int, bytes]]:
    """Some sectors of a write: its beginning, or any of them."""
    cuts = [0, *range(SECTOR - offset % SECTOR, len(written), SECTOR), len(written)]
    pieces = [(offset + a, written[a:b]) for a, b in pairwise(cuts) if b > a]
    if chooser.random() < 0.5:
        yield from pieces[: chooser.randint(0, len(pieces))]
    else:
        yield from (piece for piece in pieces if chooser.random() < 0.5)


def ordered(disk: Disk, _: Operation | None, place: Path, __: random.Random) -> None:
    """Everything up to the power cut is there."""
    write_image(disk, place, lambda node: bytes(node.data), lambda node: node.entries)


def only_flushed(disk: Disk, _: Operation | None, place: Path, __: random.Random) -> None:
    """Nothing is there but what was flushed: bytes with their file, names with their directory."""
    write_image(disk, place, lambda node: node.flushed_data, lambda node: node.flushed_entries)


def random_part(disk: Disk, _: Operation | None, place: Path, chooser: random.Random) -> None:
    """Of what was not flushed, any part is there, in whatever order it was written."""
    share = chooser.choice([0.1, 0.5, 0.9])
    kept: dict[int, bool] = {}

    def keep(when: int) -> bool:
        return kept.setdefault(when, chooser.random() < share)

    data = lambda node: kept_data(node, lambda: chooser.random() < share)  # noqa: E731
    write_image(disk, place, data, lambda node: kept_entries(node, keep))


def ordered_names(disk: Disk, _: Operation | None, place: Path, chooser: random.Random) -> None:
    """Names are there up to some moment, as a file system with a journal keeps them; of the bytes any part is."""
    until, share = chooser.randint(0, disk.time), chooser.choice([0.0, 0.5])
    data = lambda node: kept_data(node, lambda: chooser.random() < share)  # noqa: E731
    write_image(disk, place, data, lambda node: kept_entries(node, lambda when: when <= until))


def torn(disk: Disk, last: Operation | None, place: Path, chooser: random.Random) -> None:
    """Everything is there, and of the write under way some sectors."""
    ordered(disk, None, place, chooser)
    if last is not None and last.kind == "write" and (path := place / last.path).exists():
        data = bytearray(path.read_bytes())
        for offset, piece in sectors(last.data, last.offset, chooser):
            change(data, "write", offset, piece)
        path.write_bytes(data)


POLICIES: dict[str, Callable[[Disk, Operation | None, Path, random.Random], None]] = {
    "everything": ordered,
    "only what was flushed": only_flushed,
    "a random part of what was not": random_part,
    "names in order, a random part of the bytes": ordered_names,
    "the last write torn": torn,
}
