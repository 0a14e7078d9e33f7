"""Every extra that an experiment needs, named in one line."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from harness.dataset.extras import missing_dataset_extras
from harness.experiment import LoadedExperiment
from retrievers.errors import HarnessError, InputError, Problem, install_extras
from retrievers.local.weights import OFFLINE_MODEL, completed_name

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
    is_local = setting.get("kind") in LOCAL_KINDS
    if is_local and find_spec("sentence_transformers") is None:
        name = completed_name(str(setting.get("model")), "sentence-transformers")
        yield "offline" if name == OFFLINE_MODEL else "local"
    chunk = setting.get("chunk")
    cuts_by_package = isinstance(chunk, Mapping) and chunk.get("by")
    if cuts_by_package and find_spec("semantic_text_splitter") is None:
        yield "chunks"
    for inner in setting.values():
        yield from _extras_of(inner)
