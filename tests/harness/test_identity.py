"""What is the same run, the same question, the same retriever: one table of changes."""

import re
from pathlib import Path

import pytest

from harness.experiment import RawTable
from harness.identity import run_identity
from harness.pipeline import run
from harness.records import Manifest
from harness.running.options import RunOptions
from tests.support import small

pytestmark = pytest.mark.usefixtures("own_cache")
WORDS = '[[retrievers]]\nname = "words"\nkind = "bm25"\n'
OTHER = (
    '[[retrievers]]\nname = "letters"\nencoder = '
    '{ kind = "hashing", dimensions = 64 }\n'
)


def made(
    folder: Path, retrievers: str = WORDS + OTHER, more: str = "", **options: bool
) -> Manifest:
    return run(
        small.experiment(folder, retrievers=retrievers, more=more, **options),
        RunOptions(folder / "out"),
    ).manifest


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return made(tmp_path_factory.mktemp("first"))


@pytest.mark.parametrize(
    ("change", "same_run", "same_retrievers"),
    [
        ({}, True, True),
        ({"report": True}, True, True),
        ({"retrievers": WORDS.replace("words", "lexical") + OTHER}, False, True),
        ({"retrievers": OTHER + WORDS}, False, True),
        ({"retrievers": WORDS + "k1 = 1.2\n" + OTHER}, False, False),
        ({"retrievers": WORDS + "k1 = 0.9\n" + OTHER}, False, True),
        ({"retrievers": WORDS + OTHER.replace("64", "128")}, False, False),
        ({"retrievers": WORDS + OTHER + 'store = "edge"\n'}, False, True),
        ({"retrievers": WORDS}, False, False),
        ({"more": 'baseline = "words"\n'}, False, True),
        ({"more": "seed = 1\n"}, False, True),
        (
            {"retrievers": WORDS + OTHER + "chunk = { size = 9, overlap = 0 }\n"},
            False,
            False,
        ),
    ],
)
def test_what_is_the_same(first, tmp_path, change, *, same_run, same_retrievers):
    second = made(tmp_path, **change)
    runs = [
        run_identity(_unplaced(results), results.dataset.digest)
        for results in (first, second)
    ]
    assert (runs[0] == runs[1]) is same_run
    assert (_retrievers(first) == _retrievers(second)) is same_retrievers


def _retrievers(manifest: Manifest) -> list[str]:
    """The identities of the retrievers, whatever they are called."""
    return sorted(map(manifest.retriever_identity, manifest.retrievers))


def _unplaced(manifest: Manifest) -> RawTable:
    """The experiment without the folder in which this test wrote it."""
    dataset = re.sub(r".*/", "", str(manifest.experiment.get("dataset")))
    return manifest.experiment.with_options(dataset=dataset)
