"""A data set and an experiment small enough to run in every test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import records
from harness.cli import main
from harness.pipeline import run
from harness.preflight.check import check_target
from harness.preflight.plan import RunPlan
from harness.records import Results
from harness.running.options import RunOptions
from retrievers.errors import InputError
from tests.support.small_texts import QUERIES, TEXTS

RETRIEVERS = """
[[retrievers]]
name = "bm25"
kind = "bm25"

[[retrievers]]
name = "hashing"
encoder = { kind = "hashing", dimensions = 64 }

[[retrievers]]
name = "hybrid"
kind = "fusion"
of = ["bm25", "hashing"]
"""


LEXICAL = 'kind = "lexical"'
BM25 = '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'


def refusal(
    attempt: Callable[..., object], *arguments: Any, **options: Any
) -> InputError:
    """The error about input that is refused."""
    with pytest.raises(InputError) as caught:
        attempt(*arguments, **options)
    return caught.value


def ended(*words: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def markdown(
    folder: Path, texts: Mapping[str, str], queries: Sequence[Mapping[str, object]]
) -> Path:
    """A new folder of Markdown documents with their queries."""
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n", encoding="utf-8")
    (folder / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
    return folder


def dataset(folder: Path, *, labelled: bool = True) -> Path:
    """A folder of Markdown with ranked labels, or with questions alone."""
    labels = [
        {"relevant_documents": docs} if labelled else {} for _, _, docs in QUERIES
    ]
    queries = [
        {"id": id_, "query": text, **more}
        for (id_, text, _), more in zip(QUERIES, labels, strict=True)
    ]
    return markdown(folder, TEXTS, queries)


def experiment(
    folder: Path,
    *,
    retrievers: str = RETRIEVERS,
    more: str = "",
    name: str = "small",
    report: bool = False,
) -> Path:
    """An experiment file beside its data set, in an empty folder or one that has them.

    Its report, which takes longer than all the rest of so small a run, is written for
    the tests that read it.
    """
    if not (folder / "data").exists():
        dataset(folder / "data")
    path = folder / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\ndataset = "{(folder / "data").as_posix()}"\nprimary = '
        '"nDCG@3"\n'
        'measures = ["nDCG@3", "P@2", "R@2", "F1@2", "RR", "AP", "Success@1", '
        '"DCG@3"]\ndepth = 5\n'
        f"{'' if report else 'report = false'}\n{more}\n{retrievers}",
        encoding="utf-8",
    )
    return path


def ran(folder: Path, **options: Any) -> Results:
    """The results of such an experiment, in the folder `out` beside it."""
    return run(experiment(folder, **options), RunOptions(folder / "out"))


def many(folder: Path, names: Sequence[str], queries: int, more: str = "") -> Path:
    """The page of many BM25 retrievers over many queries."""
    texts = list(TEXTS)
    rows = [
        {
            "id": f"q{i:02}",
            "query": f"{TEXTS[texts[i % 6]]} {i}",
            "relevant_documents": [texts[i % 6]],
        }
        for i in range(queries)
    ]
    (dataset(folder / "data") / "queries.json").write_text(
        json.dumps(rows), encoding="utf-8"
    )
    blocks = "".join(
        f'\n[[retrievers]]\nname = "{name}"\nkind = "bm25"\nk1 = {i / 10:.1f}\nb = '
        f"{i % 3 / 2:.1f}\n"
        for i, name in enumerate(names, 1)
    )
    return ran(folder, retrievers=blocks, more=more, report=True).folder / "report.html"


def by_claims(
    path: Path,
    data: Path,
    measures: Sequence[str],
    *,
    judge: str = LEXICAL,
    more: str = "",
) -> Path:
    """An experiment file of two retrievers that are measured by claims, too; the first
    measure decides.
    """
    hashing = '[[retrievers]]\nname = "hashing"\nencoder = { kind = "hashing" }\n'
    path.write_text(
        f'name = "{path.stem}"\ndataset = "{data.as_posix()}"\nprimary = '
        f'"{measures[0]}"\n'
        f"measures = {json.dumps(list(dict.fromkeys(measures)))}\n{more}\n[judge]\n"
        f"{judge}\n{BM25}{hashing}",
        encoding="utf-8",
    )
    return path


def module(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> str:
    """Write a module of the user's, which Python finds, and return its name."""
    name = f"theirs_{abs(hash(folder)) % 10**8}"
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    return name


def copied(source: Path, target: Path) -> Path:
    """An experiment with its data and its results, copied: what named its place names
    the new one.
    """
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in (*target.glob("*.toml"), *target.rglob("manifest.json")):
        path.write_text(
            path.read_text(encoding="utf-8").replace(
                source.as_posix(), target.as_posix()
            ),
            encoding="utf-8",
        )
    return target


def signed_anew(folder: Path) -> Path:
    """A results folder whose files were changed, its manifest brought up to date: only
    what they say is wrong.
    """
    manifest = records.read_manifest(folder)
    records.write_manifest(
        folder, replace(manifest, file_digests=records.file_digests(folder))
    )
    return folder


def with_failed(folder: Path, error: str, name: str = "gone") -> None:
    """Let the manifest of a results folder tell of one more retriever that failed."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["retrievers"][name] = {"error": error, "provenance": {}}
    manifest["ledger"][name] = {"notes": {}, "counts": {}}
    manifest["resolved"]["retrievers"].append(
        {"name": name, "kind": "bm25", "options": {}}
    )
    path.write_text(json.dumps(manifest), encoding="utf-8")


class Told(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Call = Callable[..., Told]
"""The fixture `call`: a command in this process, on a terminal of 80 columns."""


def call(capsys: pytest.CaptureFixture[str], *words: object) -> Told:
    """Run a command, and return how it ended and what it printed."""
    return Told(ended(*words), *capsys.readouterr())


def ends(capsys: pytest.CaptureFixture[str], code: int, *words: object) -> Told:
    """Run a command that ends with this code."""
    output = call(capsys, *words)
    assert output.code == code, output.err
    return output


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """Run a command that ends with this code, and return what it printed."""
    output = ends(capsys, code, *words)
    return output.out + output.err


def planned(path: Path, results: Path = Path("results")) -> RunPlan:
    """What a run of an experiment would take, as its check finds."""
    plan = check_target(path, results=results).plan
    assert plan is not None
    return plan
