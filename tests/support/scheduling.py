"""Which worker of pytest-xdist gets which files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

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
