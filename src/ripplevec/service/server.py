"""Server process: uvicorn with bounded connections, signal handling and graceful shutdown."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

import uvicorn

from ripplevec.errors import StateError
from ripplevec.service.app import create_app
from ripplevec.service.http_protocol import BoundedProtocol
from ripplevec.service.logs import log_event
from ripplevec.service.settings import Settings

SHUTDOWN_SECONDS = 30
"""Time that requests in progress have to finish after a stop signal."""

CONNECTIONS = 4096
"""Connections that are open at the same time; further ones are answered with 503."""

_UNAVAILABLE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # a name may stand for an IPv6 address that is turned off

_SWITCH_INTERVAL = 0.001  # seconds after which a computing thread yields the interpreter: reads wait less


class Server(uvicorn.Server):
    """A uvicorn server that ends event streams on a stop signal, and stops if the state is unusable."""

    def __init__(self, settings: Settings, on_ready: Callable[[], None] | None = None) -> None:
        self.failure: BaseException | None = None
        app = create_app(settings, self._fail, on_ready)
        self.runtime = app.state.runtime
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=BoundedProtocol,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                timeout_keep_alive=30,
                limit_concurrency=CONNECTIONS,
                lifespan="on",
                ws="none",
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting requests and release those that wait for changes."""
        # In a thread: it acquires locks that the code interrupted by this signal handler may hold.
        threading.Thread(target=self.runtime.begin_stop).start()
        super().handle_exit(sig, frame)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.should_exit = True


def _freeze_garbage_collector() -> None:
    """Exclude all existing objects (modules, compiled kernels) from garbage collection.

    Each full collection would scan them again, and all requests would wait 0.1 s.
    """
    gc.collect()
    gc.freeze()


def _listen(settings: Settings) -> list[socket.socket]:
    """Return sockets for all addresses of the host, with one port.

    uvicorn would do the same only after the state has been opened, and could not tell the port before.
    """
    listeners: list[socket.socket] = []
    port = settings.port
    try:
        addresses = socket.getaddrinfo(settings.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, *_, address in dict.fromkeys(addresses):
            try:
                listeners.append(socket.create_server((address[0], port), family=family))
            except OSError as error:
                if error.errno not in _UNAVAILABLE or (address == addresses[-1][-1] and not listeners):
                    raise
            port = listeners[0].getsockname()[1] if listeners else port
    except OSError as error:
        for listener in listeners:
            listener.close()
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)  # else: an unknown host
        advice = "Choose another port with --port, or stop the program that uses it"
        raise StateError(f"cannot listen on {settings.host}:{settings.port}: {reason}. {advice}.") from error
    return listeners


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then finish the requests in progress, write a snapshot and return."""
    listeners = _listen(settings)
    settings = replace(settings, port=listeners[0].getsockname()[1])
    server = Server(settings, _freeze_garbage_collector)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again after its shutdown
        signal.signal(number, lambda *_: None)
    log_event("starting", url=settings.url, state=str(settings.state))
    server.run(listeners)
    if server.failure is not None:
        raise server.failure
