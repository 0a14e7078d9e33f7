"""Where an optional package is absent, one message names it and the extra that brings it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.answers.overlap import needs_sacrebleu
from harness.dataset import load, reference_of
from retrievers.errors import InputError
from retrievers.external import SavedRun


def read(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"PAR1")
    load(reference_of(str(folder / name)))


WANTED: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "python_calamine": ("python-calamine", "formats", lambda folder: read(folder, "questions.xlsx")),
    "datasets": ("datasets", "formats", lambda _: load(reference_of("hf:org/name"))),
    "ir_datasets": ("ir_datasets", "formats", lambda _: load(reference_of("irds:vaswani"))),
    "pyarrow": ("pyarrow", "formats", lambda folder: SavedRun(path="tests/none.parquet").check()),
    "sacrebleu": ("sacrebleu", "answers", lambda _: needs_sacrebleu()),
}


@pytest.mark.parametrize("module", WANTED)
def test_the_message_names_the_package_and_its_extra(tmp_path, monkeypatch, module):
    package, extra, act = WANTED[module]
    monkeypatch.setitem(sys.modules, module, None)
    said = rf'needs the package {package} \(pip install {package}, or the extra "{extra}"\)'
    with pytest.raises(InputError, match=said):
        act(tmp_path)
