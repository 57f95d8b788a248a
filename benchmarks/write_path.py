"""Calls and files of the package that one `POST /v1/edges` passes through, from the route to the applied batch.

    python benchmarks/write_path.py [--list]

A service in this process receives small JSON bodies, and the last one is traced with a profile function in every
thread. A call is counted if a function in one file of `src/ripplevec` calls a function in another one, on the event
loop or on the writer thread, from the start of the route (`add_edges`) until `Engine.apply` returns. Each
called function counts once, however often and from wherever it is called. Properties, special methods such as
`__len__`, compiled kernels and calls within a file do not count as calls; `--list` prints them indented. A file counts
if any of its functions or kernels ran. Functions that already ran before the route (the middleware) are left out.
"""

from __future__ import annotations

import argparse
import http.client
import inspect
import json
import socket
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import ripplevec
from ripplevec.service.server import Server
from ripplevec.service.settings import Settings

PACKAGE = Path(ripplevec.__file__).parent
BODIES: list[list[Any]] = [
    [["a", "b"], ["b", "c"], ["c", "d"]],
    [["a", "c"], ["e", "a"]],
    [["b", "d", 2.0], ["f", "a"]],
]
PARAMETERS = {"dim": 2, "threads": 1, "start_size": 3, "anchor_growth": 0}


class Function(NamedTuple):
    """A function of the package: its file, relative to the package, and its qualified name."""

    file: str
    name: str


FIRST = Function("service/routes/writes.py", "add_edges")
LAST = Function("engine/engine.py", "Engine.apply")


@cache
def identify(code: CodeType) -> Function | None:
    """Return the function that code belongs to; None outside the package. A comprehension belongs to its function."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE):
        return None
    return Function(str(path.relative_to(PACKAGE)), code.co_qualname.partition(".<locals>.<")[0])


@cache
def is_ordinary(function: Function) -> bool:
    """Return whether a function is neither a property, nor a special method, nor a kernel."""
    module = ".".join(["ripplevec", *Path(function.file).with_suffix("").parts])
    owner: Any = sys.modules[module]
    *path, name = function.name.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    member = inspect.getattr_static(owner, name, None)
    special = name.startswith(("__", "<"))
    return not special and not isinstance(member, property) and not hasattr(member, "py_func")


class WritePath:
    """Trace of one request.

    Attributes
    ----------
    functions
        All functions of the path in the order of their first call, each with whether it is a counted call.
    """

    def __init__(self) -> None:
        self.functions: dict[Function, bool] = {}
        self.armed = self._active = False  # armed: the next call of the route starts the path
        self._before: set[Function] = set()

    @property
    def calls(self) -> list[Function]:
        """Counted calls, in the order of their first occurrence."""
        return [function for function, counted in self.functions.items() if counted]

    @property
    def files(self) -> list[str]:
        """Files of all functions, in the order of their first call."""
        return list(dict.fromkeys(function.file for function in self.functions))

    def trace(self, frame: FrameType, event: str, argument: Any) -> None:
        """Record an event; this is the profile function."""
        if event not in ("call", "return") or not (self.armed or self._active):
            return
        function = identify(frame.f_code)
        if function is None:
            return
        if self.armed:
            self.armed, self._active = function != FIRST, function == FIRST
            self._before.add(function)
        if self._active and event == "call":
            self._record(frame, function)
        if event == "return" and function == LAST:
            self._active = False

    def _record(self, frame: FrameType, function: Function) -> None:
        if function in self._before and function != FIRST:
            return
        caller, back = None, frame.f_back
        while back is not None and (caller := identify(back.f_code)) is None:
            back = back.f_back
        crosses_files = caller is None or caller.file != function.file
        self.functions.setdefault(function, False)
        if crosses_files and is_ordinary(function):
            self.functions[function] = True


def post_edges(connection: socket.socket, edges: list[Any]) -> None:
    """Send a request in one packet, so that its body has arrived when the route starts; exit unless it succeeds."""
    body = json.dumps({"edges": edges}).encode()
    head = (
        f"POST /v1/edges HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    connection.sendall(head.encode() + b"\r\n\r\n" + body)
    response = http.client.HTTPResponse(connection, method="POST")
    response.begin()
    answer = response.read()
    if response.status != 200:
        raise SystemExit(f"POST /v1/edges: {response.status} {answer!r}")


def trace_write() -> WritePath:
    """Start a service, send the bodies, and return the path of the last one."""
    path = WritePath()
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Settings(state=Path(directory) / "state", port=0, parameters=PARAMETERS))
        threading.setprofile(path.trace)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not (server.started and server.runtime.status == "ready"):
                time.sleep(0.01)
            with socket.create_connection(server.servers[0].sockets[0].getsockname()) as connection:
                for edges in BODIES:
                    path.armed = edges is BODIES[-1]
                    post_edges(connection, edges)
        finally:
            threading.setprofile(None)
            server.should_exit = True
            thread.join()
    return path


def main() -> None:
    """Print both numbers, and with `--list` the path."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the functions in the order of their first call")
    options = parser.parse_args()
    path = trace_write()
    if options.list:
        number = 0
        for function, counted in path.functions.items():
            number += counted
            print(f"{number if counted else '':3} {function.file:32} {'' if counted else '  '}{function.name}")
    print(f"{len(path.calls)} calls in {len(path.files)} files ({len(path.functions)} functions in all)")


if __name__ == "__main__":
    main()
