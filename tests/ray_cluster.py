"""Embeds an experiment on a Ray cluster of two nodes on this machine, in a process of its own; prints what was done.

    python tests/ray_cluster.py EXPERIMENT URL [none | actor | node] [DOLLARS]

With "actor" every actor that embeds is killed (SIGKILL) once, soon after its first request; with "node" the second
node is taken away then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from harness.running.ray_engine import embed_on_cluster
from retrievers.errors import HarnessError


def parts(url: str) -> int:
    return len(list(Path(url).rglob("*.parquet")))


def workers() -> list[int]:
    """The processes of actors that embed, by the title that Ray gives them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::") and b"Map" in title:
                found.append(int(entry.name))
    return found


def main() -> None:
    import ray
    from ray.cluster_utils import Cluster

    experiment, url, fault = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    limit = float(sys.argv[4]) if len(sys.argv) > 4 else None
    memory = {"num_cpus": 2, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**memory, "include_dashboard": False})
    second = cluster.add_node(**memory)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    done = threading.Event()

    def harm() -> None:
        killed: set[int] = set()
        while not done.wait(0.02):
            if not parts(url):
                continue
            if fault == "node":
                cluster.remove_node(second, allow_graceful=False)
                return
            for process in set(workers()) - killed:
                killed.add(process)
                os.kill(process, signal.SIGKILL)
            if len(killed) >= 3:
                return
            time.sleep(0.3)

    thread = threading.Thread(target=harm, daemon=True)
    if fault != "none":
        thread.start()
    try:
        shares = embed_on_cluster(experiment, url, max_cost=limit)
        sys.stdout.write(
            json.dumps({"texts": sum(share.written.texts for share in shares), "usd": sum(s.usd for s in shares)})
            + "\n"
        )
    except HarnessError as failure:
        sys.stdout.write(json.dumps({"error": str(failure)}) + "\n")
    finally:
        done.set()
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
