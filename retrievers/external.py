"""Systems with an index of their own."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Literal

from retrievers.document import Document
from retrievers.errors import BackendError
from retrievers.ids import CONTROL_CHARACTERS, KnownDocuments
from retrievers.meter import Meter
from retrievers.options.tables import Configured
from retrievers.ranking import Ranking, merge_duplicates, ranked
from retrievers.resources import Corpus
from retrievers.retriever import Retriever

UnknownHitsPolicy = Literal["", "irrelevant"]
MAX_UNKNOWN_SHARE = 0.2
"""Share of the hits that may be no document of the data set."""
MIN_RISES = 10
"""Of scores that are given best first, from which on they are not chance."""


class ExternalRetriever(Configured, Retriever):
    """A retriever with an index of its own: its hits are only ids, matched with the documents by `KnownDocuments`."""

    own_index: ClassVar[bool] = True
    unknown_hits: UnknownHitsPolicy = ""
    """"irrelevant" if its index holds more documents than the data set."""
    _known: KnownDocuments | None = None

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Keep only ids and titles, to recognise the documents among the hits."""
        self._known = known_documents(documents)

    def _recognised(self, rankings: list[Ranking], meter: Meter) -> list[Ranking]:
        """The rankings under the ids of the documents, if these are known."""
        if self._known is None:
            return rankings
        return match_hit_ids(
            rankings, self._known, meter, irrelevant=bool(self.unknown_hits)
        )


def known_documents(documents: Iterable[Document]) -> KnownDocuments:
    """The ids and titles of a corpus, made once for all retrievers of a run."""
    made = documents.shared_indexes if isinstance(documents, Corpus) else {}
    if "known" not in made:
        made["known"] = KnownDocuments()
        for document in documents:
            made["known"].add(document.id, document.title)
    found: KnownDocuments = made["known"]
    return found


def match_hit_ids(
    rankings: Sequence[Ranking],
    known: KnownDocuments,
    meter: Meter,
    *,
    irrelevant: bool = False,
) -> list[Ranking]:
    """Return rankings with the ids of the documents, matched where they are written otherwise; the rest is counted.

    Args:
        rankings: what a retriever answered.
        known: the documents.
        meter: takes the notes: hits that were matched, and hits that are unknown. These keep their places.
        irrelevant: whether any number of them may be unknown.

    Raises:
        BackendError: more than one hit in five is unknown; or an id is none that a document can have.
    """
    if known.ids.issuperset(set().union(*(ranking.doc_ids for ranking in rankings))):
        return list(rankings)
    hits = Counter(doc for ranking in rankings for doc in ranking.doc_ids)
    matches = known.match(hits)
    unknown = {doc: number for doc, number in hits.items() if doc not in matches}
    for doc_id in sorted(unknown):
        if not doc_id.strip() or CONTROL_CHARACTERS.search(doc_id):
            what = "it is blank, or holds a control character"
            raise BackendError(
                f"{doc_id[:80]!r} is among the hits, which is not an id: {what}"
            )
        meter.note("not-in-corpus", doc_id)
    lost = sum(unknown.values())
    if lost > MAX_UNKNOWN_SHARE * hits.total() and not irrelevant:
        theirs, ours = next(iter(unknown)), min(known.ids, default="nothing")
        remedy = 'give the same ids on both sides, or, if its index holds more documents, unknown_hits = "irrelevant"'
        raise BackendError(
            f"{lost:,} of {hits.total():,} hits have unknown ids, such as {theirs!r}; "
            f"ids of documents look like {ours!r}: {remedy}"
        )
    if lost:
        meter.count(foreign_hits=lost, hits_given=hits.total())
    renamed = {
        doc: match.document for doc, match in matches.items() if match.document != doc
    }
    if not renamed:
        return list(rankings)
    for doc, document in renamed.items():
        meter.note("matched-hit", f"{doc} -> {document} (by {matches[doc].matched_by})")
    return [
        one
        if renamed.keys().isdisjoint(one.doc_ids)
        else merge_duplicates(one, renamed)
        for one in rankings
    ]


def refuse_distances(answers: Iterable[Sequence[float]]) -> None:
    """Raise BackendError where scores of hits, best first, rise ten times and never fall: they would be reversed.

    >>> refuse_distances([[3.0, 1.0, *range(20)]])  # scores of hits in no order
    """
    steps = [later - first for scores in answers for first, later in pairwise(scores)]
    if sum(step > 0 for step in steps) >= MIN_RISES and min(steps) >= 0:
        what = "its scores rise from the first hit to the last, as distances do"
        raise BackendError(
            f"{what}: give hits best first, the highest score the best; of distances, none or negated"
        )


def order_foreign_hits(
    answers: Mapping[str, Ranking], known: KnownDocuments, depth: int, meter: Meter
) -> dict[str, Ranking]:
    """Return the rankings of another package's retriever, by query id, in our order and at most `depth` hits long.

    Raises:
        BackendError: a query has a document twice, or as `recognised` does.

    >>> order_foreign_hits({"q": ranked(["a", "b"], [1, 2])}, KnownDocuments({"a", "b"}), 1, Meter())["q"].doc_ids
    ('b',)
    """
    for query_id, ranking in answers.items():
        if len(set(ranking.doc_ids)) < len(ranking):
            raise BackendError(f"query {query_id!r} has a document twice")
    kept = [
        ranked(ranking.doc_ids, ranking.scores, depth) for ranking in answers.values()
    ]
    return dict(zip(answers, match_hit_ids(kept, known, meter), strict=True))


def is_finite_number(value: object) -> bool:
    """Whether a value is a finite number; a whole number may be larger than any float."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )
