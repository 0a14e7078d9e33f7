"""BM25 over the words of any language."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from retrievers.conditions import (
    Condition,
    FieldValues,
    conditions_text,
    filter_values,
)
from retrievers.document import Document, sample_documents
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import ModelFacts, RetrieverFacts
from retrievers.meter import Meter
from retrievers.options.tables import Configured
from retrievers.prices import Price
from retrievers.query import Query
from retrievers.ranking import Mask, Ranking, ranked
from retrievers.resources import Corpus, Resources, own_resources
from retrievers.retriever import Retriever
from retrievers.texts.chunking import Chunk
from retrievers.texts.languages import (
    preload_language_model,
)
from retrievers.texts.placed_passages import PassagePlaces
from retrievers.texts.stemming import DOTLESS_I, detect_stemming, load_stemmer
from retrievers.texts.word_tokens import TOKENIZATION_RULE, tokenize
from retrievers.word_index import WordIndex, rank_scores, read_words, stem_words

LANGUAGE_SAMPLE_SIZE = 200
"""Documents from which the corpus's language is detected."""
MAX_SHARED_TERMS = 20_000_000
"""Terms of a corpus that are kept for other retrievers of the run, at most: 160 MB."""
MAX_K1 = 1_000_000
"""The largest k1: far below it, terms no longer saturate; far above it, scores overflow
and nothing is found."""


