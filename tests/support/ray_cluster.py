"""Embeds an experiment on a Ray cluster of two nodes on this machine, in a process of
its own.

    python -m tests.support.ray_cluster EXPERIMENT URL [kill]

With "kill" the second node is taken away without warning once something was answered.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

from harness.cli import main as harness


def answered() -> int:
    """Rows of the cache that both nodes share here, since they are one machine."""
    file = Path(os.environ["HARNESS_CACHE"]) / "cache.sqlite"
    try:
        with closing(sqlite3.connect(file)) as cache:
            return int(cache.execute("SELECT count(*) FROM rows").fetchone()[0])
    except sqlite3.Error:  # not there yet, or being made
        return 0


def main() -> None:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": 80_000_000}
    cluster = Cluster(
        initialize_head=True, head_node_args={**node, "include_dashboard": False}
    )
    second = cluster.add_node(**node)

    def remove_node() -> None:
        while not answered():
            time.sleep(0.02)
        cluster.remove_node(second, allow_graceful=False)

    if sys.argv[3:] == ["kill"]:
        threading.Thread(target=remove_node, daemon=True).start()
    try:
        harness(
            [
                "embed",
                sys.argv[1],
                "--to",
                sys.argv[2],
                "--address",
                cluster.address,
                "--quiet",
            ]
        )
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
