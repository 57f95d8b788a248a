"""Running a service: uvicorn, signals, and an end that drains."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from ripplevec.service.app import create_app
from ripplevec.service.logs import log_event
from ripplevec.service.settings import Settings

GRACE = 30
"""Seconds that requests which are being answered have once the service was told to stop."""

_SWITCH = 0.001  # seconds after which a thread that computes lets another have its turn: readers wait less


class Server(uvicorn.Server):
    """A server that ends streams when it is told to stop, and stops where the state cannot be recovered."""

    def __init__(self, settings: Settings, ready: Callable[[], None] | None = None) -> None:
        self.failure: BaseException | None = None
        app = create_app(settings, self._fail, ready)
        self.runtime = app.state.runtime
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=_protocol(),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE,
                timeout_keep_alive=30,
                limit_concurrency=4096,
                h11_max_incomplete_event_size=64 << 10,
                lifespan="on",
                ws="none",
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop taking requests; those that wait for changes are let go."""
        threading.Thread(target=self.runtime.begin_stop).start()  # it takes locks, which whom this interrupts may hold
        super().handle_exit(sig, frame)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.should_exit = True


def _protocol() -> Any:
    """HTTP parsed in C; where there is no such parser, in Python."""
    try:
        from ripplevec.service.http_protocol import BoundedProtocol
    except ImportError:
        return "h11"
    return BoundedProtocol


def _settle() -> None:
    """Have the garbage collector leave alone what was made to get here.

    It would look at all of it again and again (modules, compiled kernels), and everybody would wait 0.1 s each time.
    """
    gc.collect()
    gc.freeze()


def serve(settings: Settings) -> None:
    """Serve until told to stop by SIGTERM or SIGINT; then finish what waits, write a snapshot, and return."""
    server = Server(settings, _settle)
    sys.setswitchinterval(_SWITCH)
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again at its end, when all is done
        signal.signal(number, lambda *_: None)
    log_event("starting", host=settings.host, port=settings.port, state=str(settings.state))
    server.run()
    if server.failure is not None:
        raise server.failure
