"""Start shards in a thread that ends, as a service does, then use them; print what is left of the cluster as JSON."""

from __future__ import annotations

import json
import threading
import time

import psutil

from ripplevec.cluster import ShardedEmbedder

CLUSTER_PROCESSES = {"gcs_server", "raylet"}


def wait_for_end(native_thread: int) -> None:
    """Wait until the operating system has ended a thread of this process."""
    while any(thread.id == native_thread for thread in psutil.Process().threads()):
        time.sleep(0.01)


def list_cluster_processes() -> list[str]:
    """Return the names of the running processes of the cluster that this process has started."""
    children = psutil.Process().children(recursive=True)
    running = {child.name() for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE}
    return sorted(running & CLUSTER_PROCESSES)


if __name__ == "__main__":
    models: list[ShardedEmbedder] = []
    starter = threading.Thread(target=lambda: models.append(ShardedEmbedder(shards=2, dim=4, threads=1)))
    starter.start()
    native_thread = starter.native_id
    assert native_thread is not None
    starter.join()
    wait_for_end(native_thread)
    time.sleep(1)  # the operating system terminates the cluster together with the thread
    running = list_cluster_processes()
    model = models[0].fit([(i, i + 1) for i in range(20)])
    print(json.dumps({"running": running, "vertices": len(model)}))
