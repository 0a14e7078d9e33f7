"""Retrievers with an index of their own.

Services, functions and saved runs return ids, which are matched with the documents
here; too many unknown ids end their retriever. Services and functions also fail if they
find nothing, or return distances in place of scores; a saved run's rising scores are
only noted.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import ClassVar, Literal

from retrievers.document import Document
from retrievers.errors import BackendError
from retrievers.files.run_scores import RunContradictions, find_contradictions
from retrievers.ids import CONTROL_CHARACTERS, KnownDocuments
from retrievers.meter import Meter
from retrievers.options.tables import Configured
from retrievers.ranking import Ranking, merge_duplicates, ranked
from retrievers.resources import Corpus
from retrievers.retriever import Retriever

UnknownHitsPolicy = Literal["", "irrelevant"]
MAX_UNKNOWN_SHARE = 0.2
"""Share of the hits that may have unknown ids."""
MIN_UNANSWERED = 5
"""Queries from which on no hit at all is a failure: fewer may have no answer."""
MIN_RISES = 10
"""Rises among scores that should fall, from which on they are not chance."""


class ExternalRetriever(Configured, Retriever):
    """A retriever with an index of its own.

    Its hits have ids and scores, and no text; `KnownDocuments` matches the ids with
    those of the documents.
    """

    own_index: ClassVar[bool] = True
    unknown_hits: UnknownHitsPolicy = ""
    """What hits outside the data set count as: "irrelevant"; else many are an error."""
    _known_documents: KnownDocuments | None = None
    """The documents' ids and titles; None before `index`."""
    _has_noted_hits: bool = False
    """Whether it noted queries without hits, and scores that contradict ranks: of the
    first search alone."""
    _has_matched_hits: bool = False
    """Whether the hits of a search were matched with the documents."""

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Store only ids and titles, to match the hits with."""
        self._known_documents = known_documents(documents)

    def _check_first_hits(
        self,
        score_lists: Sequence[tuple[str, Sequence[float]]],
        meter: Meter,
    ) -> None:
        """Note the queries without hits, and those whose scores contradict the ranks.

        Only in the first search: single queries are timed after all were answered.

        Args:
            score_lists: query id and the scores of its hits.
            meter: receives the notes.

        Raises:
            BackendError: scores are distances; or there are five queries or more, and
                none has a hit.
        """
        if self._has_noted_hits:
            return
        refuse_distances(scores for _, scores in score_lists)
        has_hits = any(len(scores) for _, scores in score_lists)
        if len(score_lists) >= MIN_UNANSWERED and not has_hits:
            raise BackendError(
                f"returned no document for any of {len(score_lists):,} queries: look "
                "at one of its answers, and where its ids are read from"
            )
        for query_id, scores in score_lists:
            if not len(scores):
                meter.note("not-answered-query", query_id)
        self._note_contradictions(find_contradictions(score_lists), meter)

    def _note_contradictions(
        self, contradictions: RunContradictions, meter: Meter
    ) -> None:
        """Note the queries whose scores contradict their ranks."""
        self._has_noted_hits = True
        for query_id in contradictions.tied:
            meter.note("tied-run-query", query_id)
        for query_id in contradictions.rising:
            meter.note("rising-run-query", query_id)

    def _with_document_ids(
        self, rankings: list[Ranking], meter: Meter
    ) -> list[Ranking]:
        """Return rankings with the documents' own ids; before `index` as they are."""
        if self._known_documents is None:
            return rankings
        # A single query is timed after all were answered: more of its hits may be
        # unknown than of all hits.
        is_timed = self._has_matched_hits and len(rankings) == 1
        allow_unknown = bool(self.unknown_hits) or is_timed
        matched = match_hit_ids(
            rankings, self._known_documents, meter, allow_unknown=allow_unknown
        )
        self._has_matched_hits = True
        return matched


def known_documents(documents: Iterable[Document]) -> KnownDocuments:
    """Return the ids and titles of a corpus, read once for all retrievers of a run."""
    shared = documents.shared_indexes if isinstance(documents, Corpus) else {}
    if "known" not in shared:
        shared["known"] = KnownDocuments()
        for document in documents:
            shared["known"].add(document.id, document.title)
    documents_with_titles: KnownDocuments = shared["known"]
    return documents_with_titles


