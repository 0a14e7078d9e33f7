"""A data set summarised."""

import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from harness.dataset import Dataset
from harness.dataset.dataset import count_grades
from harness.dataset.quoted_texts import documents_with_text
from harness.preflight.truncation import TruncationEstimate
from retrievers.ids import normalise_text
from retrievers.texts.languages import LANGUAGE_NAMES, detect_language
from retrievers.texts.token_estimate import estimate_tokens
from retrievers.types import Document, sample_documents

MIN_QUOTED_WORDS = 4
"""Words that a query must have for its text within a document to count as quoted."""
SCRIPT_SAMPLE = 300
"""Characters of a text whose scripts are counted."""
EstimateTruncation = Callable[[Sequence[Document]], Iterable[TruncationEstimate]]


class TokenSpread(NamedTuple):
    """How long documents are, in estimated tokens."""

    median: int
    percentile_95: int
    longest: int


class RelevantSpread(NamedTuple):
    """How many relevant documents the queries that have any have; all 0 if none has."""

    fewest: int
    median: float
    most: int


class GradeCount(NamedTuple):
    """How often a grade is given."""

    grade: int
    labels: int


class LanguageCount(NamedTuple):
    """How many documents are in a language."""

    language: str
    documents: int


class DatasetSummary(NamedTuple):
    """A data set in figures; all but those of the labels are from a sample."""

    sampled: int
    """How many documents the sample has."""
    tokens: TokenSpread
    languages: tuple[LanguageCount, ...]
    """The most frequent first."""
    quoted: tuple[str, ...]
    """Ids of queries whose text is word for word in a document."""
    labelled: int
    """How many documents have a label, also as not relevant."""
    grades: tuple[GradeCount, ...]
    """How often each grade occurs; empty if labels are lists."""
    per_query: RelevantSpread
    reaches: tuple[TruncationEstimate, ...] = ()
    """How far each encoder reads the sample; empty without an experiment."""


def no_truncation(documents: Sequence[Document]) -> tuple[TruncationEstimate, ...]:
    """Return nothing: a data set without an experiment has no encoders."""
    return ()


def summarise_dataset(
    dataset: Dataset,
    estimate_truncation: EstimateTruncation = no_truncation,
    *,
    seed: int = 0,
) -> DatasetSummary:
    """Summarise a data set in one pass over its corpus.

    Args:
        dataset: the data set.
        estimate_truncation: estimates on the sample how far encoders read.
        seed: of the sample, which depends on it and the ids alone.
    """
    documents = sample_documents(dataset.documents(), seed=seed)
    quoted = _quoted_queries(dataset, documents)
    reaches = tuple(estimate_truncation(documents))
    return DatasetSummary(
        sampled=len(documents),
        tokens=_token_spread(documents),
        # Last: the model of languages is loaded in the meantime.
        languages=_count_languages(documents),
        quoted=quoted,
        labelled=_count_labelled(dataset),
        grades=tuple(
            GradeCount(grade, count)
            for grade, count in count_grades(dataset.labels.values())
        ),
        per_query=_relevant_spread(dataset),
        reaches=reaches,
    )


def _token_spread(documents: Sequence[Document]) -> TokenSpread:
    if not documents:
        return TokenSpread(0, 0, 0)
    tokens = estimate_tokens([document.content for document in documents])
    median = int(np.median(tokens))
    return TokenSpread(median, int(np.percentile(tokens, 95)), int(tokens.max()))


def _quoted_queries(dataset: Dataset, documents: Sequence[Document]) -> tuple[str, ...]:
    """The ids of queries whose text is in a document, sorted."""
    query_ids: dict[str, list[str]] = {}
    for query in dataset.queries:
        text = normalise_text(query.text)
        if len(text.split(" ")) >= MIN_QUOTED_WORDS:
            query_ids.setdefault(text, []).append(query.id)
    quoted_texts = documents_with_text(query_ids, documents)
    return tuple(sorted(chain.from_iterable(map(query_ids.__getitem__, quoted_texts))))


def _count_labelled(dataset: Dataset) -> int:
    return len({doc for labels in dataset.labels.values() for doc in labels.documents})


def _relevant_spread(dataset: Dataset) -> RelevantSpread:
    counts = [len(set(labels.relevant)) for labels in dataset.labels.values()]
    counts = [count for count in counts if count]
    if not counts:
        return RelevantSpread(0, 0, 0)
    return RelevantSpread(min(counts), statistics.median(counts), max(counts))


def _count_languages(documents: Sequence[Document]) -> tuple[LanguageCount, ...]:
    languages = Counter(_language(document.content) for document in documents)
    return tuple(
        LanguageCount(language, count) for language, count in languages.most_common()
    )


def _language(text: str) -> str:
    """The language, or if that is unclear the script of most letters."""
    code = detect_language(text)
    if code:
        return LANGUAGE_NAMES.get(code, code)
    scripts = Counter(
        unicodedata.name(letter, "").partition(" ")[0]
        for letter in text[:SCRIPT_SAMPLE]
        if letter.isalpha()
    )
    if not scripts:
        return "no letters"
    return f"{scripts.most_common(1)[0][0].lower()} script"
