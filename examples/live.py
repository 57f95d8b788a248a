"""Live demo: start a service and replay a growing graph with ten communities into it. Run it with `make live`."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

RIPPLEVEC = [sys.executable, "-m", "ripplevec.cli"]
STARTUP_SECONDS = 600  # includes the time to compile kernels on the first start


def main() -> None:
    """Serve from a temporary directory until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--vertices", type=int, default=50_000, help="final size of the graph")
    parser.add_argument("--speed", type=float, default=40, help="arrivals per second")
    options = parser.parse_args()
    url = f"http://127.0.0.1:{options.port}"
    signal.signal(signal.SIGTERM, interrupt)
    graph = ["--built-in", "--vertices", str(options.vertices), "--at-once", "10000", "--speed", str(options.speed)]
    with tempfile.TemporaryDirectory(prefix="ripplevec-live-") as state:
        serve_options = ["--state", state, "--port", str(options.port), "--dim", "64", "--log-level", "warning"]
        service = subprocess.Popen([*RIPPLEVEC, "serve", *serve_options])
        try:
            print(
                "Starting the service. The first start compiles kernels: about a minute of processor time.", flush=True
            )
            wait_until_ready(service, url)
            print(f"\n  Ripplevec is live at {url}/   (stop with Ctrl-C)\n", flush=True)
            if subprocess.call([*RIPPLEVEC, "replay", *graph, "--to", url]) == 0:
                print("The graph is complete. The page stays available until Ctrl-C.", flush=True)
                service.wait()
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # already stopping
            service.terminate()
            service.wait()


def interrupt(*_: object) -> None:
    """Handle SIGTERM like Ctrl-C: by default it would end this process only, and leave its children running."""
    raise KeyboardInterrupt


def wait_until_ready(service: subprocess.Popen[bytes], url: str) -> None:
    """Return once the service is ready; exit if it fails to start."""
    for _ in range(10 * STARTUP_SECONDS):
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if service.poll() is not None:
                sys.exit("The service did not start.")  # it has said why
            time.sleep(0.1)
    sys.exit(f"The service is not ready after {STARTUP_SECONDS} s.")


if __name__ == "__main__":
    main()
