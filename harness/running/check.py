"""What can be known of an experiment or a data set before anything is embedded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness.dataset import Dataset, DatasetReference
from harness.dataset import load as load_dataset
from harness.experiment import Loaded
from harness.experiment import load as load_experiment
from harness.measures import score
from harness.running.parts import Parts, build_parts
from harness.scoring.grading import GradedLabels, grade_labels
from retrievers.errors import InputError

MEANINGS = {
    "empty-document": "empty documents: never embedded, never retrieved",
    "duplicate-text": "documents with the text of another",
    "query-is-document": "queries whose text is a document's title or text",
    "no-relevant-document": "judged queries without a relevant document: left out of every mean",
    "unjudged-query": "queries without judgments: not asked",
    "unlabelled-query": "queries without labels: answered, and not scored",
    "judged-elsewhere": "judgments of queries that are not asked here",
    "replaced-labels": "queries whose labels in the files are replaced by judgments.jsonl",
    "changed-text": "judged pairs whose question or document has changed since: judge them again",
    "dangling-document": "judgments of documents that do not exist: dropped",
    "dangling-query": "judgments of queries that do not exist: dropped",
    "negative-grade": "queries with grades below 0: those documents are judged and not relevant",
    "duplicate-label": "queries whose list names a document twice: its best place counts",
    "repeated-query": "queries with the text of another",
    "contradicting-labels": "queries that ask what another asks and have other labels: one of the two must be wrong",
    "document-without-key": "documents without the fields by which labels name documents: no label can mean them",
    "unread-file": "files that no reader takes",
    "unconverted-file": "files that could not be converted",
    "unmatched-context": "reference contexts that are the text of no document",
}
NAMED = 5
"""So many ids are named in the text."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A data set without faults, and what is to be known of it."""

    dataset: Dataset

    def lines(self) -> Iterator[str]:
        """What `harness check` prints."""
        dataset = self.dataset
        documents, queries = counted(dataset.count, "document"), counted(len(dataset.queries), "query")
        yield f"{dataset.path}: {dataset.format}, {documents}, {queries} to ask"
        yield f"digest {dataset.digest}"
        for kind, ids in dataset.ledger.items():
            named = ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "")
            yield f"{MEANINGS[kind]} ({len(ids):,}): {named}"
        yield "nothing is wrong"

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        dataset = self.dataset
        return {"path": dataset.path, "format": dataset.format, "documents": dataset.count,
                "queries": len(dataset.queries), "digest": dataset.digest, "ledger": dict(dataset.ledger)}  # fmt: skip


class Prepared(NamedTuple):
    """An experiment's data set without faults, and what its retrievers are made of."""

    dataset: Dataset
    graded: GradedLabels
    """Its labels after the grade rule."""
    parts: dict[str, Parts]
    """By retriever; nothing is loaded yet."""


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "query"), counted(1400, "document")
    ('1 query', '1,400 documents')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def check(target: Path) -> Checked:
    """Check an experiment file with its data set, or a data set alone.

    Raises:
        InputError: with every problem that was found.
    """
    if target.is_dir():
        return Checked(load_dataset(DatasetReference(target)))
    loaded = load_experiment(target)
    return Checked(prepare(loaded).dataset)


def prepare(loaded: Loaded) -> Prepared:
    """Load an experiment's data set and build what its retrievers are made of; labels and measures are seen to fit.

    Raises:
        InputError: with every problem that was found.
    """
    relevance = loaded.experiment.relevance
    dataset = load_dataset(loaded.dataset, drop_dangling=relevance.dangling == "drop")
    try:
        graded = grade_labels(dataset.labels, relevance)
        # Scoring empty rankings finds out whether every measure can read these labels.
        score(loaded.question.measures, graded.grades, {}, groups=graded.groups or None)
        parts = build_parts(loaded.experiment.retrievers)
    except InputError as error:
        raise InputError([p._replace(where=f"{loaded.path}: {p.where}") for p in error.problems]) from None
    return Prepared(dataset, graded, parts)
