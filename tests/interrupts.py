"""Raise an error at one line of what is run: the k-th that is executed in some files, by this thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dis import opmap
from typing import Any

_LOAD_CONST, _SWAP, _NOP = (opmap[name] for name in ("LOAD_CONST", "SWAP", "NOP"))


class Injection:
    """Counts lines; whether the error has been raised."""

    def __init__(self, number: int) -> None:
        self.left, self.raised = number, False


@contextmanager
def raising_at(number: int, error: BaseException, where: Callable[[str], bool]) -> Iterator[Injection]:
    """Raise the error before the line with this number is executed, of those in files that are asked for."""
    injection = Injection(number)

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not where(frame.f_code.co_filename):
            return None
        if event == "line" and not _leaves_with(frame):
            injection.left -= 1
            if injection.left < 0:
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


def _leaves_with(frame: Any) -> bool:
    """Whether the end of a `with` block is next: Python looks at no signal there before `__exit__` is called."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] in (_SWAP, _NOP):  # what is returned is kept below; `pass`
        at += 2
    return list(code[at : at + 6 : 2]) == 3 * [_LOAD_CONST]
