"""See it move: a service with a page, and a graph of ten communities that grows into it. `make live` runs this."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

RIPPLEVEC = [sys.executable, "-m", "ripplevec.cli"]
PATIENCE = 120  # seconds for a service to come up, also where kernels have to be compiled first


def main() -> None:
    """Serve from a temporary directory until the keyboard interrupts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--vertices", type=int, default=50_000, help="how far the graph grows")
    parser.add_argument("--speed", type=float, default=40, help="arrivals per second")
    options = parser.parse_args()
    address = f"http://127.0.0.1:{options.port}"
    graph = ["--built-in", "--vertices", str(options.vertices), "--at-once", "10000", "--speed", str(options.speed)]
    with tempfile.TemporaryDirectory(prefix="ripplevec-live-") as state:
        place = ["--state", state, "--port", str(options.port), "--dim", "64", "--no-access-log"]
        service = subprocess.Popen([*RIPPLEVEC, "serve", *place], stderr=subprocess.DEVNULL)
        try:
            wait_for(service, address)
            print(f"\n  Ripplevec is live at {address}/   (Ctrl-C ends it)\n", flush=True)
            if subprocess.call([*RIPPLEVEC, "replay", *graph, "--to", address]) == 0:
                print("The graph is complete; the page stays until Ctrl-C.", flush=True)
                service.wait()
        except KeyboardInterrupt:
            pass
        finally:
            service.terminate()
            service.wait()


def wait_for(service: subprocess.Popen[bytes], address: str) -> None:
    """Return once the service is ready."""
    for _ in range(10 * PATIENCE):
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if service.poll() is not None:
                sys.exit(f"the service has not come up: is something else at {address}? Give another --port.")
            time.sleep(0.1)
    sys.exit(f"the service is not ready after {PATIENCE} s")


if __name__ == "__main__":
    main()