class BM25(Configured, Retriever):
    """Okapi BM25 (Robertson & Zaragoza 2009), scored by bm25s in Lucene's variant."""

    k1: Annotated[float, Field(ge=0, le=MAX_K1)] = 0.9
    """How fast a repeated term saturates, 0 to 1,000,000; 0.9 is Anserini's default."""
    b: Annotated[float, Field(ge=0, le=1)] = 0.4
    """How much long documents are discounted, 0 to 1; 0.4 is Anserini's default."""
    stemming: str | None = None
    """A Snowball language ("english", "russian", …), or "" for none; left out, the
    language in which nine in ten documents of a sample are, where Snowball has it, else
    none."""
    chunk: Chunk | None = None
    """Cut long documents into passages, `{ size = 800, overlap = 100 }` in characters,
    with `by` and `call` as an encoder's; a document is worth its best one, and words
    are as rare as they are among passages."""
    _language: str | None = None
    """The language of stemming; "" for none; None until it is detected."""
    _stem: Callable[[str], str]
    _conditions: tuple[Condition, ...] = ()
    _index: WordIndex
    """Set by `index`; without `terms`, which the engine has."""
    _engine: Any
    _resources: Resources | None = None
    _passage_places: PassagePlaces | None = None

    def model_post_init(self, _: object) -> None:
        """Check the names of languages, and that the passages need no encoder."""
        self._language = self.stemming
        if self.stemming is None:
            preload_language_model()  # on another core, while the documents are read
        self._stem = load_stemmer(self.stemming or "")
        if self.chunk is not None and self.chunk.unit == "tokens":
            problem = "BM25 has no tokens of an encoder"
            raise InputError(Problem("chunk.unit", problem, "leave it out"))
        if self.chunk is not None and self.chunk.late:
            problem = "BM25 has no vectors of an encoder"
            raise InputError(Problem("chunk.late", problem, "leave it out"))

    @property
    def answers_here(self) -> bool:
        """Whether it calls no other program."""
        return True

    @property
    def fingerprint(self) -> str:
        """All that changes a ranking, except the documents and the conditions."""
        stemming = "by language"
        if self._language is not None:
            stemming = self._language or "none"
        fingerprint = (
            f"bm25 k1={self.k1:.15g} b={self.b:.15g} words={TOKENIZATION_RULE} "
            f"stemming={stemming}"
        )
        if self.chunk is not None:
            fingerprint += f" passages={self.chunk.name}"
        return fingerprint

    @property
    def facts(self) -> RetrieverFacts:
        """What the manifest records: fingerprint, stemming, conditions, the price 0."""
        words = "not stemmed"
        if self._language:
            words = f"stemmed as {self._language.capitalize()}"
        return RetrieverFacts(
            model=ModelFacts(
                fingerprint=self.fingerprint, word_stemming=words, price=Price(0.0, "")
            ),
            conditions=conditions_text(self._conditions),
        )

    def check(self) -> None:
        """Raise InputError if a function or package that cuts documents is missing."""
        if self.chunk is not None:
            self.chunk.check()

    def setup(self, resources: Resources) -> None:
        """Receive the run's documents, in which passages are found."""
        self._resources = resources

    def set_filter(self, conditions: Sequence[Condition]) -> None:
        """Search among the documents that match.

        The weights of words stay those of all documents.
        """
        self._conditions = tuple(conditions)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Count the terms of every document.

        Documents without a term are noted and never retrieved.
        """
        import bm25s

        if self.chunk is not None:
            documents = self._open_passages(documents, self.chunk)
        with meter.stage("index"):
            index = self._count_words(documents)
            for doc_id in index.empty_doc_ids:
                meter.note("empty", doc_id)
            meter.count(texts=len(index.terms))
            if not index.terms:
                raise BackendError("bm25: no document has a word to index")
            self._engine = bm25s.BM25(
                k1=self.k1, b=self.b, method="lucene", dtype="float32"
            )
            self._engine.index(
                (index.terms, index.vocabulary),
                create_empty_token=False,
                show_progress=False,
            )
            self._index = replace(index, terms=[])
            self._language = index.stemming
            self._stem = load_stemmer(index.stemming)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Rank the documents that share a term with the query."""
        rankings = []
        with meter.stage("search", total=len(queries)):
            for query in queries:
                if self._conditions and not self._matching(query).any():
                    meter.note("nothing-matches-query", query.id)
                if not self._terms_of(query):
                    meter.note("no-shared-word", query.id)
                rankings.append(self.answer(query, depth, meter))
                meter.count(texts=1)
        if self._passage_places is not None:
            self._passage_places.note_changed(meter)
        return rankings

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank the documents for one query without counts, as latency is measured."""
        terms = self._terms_of(query)
        if not terms:
            return ranked((), ())
        scores = self._engine.get_scores_from_ids(terms)
        matching = self._matching(query) if self._conditions else None
        places = self._passage_places
        if places is None:
            return rank_scores(scores, self._index.doc_ids, depth, matching)
        starts = self._index.passage_starts
        best_scores = np.maximum.reduceat(scores, starts)
        documents = rank_scores(best_scores, self._index.doc_ids, depth, matching)
        if matching is not None:
            lengths = np.diff([*starts, len(scores)])
            matching = np.repeat(matching, lengths)
        passages = rank_scores(scores, self._index.passage_ids, depth, matching)
        return documents.with_passages(places.place(passages))

    def _open_passages(
        self, documents: Iterable[Document], chunks: Chunk
    ) -> Iterable[Document]:
        """Return the documents, in which the passages of hits will be looked up."""
        if self._resources is None:
            self._resources = own_resources(self, documents)
            documents = self._resources.corpus
        self._passage_places = PassagePlaces(
            self._resources.corpus, chunks, self._resources.count_tokens
        )
        return documents

    def _terms_of(self, query: Query) -> list[int]:
        """Return the words of a query that any document has, as numbers."""
        vocabulary = self._index.vocabulary
        stems = map(self._stem, tokenize(query.text))
        return [vocabulary[stem] for stem in stems if stem in vocabulary]

    def _matching(self, query: Query) -> Mask:
        """Return whether each document matches the query's filter."""
        return self._index.field_values.matching(filter_values(query, self._conditions))

    def _count_words(self, documents: Iterable[Document]) -> WordIndex:
        """Return the words of all documents, perhaps counted by another retriever."""
        fields = sorted(condition.field for condition in self._conditions)
        shared = documents.shared_indexes if isinstance(documents, Corpus) else {}
        key = f"bm25 {self.stemming} {self.chunk} {fields}"
        index: WordIndex | None = shared.get(key)
        if index is not None:
            return index
        index = WordIndex(FieldValues(fields))
        # Drawing the sample reads all documents, and so fills the index.
        sample = sample_documents(
            read_words(documents, self.chunk, index), size=LANGUAGE_SAMPLE_SIZE
        )
        language = self.stemming or ""
        if self.stemming is None and index.terms:
            language = detect_stemming(sample)
        # Without a language, `stem_words` changes the dotless i alone.
        if language or any(DOTLESS_I in word for word in index.vocabulary):
            index = stem_words(index, language)
        if sum(map(len, index.terms)) <= MAX_SHARED_TERMS:
            shared[key] = index
        return index


def queries_without_shared_word(
    queries: Sequence[Query],
    documents: Callable[[], Iterable[Document]],
    stemming: str | None = None,
) -> list[str]:
    """Return the ids of queries whose words are in no document, as BM25 counts words.

    A query without a word is one of them. The documents are read until every query
    shares a word with one of them.

    Args:
        queries: the queries.
        documents: starts a pass over the corpus.
        stemming: as of `BM25`.
    """
    if stemming is None:
        sample = sample_documents(documents(), size=LANGUAGE_SAMPLE_SIZE)
        stemming = detect_stemming(
            document for document in sample if tokenize(document.content)
        )
    stem = load_stemmer(stemming)
    stems_by_query = {
        query.id: frozenset(map(stem, tokenize(query.text))) for query in queries
    }
    without = dict(stems_by_query)
    for document in documents():
        if not without:
            break
        stems = frozenset(map(stem, frozenset(tokenize(document.content))))
        sharing_ids = [
            query_id for query_id, query_stems in without.items() if query_stems & stems
        ]
        for query_id in sharing_ids:
            del without[query_id]
    return list(without)
