"""Questions whose reference contexts name documents by id or quote their text.

The documents are given beside them (`documents = …`). A context is matched by id where the export has ids; else by
text: a document that is the context, or that holds it, white space and case aside. What did not match is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from harness.dataset.dataset_model import DatasetReference, Labels
from harness.dataset.source import Findings, Parts, Place
from harness.dataset.table_folder import DOCUMENTS, documents_of, looked_in, named
from retrievers.errors import InputError, Problem
from retrievers.types import Document, Query

ANCHOR = 5
"""Words of a context by whose place a document that may hold it is found."""


class ReferencedQuestion(NamedTuple):
    """One question with what its answer should rest on."""

    query: Query
    ids: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()


ReadDocuments = Callable[[Findings], Iterator[tuple[Place, Document]]]
ReadQuestions = Callable[[Findings], Iterable[tuple[Place, ReferencedQuestion]]]
"""Reads the questions; faults go where it is told."""


def with_contexts(texts: ReadDocuments, asked: ReadQuestions) -> Parts:
    """Put documents from one place together with questions from another, which quote them or name them."""

    def queries(problems: Findings) -> Iterator[tuple[Place, Query]]:
        for place, one in asked(problems):
            yield place, one.query

    return Parts(texts, queries, partial(_labels, texts, asked))


def _labels(texts: ReadDocuments, asked: ReadQuestions, problems: Findings) -> Iterator[tuple[Place, str, Labels]]:
    """Grade 1 for each document that a reference context names or is found in."""
    rows = list(asked(Findings()))
    wanted = {key for _, one in rows if not one.ids for key in map(_key, one.contexts) if key}
    where = holders_of(wanted, (doc for _, doc in texts(Findings()))) if wanted else {}
    for place, one in rows:
        grades = dict.fromkeys(one.ids, 1)
        for context in () if one.ids else one.contexts:
            if (document := where.get(_key(context))) is not None:
                grades[document] = 1
            else:
                problems.note("unmatched-context", f"{one.query.id}: {' '.join(context.split())[:80]}")
        yield place, one.query.id, Labels(grades=grades)


def texts_of(reference: DatasetReference) -> ReadDocuments:
    """What reads the documents that a reference to questions names: a folder, an archive or a table.

    Raises:
        InputError: no documents are named, or they are not there.
    """
    folder, files = looked_in(reference, whole=reference.folder.is_dir())
    if reference.documents is None and (reference.folder.is_file() or named(files, DOCUMENTS) is None):
        remedy = 'this export has the questions alone: documents = "…", a folder or a table of documents'
        raise InputError(Problem(reference.name, "names no documents", remedy))
    return documents_of(reference, folder, files)


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


def holders_of(wanted: Iterable[str], documents: Iterable[Document]) -> dict[str, str]:
    """Return for each text, white space and case put aside, the document that is it, or else the first that holds it.

    One pass over the documents; a text that none holds is left out.
    """
    wanted = set(wanted)
    whole, holds = dict[str, str](), dict[str, str]()
    anchors: dict[tuple[str, ...], list[str]] = {}
    for key in wanted:
        anchors.setdefault(tuple(key.split(" ")[:ANCHOR]), []).append(key)
    short = [anchor for anchor in anchors if len(anchor) < ANCHOR]
    for document in documents:
        for text in (document.text, document.content):
            if (key := _key(text)) in wanted:
                whole.setdefault(key, document.id)
        text = _key(document.content)
        words = text.split(" ")
        near = {tuple(words[i : i + ANCHOR]) for i in range(len(words) - ANCHOR + 1)} & anchors.keys()
        for anchor in (*near, *short):
            for key in anchors[anchor]:
                if key not in holds and key in text:
                    holds[key] = document.id
    return {**holds, **whole}
