"""Compilation in a second process: with an empty cache, half of the kernels are compiled while `fit` compiles the rest.

Numba compiles one kernel at a time per process. The second process stores its kernels in the cache on disk, from which
this process loads them. It compiles the kernel of batches first, for which the first batch waits, and then the kernel
of single arrivals. Until that one is there, single arrivals are applied as batches, with the same result.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
from contextlib import suppress
from threading import Event, Lock, Thread
from time import sleep

from ripplevec.util.parallel import resolve_threads

SWITCH = "RIPPLEVEC_COMPILE_AHEAD"  # environment variable: 0 turns the second process off
MODULE = "ripplevec.cli.arrival_kernels"  # what it runs
NOTICE_INTERVAL = 10.0  # seconds between two notices while this process waits
POLL_SECONDS = 0.02

_log = logging.getLogger(__name__)
_lock = Lock()
_process: subprocess.Popen[bytes] | None = None
_batch_kernels_stored = Event()  # cleared while the second process compiles them
_batch_kernels_stored.set()
_started = False
_popen = subprocess.Popen  # replaced in tests


def start_compiling_ahead() -> None:
    """Start the second process, once per process and only if there is a core for it."""
    global _process, _started
    with _lock:
        if _started or os.environ.get(SWITCH) == "0" or not sys.executable or resolve_threads(None) < 2:
            return
        _started = True
        environment = os.environ | {SWITCH: "0", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with suppress(OSError):  # no process can be started: this one compiles everything
            _process = _popen(
                [sys.executable, "-m", MODULE],
                env=environment,
                stdin=subprocess.PIPE,  # closes when this process ends, however it ends, and ends the second one
                stdout=subprocess.PIPE,  # a byte: the kernels of batches are stored
                stderr=subprocess.DEVNULL,
            )
            atexit.register(_end)
            _batch_kernels_stored.clear()
            Thread(target=_watch, args=(_process,), daemon=True).start()


def is_compiling_ahead() -> bool:
    """Return whether the second process may still be compiling."""
    return _process is not None


def wait_for_batch_kernels() -> None:
    """Wait until the second process has stored the kernels of batches, or has failed: then this one compiles them."""
    while not _batch_kernels_stored.wait(NOTICE_INTERVAL):
        _log.warning("still compiling: kernels of batches, in a second process")


def wait_for_all_kernels() -> None:
    """Wait until the second process has ended: before anything is measured, as it keeps a core busy."""
    while is_compiling_ahead():
        sleep(POLL_SECONDS)


def _watch(process: subprocess.Popen[bytes]) -> None:
    """Note how far the second process is. A process that fails closes its output."""
    if process.stdout is not None:
        with process.stdout as output:
            output.read(1)
    _batch_kernels_stored.set()
    process.wait()
    _forget(process)


def _end() -> None:
    process = _process
    if process is not None:
        process.terminate()
        process.wait()
        _forget(process)


def _forget(process: subprocess.Popen[bytes]) -> None:
    global _process
    _process = None
    if process.stdin is not None:
        process.stdin.close()


def _reset_after_fork() -> None:
    """Compile everything in a forked process, which has no thread that watches the second one."""
    global _process
    _process = None
    _batch_kernels_stored.set()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_reset_after_fork)
