"""BM25 over the words of any language."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from retrievers.conditions import Condition, FieldValues, filter_facts, filter_values
from retrievers.document import Document, sample_documents
from retrievers.errors import BackendError, InputError, Problem, did_you_mean
from retrievers.meter import Meter
from retrievers.options.tables import Configured
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked, round_scores, top_k_candidates
from retrievers.resources import Corpus
from retrievers.retriever import Retriever
from retrievers.texts.chunking import Chunk, cut_document
from retrievers.texts.languages import (
    LANGUAGE_NAMES,
    detect_shared_language,
    load_language_model,
)
from retrievers.texts.word_tokens import TOKENIZATION_RULE, tokenize

LANGUAGE_SAMPLE_SIZE = 200
"""Documents by which the language is told."""
MAX_SHARED_TERMS = 20_000_000
"""Terms of a corpus that are kept for other retrievers of the run, at most: 160 MB."""


class _Words(NamedTuple):
    """What BM25 counts, whatever its k1 and b."""

    corpus: list[list[int]]
    """The terms of each document, or passage, as numbers of the vocabulary."""
    empty: list[str]
    """Documents without a term."""
    ids: list[str]
    """The other documents."""
    values: FieldValues
    starts: list[int]
    """Where the passages of each document begin."""
    vocabulary: dict[str, int]
    stemming: str = ""


MAX_K1 = 1_000_000
"""Terms do not saturate long before; scores of far larger ones overflow, and nothing would be found."""


class BM25(Configured, Retriever):
    """Okapi BM25 (Robertson & Zaragoza 2009), scored by bm25s in Lucene's variant."""

    k1: Annotated[float, Field(ge=0, le=MAX_K1)] = 0.9
    """How fast a repeated term saturates, 0 to 1,000,000; 0.9 is Anserini's default."""
    b: Annotated[float, Field(ge=0, le=1)] = 0.4
    """How much long documents are discounted, 0 to 1; 0.4 is Anserini's default."""
    stemming: str | None = None
    """A Snowball language ("english", "russian", …), or "" for none; left out, the language in which nine in ten
    documents of a sample are, where Snowball has it, else none."""
    chunk: Chunk | None = None
    """Cut long documents into passages, `{ size = 800, overlap = 100 }` in characters, with `by` and `call` as an
    encoder's; a document is worth its best one, and words are as rare as they are among passages."""
    _language: str | None = None
    """None until the documents have told it."""
    _stem: Callable[[str], str]
    _conditions: tuple[Condition, ...] = ()
    _words: _Words
    """Without the corpus, which the engine has."""
    _engine: Any

    def model_post_init(self, _: object) -> None:
        """Check the names of languages."""
        self._language = self.stemming
        if self.stemming is None:
            load_language_model()  # on another core, while the documents are read
        self._stem = _stemmer(self.stemming or "")
        if self.chunk is not None and self.chunk.unit == "tokens":
            raise InputError(
                Problem(
                    "chunk.unit", "BM25 has no tokens of an encoder", "leave it out"
                )
            )

    @property
    def fingerprint(self) -> str:
        """All that changes a ranking, but for the documents."""
        stemming = "by language" if self._language is None else self._language or "none"
        cut = "" if self.chunk is None else f" passages={self.chunk.name}"
        return f"bm25 k1={self.k1:g} b={self.b:g} words={TOKENIZATION_RULE} stemming={stemming}{cut}"

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: all that changes a ranking, and that nothing is paid."""
        words = (
            f"stemmed as {self._language.capitalize()}"
            if self._language
            else "not stemmed"
        )
        facts = {
            "fingerprint": self.fingerprint,
            "words": words,
            "usd_per_million_tokens": "0",
        }
        return {**facts, **filter_facts(self._conditions)}

    def check(self) -> None:
        """Raise InputError where what cuts documents is not installed."""
        if self.chunk is not None:
            self.chunk.check()

    def set_filter(self, conditions: Sequence[Condition]) -> None:
        """Search among the documents that match; words stay as rare as they are among all."""
        self._conditions = tuple(conditions)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Count the terms of every document; those with no term are noted and never retrieved."""
        import bm25s

        with meter.stage("index"):
            words = self._counted(documents)
            for id_ in words.empty:
                meter.note("empty", id_)
            meter.count(texts=len(words.corpus))
            if not words.corpus:
                raise BackendError("bm25: no document has a word to index")
            self._engine = bm25s.BM25(
                k1=self.k1, b=self.b, method="lucene", dtype="float32"
            )
            self._engine.index(
                (words.corpus, words.vocabulary),
                create_empty_token=False,
                show_progress=False,
            )
            self._words, self._language = words._replace(corpus=[]), words.stemming
            self._stem = _stemmer(words.stemming)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Rank the documents that share a term with the query; the others are no answer."""
        with meter.stage("search", total=len(queries)):
            return list(self._search(queries, depth, meter))

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank the documents for one query, counting nothing, as latency is measured."""
        stems = map(self._stem, tokenize(query.text))
        terms = [
            number
            for stem in stems
            if (number := self._words.vocabulary.get(stem)) is not None
        ]
        if not terms:
            return ranked((), ())
        scores = self._engine.get_scores_from_ids(terms)
        if self.chunk is not None:
            scores = np.maximum.reduceat(scores, self._words.starts)
        if self._conditions:
            scores = np.where(
                self._words.values.matching(filter_values(query, self._conditions)),
                scores,
                0,
            )
        some = top_k_candidates(scores, depth, scores > 0)
        return ranked(
            [self._words.ids[i] for i in some.tolist()],
            round_scores(scores[some]),
            depth,
        )

    def _search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> Iterator[Ranking]:
        for query in queries:
            if (
                self._conditions
                and not self._words.values.matching(
                    filter_values(query, self._conditions)
                ).any()
            ):
                meter.note("nothing-matches-query", query.id)
            yield self.answer(query, depth, meter)
            meter.count(texts=1)

    def _counted(self, documents: Iterable[Document]) -> _Words:
        """The words of every document, or passage; what another of the run has counted is taken over."""
        fields = sorted(one.field for one in self._conditions)
        made = documents.shared_indexes if isinstance(documents, Corpus) else {}
        key = f"bm25 {self._language} {self.chunk} {fields}"
        words: _Words | None = made.get(key)
        if words is None:
            words = _Words([], [], [], FieldValues(fields), [], {})
            seen = sample_documents(
                _read(documents, self.chunk, words), size=LANGUAGE_SAMPLE_SIZE
            )
            language = (
                _stemming_of(seen)
                if self._language is None and words.corpus
                else self._language or ""
            )
            words = _stemmed(words, language) if language else words
            if sum(map(len, words.corpus)) <= MAX_SHARED_TERMS:
                made[key] = words
        return words


