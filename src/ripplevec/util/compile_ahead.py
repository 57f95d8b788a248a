"""Compilation in a second process: with an empty cache, half of the kernels are compiled while `fit` compiles the rest.

Numba compiles one kernel at a time per process. The second process stores its kernels in the cache on disk, from which
this process loads them. It compiles the kernels that add arrivals, which `fit` does not need.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
from contextlib import suppress
from threading import Lock

from ripplevec.util.parallel import resolve_threads

SWITCH = "RIPPLEVEC_COMPILE_AHEAD"  # environment variable: 0 turns the second process off
MODULE = "ripplevec.cli.arrival_kernels"  # what it runs
NOTICE_INTERVAL = 10.0  # seconds between two notices while this process waits

_log = logging.getLogger(__name__)
_lock = Lock()
_process: subprocess.Popen[bytes] | None = None
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
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            atexit.register(_end)


def is_compiling_ahead() -> bool:
    """Return whether the second process may still be compiling."""
    return _process is not None


def finish_compiling_ahead() -> None:
    """Wait until the second process has ended. If it failed, this process compiles the kernels when they are called."""
    global _process
    with _lock:
        if _process is None:
            return
        while True:
            try:
                _process.wait(NOTICE_INTERVAL)
                break
            except subprocess.TimeoutExpired:
                _log.warning("still compiling: kernels of arrivals, in a second process")
        _close(_process)
        _process = None


def _end() -> None:
    if _process is not None:
        _process.terminate()
        _process.wait()
        _close(_process)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
