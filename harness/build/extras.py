"""Every extra that an experiment needs, named in one line."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, NamedTuple

from harness.dataset.extras import missing_dataset_extras
from harness.experiment import LoadedExperiment
from retrievers.errors import HarnessError, InputError, Problem, install_extras
from retrievers.local.weights import OFFLINE_MODEL, completed_name
from retrievers.texts.chunking import PACKAGE_BOUNDARIES

INSTALL_COMMAND = re.compile(r"pip install 'retriever-harness\[([a-z,]+)\]'")
"""The command in a message, with its extras."""
LOCAL_KINDS = (
    "sentence-transformers",
    "sparse-encoder",
    "multivector-encoder",
    "cross-encoder",
    "late-interaction",
)
"""Kinds of models on this machine."""


class _Need(NamedTuple):
    """An extra, and the module that shows whether it is installed."""

    extra: str
    module: str


@contextmanager
def all_extras_named(find_extras: Callable[[], set[str]]) -> Iterator[None]:
    """Name all missing extras if the code inside fails because one is missing.

    An extra is a set of optional packages: `pip install 'retriever-harness[EXTRA]'`.

    Args:
        find_extras: returns the missing extras.

    Raises:
        InputError: as raised inside, with one command that installs all extras.
    """
    try:
        yield
    except InputError as error:
        text = "\n".join(str(problem.remedy) for problem in error.problems)
        named = INSTALL_COMMAND.findall(text)
        if not named:
            raise
        extras = {extra for group in named for extra in group.split(",")}
        with suppress(HarnessError, OSError):
            extras |= find_extras()
        command = install_extras(*extras)
        raise InputError(
            [_with_command(problem, command) for problem in error.problems]
        ) from None


def _with_command(problem: Problem, command: str) -> Problem:
    if not INSTALL_COMMAND.search(str(problem.remedy)):
        return problem
    # A function, since a replacement that is a text may hold no backslash.
    remedy = INSTALL_COMMAND.sub(lambda _: command, str(problem.remedy))
    return problem._replace(remedy=remedy)


def missing_extras(loaded: LoadedExperiment) -> set[str]:
    """Return the extras that an experiment needs, and that are missing."""
    tables = loaded.experiment.model_dump(mode="json")
    return missing_dataset_extras(loaded.dataset) | set(_extras_of(tables))


def _extras_of(setting: Any) -> Iterator[str]:
    """Yield the missing extras that a table of an experiment and those in it need."""
    if isinstance(setting, list | tuple):
        for part in setting:
            yield from _extras_of(part)
    if not isinstance(setting, Mapping):
        return
    for need in _needs_of(setting):
        if find_spec(need.module) is None:
            yield need.extra
    for inner in setting.values():
        yield from _extras_of(inner)


def _needs_of(table: Mapping[str, Any]) -> Iterator[_Need]:
    """Yield what a table needs by itself, without those in it."""
    kind = table.get("kind")
    if kind in LOCAL_KINDS:
        name = completed_name(str(table.get("model")), "sentence-transformers")
        extra = "offline" if name == OFFLINE_MODEL else "local"
        yield _Need(extra, "sentence_transformers")
    if kind == "mcp":
        yield _Need("agents", "mcp")
    if kind == "run" and str(table.get("path")).lower().endswith(".parquet"):
        yield _Need("formats", "pyarrow")
    chunk = table.get("chunk")
    if isinstance(chunk, Mapping) and chunk.get("by") in PACKAGE_BOUNDARIES:
        yield _Need("chunks", "semantic_text_splitter")
    if table.get("vectors"):
        yield _Need("ray", "fsspec")