def match_hit_ids(
    rankings: Sequence[Ranking],
    documents: KnownDocuments,
    meter: Meter,
    *,
    allow_unknown: bool = False,
) -> list[Ranking]:
    """Return rankings with the documents' ids, matched as by `KnownDocuments.match`.

    Hits with unknown ids stay in the rankings, and are counted and noted.

    Args:
        rankings: a retriever's rankings.
        documents: the documents of the corpus.
        meter: receives notes of the hits that were matched or are unknown.
        allow_unknown: whether any number of hits may be unknown.

    Raises:
        BackendError: more than one hit in five is unknown; or a hit's id is one that no
            document can have.
    """
    distinct_ids = set().union(*(ranking.doc_ids for ranking in rankings))
    if documents.ids.issuperset(distinct_ids):
        return list(rankings)
    counts = Counter(doc_id for ranking in rankings for doc_id in ranking.doc_ids)
    matches = documents.match(counts)
    unknown = {doc_id: n for doc_id, n in counts.items() if doc_id not in matches}
    _check_unknown_ids(unknown, meter)
    unknown_count = sum(unknown.values())
    if unknown_count > MAX_UNKNOWN_SHARE * counts.total() and not allow_unknown:
        unknown_id = next(iter(unknown))
        raise BackendError(
            f"{unknown_count:,} of {counts.total():,} hits have unknown ids, "
            f"such as {unknown_id!r}; ids of documents look like "
            f"{min(documents.ids, default='nothing')!r}: "
            "give the same ids on both sides, or, if its index holds more documents, "
            'unknown_hits = "irrelevant"'
        )
    if unknown_count:
        meter.count(foreign_hits=unknown_count, hits_given=counts.total())
    renamed = {}
    for hit_id, match in matches.items():
        if match.document != hit_id:
            renamed[hit_id] = match.document
            note = f"{hit_id} -> {match.document} (by {match.matched_by})"
            meter.note("matched-hit", note)
    return [
        ranking
        if renamed.keys().isdisjoint(ranking.doc_ids)
        else merge_duplicates(ranking, renamed)
        for ranking in rankings
    ]


def _check_unknown_ids(unknown_ids: Iterable[str], meter: Meter) -> None:
    """Note unknown ids; raise BackendError for one that no document can have."""
    for doc_id in sorted(unknown_ids):
        if not doc_id.strip() or CONTROL_CHARACTERS.search(doc_id):
            raise BackendError(
                f"{doc_id[:80]!r} is among the hits, which is not an id: "
                "it is blank, or holds a control character"
            )
        meter.note("not-in-corpus", doc_id)


def refuse_distances(score_lists: Iterable[Sequence[float]]) -> None:
    """Raise BackendError if scores rise ten times or more, and never fall.

    They are distances then, and the lowest is the best.

    Args:
        score_lists: the scores of each query's hits, best first.

    >>> refuse_distances([[3.0, 1.0, *range(20)]])  # they fall, too: in no order
    >>> refuse_distances([range(20)])
    Traceback (most recent call last):
    retrievers.errors.BackendError: its scores rise from the first hit to the last, ...
    """
    steps = [
        after - before for scores in score_lists for before, after in pairwise(scores)
    ]
    rises = sum(step > 0 for step in steps)
    if rises >= MIN_RISES and min(steps) >= 0:
        raise BackendError(
            "its scores rise from the first hit to the last, as distances do: give "
            "hits best first, the highest score the best; negate distances, or give "
            "no scores"
        )


def order_hits_of_packages(
    rankings_by_query: Mapping[str, Ranking],
    documents: KnownDocuments,
    depth: int,
    meter: Meter,
) -> dict[str, Ranking]:
    """Return the rankings of another package's retriever in our order, by query id.

    Their ids are matched as by `match_hit_ids`, of which up to one in five may stay
    unknown; then the rankings are cut to `depth` hits.

    Raises:
        BackendError: a query has a document twice, or as by `match_hit_ids`.

    >>> rankings = {"q": ranked(["a", "b"], [1, 2])}
    >>> documents = KnownDocuments({"a", "b"})
    >>> order_hits_of_packages(rankings, documents, 1, Meter())["q"].doc_ids
    ('b',)
    """
    for query_id, ranking in rankings_by_query.items():
        if len(set(ranking.doc_ids)) < len(ranking):
            raise BackendError(f"query {query_id!r} has a document twice")
    ordered = [
        ranked(ranking.doc_ids, ranking.scores)
        .with_passages(ranking.passages)
        .with_trace(ranking.trace)
        for ranking in rankings_by_query.values()
    ]
    first_hits = [
        replace(ranking, doc_ids=ranking.doc_ids[:depth], scores=ranking.scores[:depth])
        for ranking in match_hit_ids(ordered, documents, meter)
    ]
    return dict(zip(rankings_by_query, first_hits, strict=True))


def is_finite_number(value: object) -> bool:
    """Return whether a value is a finite number.

    A whole number may be larger than any float, and is then not finite. Columns of
    Parquet may have decimals.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max
