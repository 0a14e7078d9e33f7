"""Embeds an experiment on a Ray cluster of two nodes on this machine, in a process of its own; prints what was done.

    python -m tests.ray_cluster EXPERIMENT URL [command | none | worker | node | unset] [DOLLARS]

With "unset" the nodes do not know EMBED_URL, which this process knows. With "command" the cluster is used as a user
does: `harness embed --engine ray --address …`.
With "worker" what embeds is killed (SIGKILL) at KILLS instants drawn from a seed, each in a life of its own that has
been answered something; with "node" the second node is taken away once something was answered.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from harness.cli import main as harness
from harness.running.ray_engine import embed_on_cluster
from retrievers.errors import HarnessError

KILLS = 8
"""Each takes four to eight seconds, for a new worker to start; twenty are for a run without a cluster."""


def answered() -> int:
    """Rows of the cache that all nodes share here, since they are one machine."""
    file = Path(os.environ["HARNESS_CACHE"]) / "cache.sqlite"
    try:
        with closing(sqlite3.connect(file)) as cache:
            return int(cache.execute("SELECT count(*) FROM rows").fetchone()[0])
    except sqlite3.Error:  # not there yet, or being made
        return 0


def embedding() -> list[int]:
    """The processes of tasks that embed, by the title that Ray gives them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::") and b"embed_share" in title:
                found.append(int(entry.name))
    return found


def kill_workers(done: threading.Event, killed: list[int]) -> None:
    """Kill what embeds at instants after the next one to three answers, so that every life gets somewhere."""
    chance = random.Random(19)
    while len(killed) < KILLS:
        target, pause = answered() + chance.randrange(1, 4), chance.uniform(0, 0.1)
        while answered() < target:
            if done.wait(0.005):
                return
        time.sleep(pause)
        for process in set(embedding()) - set(killed):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                killed.append(process)


def main() -> None:
    import ray
    from ray.cluster_utils import Cluster

    experiment, url, fault = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    limit = float(sys.argv[4]) if len(sys.argv) > 4 else None
    memory = {"num_cpus": 2, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**memory, "include_dashboard": False})
    second = cluster.add_node(**memory)
    os.environ["EMBED_URL"] = "http://127.0.0.1:9/v1"  # the nodes were started without it
    if fault == "command":
        try:
            harness(["embed", str(experiment), "--to", url, "--engine", "ray", "--address", cluster.address, "--json"])
        finally:
            cluster.shutdown()
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    done = threading.Event()

    killed: list[int] = []

    def remove_node() -> None:
        while not answered():
            if done.wait(0.02):
                return
        cluster.remove_node(second, allow_graceful=False)

    if fault == "worker":
        threading.Thread(target=kill_workers, args=(done, killed), daemon=True).start()
    if fault == "node":
        threading.Thread(target=remove_node, daemon=True).start()
    try:
        shares = embed_on_cluster(experiment, url, max_cost=limit)
        texts, usd = sum(share.written.texts for share in shares), sum(share.usd for share in shares)
        sys.stdout.write(json.dumps({"texts": texts, "usd": usd, "killed": len(killed)}) + "\n")
    except HarnessError as failure:
        sys.stdout.write(json.dumps({"error": str(failure)}) + "\n")
    finally:
        done.set()
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main()
