"""Systems beside ours: rankings that somebody saved, a function of the user's, a search endpoint."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.types import Document, Ranking, Retriever, Shares, ranked

_NOT_IN_IDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ExternalRetriever(Retriever):
    """A system with an index of its own, of whose hits only the ids are known here."""

    own_index: ClassVar[bool] = True
    _known: set[str] | None = None

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Keep only the ids, to recognise hits that are no documents of the data set."""
        made = documents.made if isinstance(documents, Shares) else {}
        if "ids" not in made:
            made["ids"] = {document.id for document in documents}
        self._known = made["ids"]

    def _recognised(self, rankings: list[Ranking], meter: Meter) -> list[Ranking]:
        """Note and count hits that are no documents, where the documents are known."""
        if self._known is not None:
            count_unknown_ids(rankings, self._known, meter)
        return rankings


def count_unknown_ids(rankings: Iterable[Ranking], known: set[str], meter: Meter) -> None:
    """Note hits that are no document of the data set, and count them: they keep their places, and are not relevant.

    Raises:
        BackendError: an id that no document can have, since it would break the files that are written; or no hit at
            all is a document, so that the ids must be of something else.
    """
    hits = Counter(doc for ranking in rankings for doc in ranking.doc_ids)
    foreign = {doc: number for doc, number in hits.items() if doc not in known}
    for doc_id in sorted(foreign):
        if not doc_id.strip() or _NOT_IN_IDS.search(doc_id):
            what = "it is blank, steers a terminal or cannot be written"
            raise BackendError(f"{doc_id[:80]!r} is among the hits, which is no id: {what}")
        meter.note("not-in-corpus", doc_id)
    if foreign and len(foreign) == len(hits):
        remedy = "its ids have to be those of the data set"
        raise BackendError(f"none of its {hits.total():,} hits is a document, such as {next(iter(hits))!r}: {remedy}")
    if foreign:
        meter.count(foreign_hits=sum(foreign.values()), hits_given=hits.total())


def accepted(answers: Mapping[str, Ranking], known: set[str], depth: int, meter: Meter) -> dict[str, Ranking]:
    """Return the rankings of another system, by query id, in our order and at most `depth` hits long.

    Args:
        answers: what it gave.
        known: those of the hits that are documents of the data set.
        depth: how many hits of a query are kept.
        meter: takes the note of every hit that is no document.

    Raises:
        BackendError: a query has a document twice, or an id is none that a document can have.

    >>> accepted({"q": ranked(["a", "b"], [1, 2])}, {"a", "b"}, 1, Meter())["q"].doc_ids
    ('b',)
    """
    for query_id, ranking in answers.items():
        if len(set(ranking.doc_ids)) < len(ranking):
            raise BackendError(f"query {query_id!r} has a document twice")
    kept = {query_id: ranked(ranking.doc_ids, ranking.scores, depth) for query_id, ranking in answers.items()}
    count_unknown_ids(kept.values(), known, meter)
    return kept
