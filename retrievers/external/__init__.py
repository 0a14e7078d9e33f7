"""Systems beside ours: rankings that somebody saved, a function of the user's, a search endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable

from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.types import Ranking

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def note_strangers(rankings: Iterable[Ranking], known: set[str], meter: Meter) -> None:
    """Note hits that are no document of the data set: they keep their places, and count as not relevant.

    Raises:
        BackendError: an id that no document can have, since it would break the files that are written.
    """
    for doc_id in sorted({doc for ranking in rankings for doc in ranking.doc_ids} - known):
        if not doc_id.strip() or _CONTROL.search(doc_id):
            raise BackendError(f"{doc_id[:80]!r} is among the hits, which is no id: it is blank or steers a terminal")
        meter.note("not-in-corpus", doc_id)
