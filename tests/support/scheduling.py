"""Which worker of pytest-xdist gets which files."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling


class ModelsTogether(LoadFileScheduling):
    """The tests of a file go to one worker, and all files that build small models to
    the same: each worker would wait 5 s for torch.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group(super()._split_scope(nodeid), self.config.rootpath)


@cache
def _group(file: str, root: Path) -> str:
    text = (root / file).read_text(encoding="utf-8")
    return "models" if "tests.support import" in text and "tiny" in text else file


def import_in_turns(folders: Sequence[Path], root: Path) -> None:
    """Import the tests in folders, as a worker: each begins with another file.

    In a fresh clone each would rewrite the assertions of all files, 4 s of a processor;
    so it reads what the others have written. What fails here is told by collection.
    """
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    begin = len(files) * number // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in [*files[begin:], *files[:begin]]:
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)
