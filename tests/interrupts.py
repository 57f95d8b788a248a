"""Raise an exception at the k-th line that this thread executes in selected files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dis import opmap
from typing import Any

_LOAD_CONST, _SWAP, _NOP = (opmap[name] for name in ("LOAD_CONST", "SWAP", "NOP"))

ERRORS = (KeyboardInterrupt, MemoryError, RuntimeWarning)
MAX_INTERRUPTS = int(os.environ.get("RIPPLEVEC_INTERRUPTS", "40"))
"""Interrupts per case, spread evenly over the lines."""


def in_library(file: str) -> bool:
    return "/ripplevec/" in file


def spread(interrupted: Callable[[int], bool]) -> Iterator[int]:
    """Return line numbers to interrupt at, evenly spread; `interrupted` tells whether a line exists."""
    low, high = 0, 1
    while interrupted(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if interrupted(middle) else (low, middle)
    return iter(range(0, high, max(1, high // MAX_INTERRUPTS)))


class Injection:
    """Countdown of lines until the exception, and whether it has been raised."""

    def __init__(self, number: int) -> None:
        self.lines_left, self.raised = number, False


@contextmanager
def raise_at_line(number: int, error: BaseException, where: Callable[[str], bool]) -> Iterator[Injection]:
    """Raise the error before line `number`, counting executed lines of the files that `where` selects."""
    injection = Injection(number)

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not where(frame.f_code.co_filename):
            return None
        if event == "line" and not _exits_with_block(frame):
            injection.lines_left -= 1
            if injection.lines_left < 0:
                sys.settrace(None)
                injection.raised = True
                raise error
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield injection
    finally:
        sys.settrace(before)


def _exits_with_block(frame: Any) -> bool:
    """Return whether the end of a `with` block is next: Python checks for no signals before `__exit__` is called."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] in (_SWAP, _NOP):  # a return value on the stack, or `pass`
        at += 2
    return list(code[at : at + 6 : 2]) == 3 * [_LOAD_CONST]
