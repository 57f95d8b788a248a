"""Model of the possible disk contents after a power cut, given the file operations before it.

Flushed data survives. A policy decides about the rest: all of it survives, none of it, a random part, or all with the
last write torn. The bytes of a file are flushed with the file, its name with the directory that contains it.
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
    """File or directory: the content that programs see, the flushed content, and the operations in between."""

    is_directory: bool
    data: bytearray = field(default_factory=bytearray)
    entries: dict[str, Node] = field(default_factory=dict)
    flushed_data: bytes = b""
    flushed_entries: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[str, int, bytes]] = field(default_factory=list)  # writes and truncations
    changes: list[tuple[int, str, str, Node | None]] = field(
        default_factory=list
    )  # of directory entries: time, removed name, set name, its node


class Disk:
    """Tree of files and directories after all operations so far."""

    def __init__(self) -> None:
        self.root = Node(True)
        self.time = 0

    def _find(self, path: str) -> Node:
        node = self.root
        for part in PurePosixPath(path).parts:
            node = node.entries[part]
        return node

    def _parent(self, path: str) -> tuple[Node, str]:
        pure = PurePosixPath(path)
        return self._find(str(pure.parent) if pure.parent.parts else ""), pure.name

    def _set_entry(self, path: str, node: Node | None, old_name: str = "") -> None:
        """Set one entry of a directory, or remove it if `node` is None; `old_name` is removed in the same step."""
        directory, name = self._parent(path)
        if old_name:
            directory.entries.pop(old_name, None)
        if node is None:
            directory.entries.pop(name, None)
        else:
            directory.entries[name] = node
        directory.changes.append((self.time, old_name, name, node))

    def apply(self, operation: Operation) -> None:
        """Apply one file operation."""
        self.time += 1
        if operation.kind in ("create", "mkdir"):
            self._set_entry(operation.path, Node(operation.kind == "mkdir"))
        elif operation.kind == "remove":
            self._set_entry(operation.path, None)
        elif operation.kind == "rename":
            node = self._find(operation.path)
            (source, name), (target, _) = self._parent(operation.path), self._parent(operation.other)
            if source is not target:
                raise AssertionError(
                    f"expected a rename within one directory, got {operation.path} to {operation.other}"
                )
            self._set_entry(operation.other, node, name)
        elif operation.kind in ("write", "truncate"):
            node = self._find(operation.path)
            apply_change(node.data, operation.kind, operation.offset, operation.data)
            node.pending.append((operation.kind, operation.offset, operation.data))
        elif operation.kind == "flush":
            self._flush(self._find(operation.path))

    def _flush(self, node: Node) -> None:
        if node.is_directory:
            node.flushed_entries, node.changes = dict(node.entries), []
        else:
            node.flushed_data, node.pending = bytes(node.data), []


def apply_change(data: bytearray, kind: str, offset: int, written: bytes) -> None:
    """Write to a file or set its length; gaps are filled with zeros."""
    end = offset + len(written)
    if kind == "truncate":
        data[offset:] = b""
    data.extend(bytes(max(end - len(data), 0)))
    data[offset:end] = written


SelectData = Callable[[Node], bytes]
SelectEntries = Callable[[Node], dict[str, Node]]


def write_image(disk: Disk, directory: Path, data: SelectData, entries: SelectEntries) -> None:
    """Write the selected data and entries of a disk into a directory."""

    def write_node(node: Node, path: Path) -> None:
        if not node.is_directory:
            path.write_bytes(data(node))
            return
        path.mkdir(exist_ok=True)
        for name, child in entries(node).items():
            write_node(child, path / name)

    write_node(disk.root, directory)


def partial_entries(node: Node, keep: Callable[[int], bool]) -> dict[str, Node]:
    """Return the flushed entries of a directory with some of the later changes."""
    entries = dict(node.flushed_entries)
    for time, old_name, name, child in node.changes:
        if keep(time):
            if old_name:
                entries.pop(old_name, None)
            entries.pop(name, None) if child is None else entries.update({name: child})
    return entries


def partial_data(node: Node, keep: Callable[[], bool]) -> bytes:
    """Return the flushed bytes of a file with some of the later writes."""
    data = bytearray(node.flushed_data)
    for kind, offset, written in node.pending:
        if keep():
            apply_change(data, kind, offset, written)
    return bytes(data)


def choose_sectors(written: bytes, offset: int, chooser: random.Random) -> Iterator[tuple[int, bytes]]:
    """Choose sectors of a write that reached the disk: the first ones, or any of them."""
    cuts = [0, *range(SECTOR - offset % SECTOR, len(written), SECTOR), len(written)]
    pieces = [(offset + a, written[a:b]) for a, b in pairwise(cuts) if b > a]
    if chooser.random() < 0.5:
        yield from pieces[: chooser.randint(0, len(pieces))]
    else:
        yield from (piece for piece in pieces if chooser.random() < 0.5)


def keep_everything(disk: Disk, _: Operation | None, directory: Path, __: random.Random) -> None:
    """Keep everything up to the power cut."""
    write_image(disk, directory, lambda node: bytes(node.data), lambda node: node.entries)


def keep_flushed(disk: Disk, _: Operation | None, directory: Path, __: random.Random) -> None:
    """Keep only flushed content: bytes with their file, names with their directory."""
    write_image(disk, directory, lambda node: node.flushed_data, lambda node: node.flushed_entries)


def keep_random_part(disk: Disk, _: Operation | None, directory: Path, chooser: random.Random) -> None:
    """Keep a random part of the unflushed content, regardless of the order in which it was written."""
    share = chooser.choice([0.1, 0.5, 0.9])
    kept_by_time: dict[int, bool] = {}

    def keep(time: int) -> bool:
        return kept_by_time.setdefault(time, chooser.random() < share)

    data = lambda node: partial_data(node, lambda: chooser.random() < share)  # noqa: E731
    write_image(disk, directory, data, lambda node: partial_entries(node, keep))


def keep_names_in_order(disk: Disk, _: Operation | None, directory: Path, chooser: random.Random) -> None:
    """Keep names up to some moment, as a journaling file system does, and a random part of the bytes."""
    until, share = chooser.randint(0, disk.time), chooser.choice([0.0, 0.5])
    data = lambda node: partial_data(node, lambda: chooser.random() < share)  # noqa: E731
    write_image(disk, directory, data, lambda node: partial_entries(node, lambda time: time <= until))


def tear_last_write(disk: Disk, last: Operation | None, directory: Path, chooser: random.Random) -> None:
    """Keep everything, and some sectors of the write under way."""
    keep_everything(disk, None, directory, chooser)
    if last is not None and last.kind == "write" and (path := directory / last.path).exists():
        data = bytearray(path.read_bytes())
        for offset, piece in choose_sectors(last.data, last.offset, chooser):
            apply_change(data, "write", offset, piece)
        path.write_bytes(data)


POLICIES: dict[str, Callable[[Disk, Operation | None, Path, random.Random], None]] = {
    "everything": keep_everything,
    "only what was flushed": keep_flushed,
    "a random part of what was not": keep_random_part,
    "names in order, a random part of the bytes": keep_names_in_order,
    "the last write torn": tear_last_write,
}
