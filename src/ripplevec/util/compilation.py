"""Reports on the compilation of kernels: a notice while it takes place, and a clock that does not count it.

Numba compiles a kernel when it is first called and stores the result, so this happens once per machine. It takes long
enough that a user has to be told.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter

from numba.core import event

from ripplevec.util.compile_ahead import is_compiling_ahead, start_compiling_ahead, wait_for_batch_kernels

PACKAGE = __name__.partition(".")[0]
COMPILE_EVENT = "numba:compile"
FIRST_MODULES = f"{PACKAGE}.graph."  # the kernels that every model needs first
REPORT_INTERVAL = 10.0  # seconds between two notices

_log = logging.getLogger(__name__)


class CompilationReporter(event.Listener):  # type: ignore[misc]
    """Logs that kernels of this package are being compiled, and measures for how long.

    The notices have the level of warnings: Python prints those also if a program has not configured logging.
    """

    def __init__(self) -> None:
        self.kernels = 0
        self._finished_seconds = 0.0
        self._depth, self._began, self._reported_at = 0, 0.0, float("-inf")

    def on_start(self, event: event.Event) -> None:
        """Note the start of a compilation; those of called kernels are parts of it."""
        now = self._enter()
        kernel = event.data["dispatcher"].py_func
        module = kernel.__module__ or ""  # generated functions, such as constructors of tuples, have none
        if module.startswith(FIRST_MODULES):
            start_compiling_ahead()
        if module.partition(".")[0] == PACKAGE and now - self._reported_at >= REPORT_INTERVAL:
            self._report(kernel.__name__)
            self._reported_at = now

    def on_end(self, event: event.Event) -> None:
        """Note the end of a compilation."""
        self.kernels += 1
        self._leave()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of a with block as compilation: another process compiles for this one."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> float:
        now = perf_counter()
        if not self._depth:
            self._began = now
        self._depth += 1
        return now

    def _leave(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._finished_seconds += perf_counter() - self._began

    def seconds(self) -> float:
        """Return the time spent on compilations, including one that is in progress."""
        return self._finished_seconds + (perf_counter() - self._began if self._depth else 0.0)

    def _report(self, kernel: str) -> None:
        if not self.kernels:
            _log.warning(
                "compiling kernels, once on this machine: up to about a minute of processor time "
                "(in advance: ripplevec warmup)"
            )
        else:
            _log.warning("still compiling: kernels=%d seconds=%.0f current=%s", self.kernels, self.seconds(), kernel)


_reporter: CompilationReporter | None = None
_lock = Lock()


def report_compilation() -> CompilationReporter:
    """Report compilations from now on; return the reporter of this process."""
    global _reporter
    with _lock:
        if _reporter is None:
            _reporter = CompilationReporter()
            event.register(COMPILE_EVENT, _reporter)
        return _reporter


def working_clock() -> float:
    """Return a time in seconds that stands still while kernels are compiled: for measured durations."""
    return perf_counter() - report_compilation().seconds()


def wait_for_kernels() -> None:
    """Wait for the kernels of batches if a second process compiles them. Called before the first batch."""
    if is_compiling_ahead():
        with report_compilation().waiting():
            wait_for_batch_kernels()
