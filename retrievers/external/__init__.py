"""Systems beside ours: rankings that somebody saved, a function of the user's, a search endpoint."""

from __future__ import annotations

from collections.abc import Iterable

from retrievers.meter import Meter
from retrievers.types import Ranking


def note_strangers(rankings: Iterable[Ranking], known: set[str], meter: Meter) -> None:
    """Note hits that are no document of the data set: they keep their places, and count as not relevant."""
    for doc_id in sorted({doc for ranking in rankings for doc in ranking.doc_ids} - known):
        meter.note("not-in-corpus", doc_id)
