"""The words of a corpus: which document has which."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from retrievers.conditions import (
    FieldValues,
)
from retrievers.document import Document
from retrievers.ranking import Mask, Ranking, ranked, round_scores, top_k_candidates
from retrievers.texts.chunking import Chunk, cut_document
from retrievers.texts.stemming import load_stemmer
from retrievers.texts.word_tokens import tokenize


@dataclass(slots=True)
class WordIndex:
    """The words of a corpus; they do not depend on k1 and b."""

    field_values: FieldValues
    """Fields of the documents that conditions use."""
    terms: list[list[int]] = field(default_factory=list)
    """The terms of each document, or passage, as numbers of the vocabulary."""
    vocabulary: dict[str, int] = field(default_factory=dict)
    """Word, or stem -> its number."""
    doc_ids: list[str] = field(default_factory=list)
    """Documents with a term."""
    empty_doc_ids: list[str] = field(default_factory=list)
    """Documents without a term."""
    passage_starts: list[int] = field(default_factory=list)
    """Where the passages of each document begin in `terms`."""
    passage_ids: list[str] = field(default_factory=list)
    """Ids of passages, with the numbers by which they are found in their documents."""
    stemming: str = ""
    """The language in which words are stemmed; empty if they are not."""


def rank_scores(
    scores: npt.NDArray[np.float32],
    ids: Sequence[str],
    depth: int,
    matching: Mask | None,
) -> Ranking:
    """Return the best documents, or passages, that match and score above 0."""
    if matching is not None:
        scores = np.where(matching, scores, 0)
    candidates = top_k_candidates(scores, depth, scores > 0)
    candidate_ids = [ids[i] for i in candidates.tolist()]
    return ranked(candidate_ids, round_scores(scores[candidates]), depth)


def read_words(
    documents: Iterable[Document], chunks: Chunk | None, index: WordIndex
) -> Iterator[Document]:
    """Add the words of each document to the index; yield documents that have any."""
    vocabulary = index.vocabulary
    for document in documents:
        passages = [document] if chunks is None else cut_document(document, chunks)
        passage_terms = []
        for passage in passages:
            words = tokenize(passage.content)
            terms = [vocabulary.setdefault(word, len(vocabulary)) for word in words]
            if terms:
                passage_terms.append(terms)
                index.passage_ids.append(passage.id)
        if passage_terms:
            index.doc_ids.append(document.id)
            index.field_values.add(document.fields)
            index.passage_starts.append(len(index.terms))
            index.terms.extend(passage_terms)
            yield document
        else:
            index.empty_doc_ids.append(document.id)


def stem_words(index: WordIndex, language: str) -> WordIndex:
    """Return the index with stems as vocabulary; each word is stemmed once."""
    stem = load_stemmer(language)
    stems: dict[str, int] = {}
    stem_of_word = [
        stems.setdefault(stem(word), len(stems)) for word in index.vocabulary
    ]
    stemmed_terms = [
        list(map(stem_of_word.__getitem__, terms)) for terms in index.terms
    ]
    return replace(index, terms=stemmed_terms, vocabulary=stems, stemming=language)