def _read(
    documents: Iterable[Document], chunks: Chunk | None, words: _Words
) -> Iterator[Document]:
    """Add the words of each document, or of its passages, to those there are, and yield those that have any."""
    numbers = words.vocabulary
    for document in documents:
        parts = [document] if chunks is None else cut_document(document, chunks)
        rows = [
            [numbers.setdefault(word, len(numbers)) for word in tokenize(part.content)]
            for part in parts
        ]
        if any(rows):
            words.ids.append(document.id)
            words.values.add(document.fields)
            words.starts.append(len(words.corpus))
            words.corpus.extend(filter(None, rows))
            yield document
        else:
            words.empty.append(document.id)


def _stemmed(words: _Words, language: str) -> _Words:
    """The same with the stems of the words, which become the vocabulary; each word is stemmed once."""
    stem, stems = _stemmer(language), dict[str, int]()
    numbers = [stems.setdefault(stem(word), len(stems)) for word in words.vocabulary]
    corpus = [[numbers[word] for word in row] for row in words.corpus]
    return words._replace(corpus=corpus, vocabulary=stems, stemming=language)


def _stemming_of(documents: Iterable[Document]) -> str:
    """The language of nine in ten documents, where Snowball has it, else ""."""
    import Stemmer

    language = LANGUAGE_NAMES.get(
        detect_shared_language(document.content for document in documents), ""
    )
    return language if language in Stemmer.algorithms() else ""


def _stemmer(language: str) -> Callable[[str], str]:
    if not language:
        return str
    import Stemmer

    if language not in Stemmer.algorithms():
        remedy = did_you_mean(language, Stemmer.algorithms())
        raise InputError(Problem("stemming", f"unknown language {language!r}", remedy))
    stem: Callable[[str], str] = Stemmer.Stemmer(language).stemWord
    return stem
