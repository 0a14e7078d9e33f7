"""Properties of queries that need no model."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.dataset import Dataset, Labels
from harness.records import (
    DIGITS,
    DOCUMENT_LENGTH,
    LABELS,
    QUERY_LENGTH,
    QUOTATION_MARKS,
    RAREST_WORD,
    SCRIPT,
    SHARED_WORDS,
    TRUNCATED_BY,
    QueryProperty,
    Run,
)
from retrievers.texts.word_tokens import tokenize
from retrievers.types import Document, Query

MARKS_OF_QUOTATION = frozenset('"“”„‟«»「」『』')
"""Quotation marks without the apostrophe, which is frequent within words."""
NO_SCRIPT = "none"
"""The script of a query without letters that have a name."""
JAPANESE = "Japanese"
KANA_SCRIPTS = frozenset({"Hiragana", "Katakana"})
HAN = "Han"
SCRIPT_NAMES = {"Cjk": HAN, "Ideographic": HAN, "Katakana-hiragana": "Katakana"}
"""First word of a character's Unicode name -> its script, if they differ."""


@dataclass(slots=True)
class _CorpusWords:
    """How often words of queries occur in the documents."""

    document_counts: Counter[str]
    """Word -> the number of documents that have it."""
    words_by_document: dict[str, frozenset[str]] = field(default_factory=dict)
    """Relevant document -> the words of queries that it has."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Relevant document -> its characters."""


def truncated_documents(runs: Sequence[Run]) -> dict[str, frozenset[str]]:
    """Return retriever -> the documents that its model read only in part.

    Retrievers that truncated none are left out.
    """
    truncated: dict[str, frozenset[str]] = {}
    for run in runs:
        documents = frozenset(run.notes.get("truncated", ()))
        if documents and not run.error:
            truncated[run.retriever] = documents
    return truncated


def query_properties(
    dataset: Dataset, truncated: Mapping[str, frozenset[str]]
) -> Iterator[QueryProperty]:
    """Yield the properties of every stored query, from one pass over the corpus.

    A property that a query cannot have is left out, such as those of relevant documents
    for a query without any.

    Args:
        dataset: queries, labels and documents.
        truncated: what `truncated_documents` returned.
    """
    words_by_query = {
        query.id: frozenset(tokenize(query.text)) for query in dataset.stored_queries
    }
    relevant_by_query = {
        query.id: dataset.labels.get(query.id, Labels()).relevant
        for query in dataset.stored_queries
    }
    corpus = _read_corpus(
        dataset.documents(),
        frozenset().union(*words_by_query.values()),
        frozenset().union(*relevant_by_query.values()),
    )
    for query in dataset.stored_queries:
        words = words_by_query[query.id]
        relevant = [doc for doc in relevant_by_query[query.id] if doc in corpus.lengths]
        yield from _text_properties(query)
        if words:
            rarest = min(corpus.document_counts[word] for word in words)
            yield QueryProperty(query.id, RAREST_WORD, float(rarest))
        if not relevant:
            continue
        if words:
            # Of several documents, the one that shares most: the easiest to find.
            shared = max(len(words & corpus.words_by_document[doc]) for doc in relevant)
            yield QueryProperty(query.id, SHARED_WORDS, shared / len(words))
        length = sum(corpus.lengths[doc] for doc in relevant) / len(relevant)
        yield QueryProperty(query.id, DOCUMENT_LENGTH, length)
        yield QueryProperty(query.id, LABELS, float(len(relevant)))
        for retriever, documents in truncated.items():
            name = f"{TRUNCATED_BY}{retriever}"
            yield QueryProperty(query.id, name, documents.issuperset(relevant))


def _text_properties(query: Query) -> Iterator[QueryProperty]:
    """Yield the properties of a query's text alone."""
    text = query.text
    has_digits = any(map(str.isdigit, text))
    has_marks = not MARKS_OF_QUOTATION.isdisjoint(text)
    yield QueryProperty(query.id, QUERY_LENGTH, float(len(text)))
    yield QueryProperty(query.id, DIGITS, has_digits)
    yield QueryProperty(query.id, QUOTATION_MARKS, has_marks)
    yield QueryProperty(query.id, SCRIPT, text_script(text))


def _read_corpus(
    documents: Iterable[Document],
    vocabulary: frozenset[str],
    relevant: frozenset[str],
) -> _CorpusWords:
    """Count the words of queries in each document.

    Args:
        documents: the corpus.
        vocabulary: the words of all queries.
        relevant: the documents whose words and lengths are kept.
    """
    corpus = _CorpusWords(Counter())
    for document in documents:
        content = document.content
        shared = vocabulary.intersection(tokenize(content))
        corpus.document_counts.update(shared)
        if document.id in relevant:
            corpus.words_by_document[document.id] = shared
            corpus.lengths[document.id] = len(content)
    return corpus


def text_script(text: str) -> str:
    """Return the script of most letters; with kana, Han characters are Japanese.

    >>> text_script("2.4 GHz antenna"), text_script("顧客の声"), text_script("404")
    ('Latin', 'Japanese', 'none')
    """
    counts = Counter(map(_letter_script, filter(str.isalpha, text)))
    kana = sum(counts.pop(script, 0) for script in sorted(KANA_SCRIPTS))
    if kana:
        counts[JAPANESE] = kana + counts.pop(HAN, 0)
    if not counts:
        return NO_SCRIPT
    return min(counts, key=lambda script: (-counts[script], script))


def _letter_script(letter: str) -> str:
    """Return the script of a letter, from its Unicode name; "none" without one."""
    # NFKC, since the name of a full-width letter, say, does not begin with its script.
    # A ligature of marks alone becomes a space with marks: its own name is taken.
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", letter))
    name = unicodedata.name(next(letters, letter), "")
    if not name:
        return NO_SCRIPT
    word = name.split()[0].capitalize()
    return SCRIPT_NAMES.get(word, word)
