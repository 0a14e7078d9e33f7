"""Readers of files fed with what no program writes: an InputError, or an answer, and
never another exception.

Found inputs stay in tests/data/fuzz, by reader; hypothesis adds its own, the same ones
in every run.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import records
from harness.evaluation.evaluation_file import read_or_evaluate
from harness.evaluation.score_paths import score_paths
from harness.experiment import load as load_experiment
from harness.measures import parse_measure
from harness.report.write import write_report
from harness.scoring.conventions import RunConventions
from harness.wording.conclusion import conclusion_sentences
from retrievers.errors import InputError
from retrievers.files import trec_files
from retrievers.files.trec_files import read_qrels

FOUND = Path(__file__).parent / "data" / "fuzz"
FILES = [
    "manifest.json",
    "labels.jsonl",
    "documents.jsonl",
    "scores.csv",
    "summary.csv",
    "comparisons.csv",
    "tests.csv",
    "costs.csv",
    "qrels.trec",
    "rankings/bm25.jsonl",
]
TOKENS = [
    b"",
    b"\0",
    b"\r",
    b'"',
    b"{",
    b"[",
    b"]",
    b"}",
    b",",
    b"\n",
    b"nan",
    b"1e999",
    b"-1",
    b"null",
    b"true",
    b"\xff",
    b"\xef\xbb\xbf",
    b"9" * 5000,
    b"[" * 2000,
    b"..",
    b"/",
    b"$",
    b"\xc2\x9b",
    b"=1",
    b" ",
    b"%0A",
]
VALUES = [
    None,
    True,
    -1,
    0,
    1e308,
    10**400,
    "",
    "x",
    "../x",
    [],
    {},
    [[]],
    {"a": None},
    "nDCG@10",
    "\ud83d",
]
bounded = settings(max_examples=60, derandomize=True, database=None)
spots = st.tuples(st.floats(0, 1), st.floats(0, 0.2), st.sampled_from(TOKENS))


def damaged(raw: bytes, spot: tuple[float, float, bytes]) -> bytes:
    """Bytes with a part replaced: where it begins, and how long it is, as shares of the
    whole.
    """
    start = int(spot[0] * len(raw))
    return raw[:start] + spot[2] + raw[start + int(spot[1] * (len(raw) - start)) :]


@pytest.fixture(scope="module")
def whole(finished, tmp_path_factory):
    return Path(
        shutil.copytree(finished.folder, tmp_path_factory.mktemp("fuzz") / "whole")
    )


def refusal(read: Callable[[], object]) -> str | None:
    """The message of the InputError in which reading ends; None if all is read."""
    try:
        read()
    except InputError as error:
        return str(error)
    return None


def use(folder: Path) -> None:
    """All that is computed from a results folder."""
    results = records.read_results(folder)
    for name in results.retrievers:
        results.run(name)
    if results.scored:
        conclusion_sentences(read_or_evaluate(results))
        score_paths([folder], (), conventions=RunConventions())
    read_qrels(folder / "qrels.trec")
    records.write_manifest(folder, results.manifest)


def render(folder: Path) -> None:
    """The whole report of a results folder."""
    write_report(records.read_results(folder))
    assert (folder / "report.html").stat().st_size


def with_file(
    whole: Path, name: str, raw: bytes, then: Callable[[Path], object]
) -> str | None:
    """The refusal of a results folder in which one file holds these bytes."""
    copied = whole.parent / "copied"
    shutil.rmtree(copied, ignore_errors=True)
    (copied / "rankings").mkdir(parents=True)
    for other in [*FILES, "rankings/hashing.jsonl", "rankings/hybrid.jsonl"]:
        shutil.copyfile(whole / other, copied / other)
    (copied / name).write_bytes(raw)
    return refusal(lambda: then(copied))


@bounded
@given(st.sampled_from(FILES), spots)
def test_results(whole, name, spot):
    # What a manifest says is not what a run wrote: it is read, or refused.
    then = records.read_results if name == "manifest.json" else use
    raw = damaged((whole / name).read_bytes(), spot)
    assert with_file(whole, name, raw, then) != ""


@settings(max_examples=8, derandomize=True, database=None)
@given(st.sampled_from(FILES[1:]), spots)
def test_reports_of_damaged_folders(whole, name, spot):
    raw = damaged((whole / name).read_bytes(), spot)
    assert with_file(whole, name, raw, render) != ""


def places(value, path=()):
    """The path of every value in nested tables."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in (
            value.items() if isinstance(value, dict) else enumerate(value)
        ):
            yield from places(inner, (*path, key))


@bounded
@given(st.randoms(use_true_random=False), st.sampled_from(VALUES))
def test_manifests(whole, random, value):
    content = json.loads((whole / "manifest.json").read_text(encoding="utf-8"))
    *outer, last = random.choice([path for path in places(content) if path])
    table = content
    for key in outer:
        table = table[key]
    if isinstance(table, dict) and random.random() < 0.2:
        del table[last]
    else:
        table[last] = value
    raw = json.dumps(content).encode()
    assert with_file(whole, "manifest.json", raw, records.read_results) != ""


@bounded
@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"q", b"d", b"0", b"1", b" ", b"\n", *TOKENS])).map(
        b"".join
    )
)
def test_trec_files(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "trec"
    path.write_bytes(raw)
    for read in (
        read_qrels,
        trec_files.read_run,
        lambda path: list(trec_files.stream_run(path)),
    ):
        assert refusal(partial(read, path)) != ""


@bounded
@given(spots)
def test_experiments(tmp_path_factory, project, spot):
    folder = tmp_path_factory.getbasetemp() / "experiments"
    folder.mkdir(exist_ok=True)
    (folder / "x.toml").write_bytes(
        damaged((project / "experiments" / "quickstart.toml").read_bytes(), spot)
    )
    assert refusal(lambda: load_experiment(folder / "x.toml")) != ""


@bounded
@given(
    st.text(max_size=30)
    | st.from_regex(r"\A[A-Za-z]{1,8}(\([a-z]{1,5}=[^)]{0,9}\))?(@\d{0,12})?\Z")
)
def test_measures(name):
    with suppress(InputError):
        assert parse_measure(str(parse_measure(name))) == parse_measure(name)


@pytest.mark.parametrize(
    "path", sorted((FOUND / "experiments").glob("*")), ids=lambda path: path.stem
)
def test_experiments_that_were_found(path):
    with pytest.raises(InputError):
        load_experiment(path)
