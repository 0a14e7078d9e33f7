"""The BEIR format: corpus.jsonl, queries.jsonl and qrels/<split>.tsv (Thakur et al. 2021), in a folder or a zip."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from harness.dataset.columns import Columns
from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.files import File, listing, listing_of, pick
from harness.dataset.label_rows import Gathered
from harness.dataset.rows import read_lines
from harness.dataset.source import WHOLE, Findings, Parts, Place, grade_of
from harness.dataset.table_folder import TableSource, rows_of
from retrievers.errors import InputError, Problem, did_you_mean

HEADER = ("query-id", "corpus-id", "score")
CORPUS = "corpus.jsonl"


def matches(reference: DatasetReference) -> bool:
    """Whether a folder or an archive looks like BEIR."""
    files = {} if reference.documents or reference.labels else listing_of(reference)
    others = any("/" not in name and PurePosixPath(name).stem == "queries" for name in files)
    return CORPUS in files and ("queries.jsonl" in files or not others)


def read(reference: DatasetReference) -> Parts:
    """Open a BEIR folder; `split` may be left out where there is one file of qrels, or one named test."""
    files, split, folder = listing(reference.folder), reference.split, reference.folder
    splits = splits_of(files)
    if split is None and splits:
        split = splits[0] if len(splits) == 1 else "test"
    if split not in splits and (splits or split is not None):
        if splits and reference.split is None:
            what = f"has the splits {', '.join(splits)}"
            raise InputError(Problem(str(folder / "qrels"), what, 'name one: split = "…", or --split'))
        remedy = did_you_mean(split, splits) if split and splits else "one judgment a line: query-id, corpus-id, score"
        raise InputError(Problem(str(folder / "qrels" / f"{split or 'test'}.tsv"), "no such file", remedy))
    names = reference.queries or ("queries.jsonl",)
    columns = Columns(reference.columns)
    queries = rows_of(*(pick(files, name, folder) for name in names))
    tables = TableSource(rows_of(pick(files, CORPUS, folder)), queries, rows_of(), columns)
    return Parts(tables.documents, tables.queries, partial(read_judgments, files.get(f"qrels/{split}.tsv")))


def splits_of(files: dict[str, File]) -> list[str]:
    """The names of the files of judgments."""
    pures = map(PurePosixPath, files)
    return sorted(pure.stem for pure in pures if pure.suffix == ".tsv" and pure.parent.as_posix() == "qrels")


def read_judgments(qrels: File | None, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
    """The rows of qrels/<split>.tsv, gathered by query; the place is that of the query's first row.

    There is no such file where nobody has judged anything yet.
    """
    if qrels is None:
        return
    gathered = Gathered()
    try:
        for number, line in read_lines(qrels, problems):
            cells = line.split("\t") if "\t" in line else line.split()
            if len(cells) != len(HEADER):
                remedy = f"expected 3: {', '.join(HEADER)}" + ("; this is TREC's form" if len(cells) == 4 else "")
                problems.wrong(Place(qrels.path, number), f"{len(cells)} columns", remedy)
                continue
            if number == 1 and tuple(cells[:2]) == HEADER[:2]:
                continue
            query, document, written = cells[0].strip(), cells[1].strip(), cells[2].strip()
            grade = int(written) if written.isascii() and written.isdigit() and len(written) < 9 else grade_of(written)
            place = Place(qrels.path, number)
            if grade is None:
                problems.append(Problem(str(place), f"grade {written!r} is no whole number", WHOLE))
            else:
                gathered.add(place, query, document, grade, problems)
    except InputError as error:
        problems.extend(error.problems)
    yield from gathered.labels()
