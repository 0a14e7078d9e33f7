"""Systems beside ours: rankings that somebody saved, a function of the user's, a search endpoint."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from retrievers import is_built_in
from retrievers.errors import BackendError, HarnessError
from retrievers.meter import Meter
from retrievers.types import Ranking, ranked

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def count_unknown_ids(rankings: Iterable[Ranking], known: set[str], meter: Meter) -> None:
    """Note hits that are no document of the data set, and count them: they keep their places, and are not relevant.

    Raises:
        BackendError: an id that no document can have, since it would break the files that are written; or no hit at
            all is a document, so that the ids must be of something else.
    """
    hits = Counter(doc for ranking in rankings for doc in ranking.doc_ids)
    foreign = {doc: number for doc, number in hits.items() if doc not in known}
    for doc_id in sorted(foreign):
        if not doc_id.strip() or _CONTROL.search(doc_id):
            raise BackendError(f"{doc_id[:80]!r} is among the hits, which is no id: it is blank or steers a terminal")
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


@contextmanager
def faults_of(parts: Iterable[object]) -> Iterator[None]:
    """Turn what a part of another package raises into one message; a fault of our own code stays as it is.

    Raises:
        BackendError: names the part, and where in its code it failed.
    """
    try:
        yield
    except HarnessError:
        raise
    except Exception as failure:
        foreign = [type(part).__name__ for part in parts if part is not None and not is_built_in(type(part))]
        if not foreign:
            raise
        at = traceback.extract_tb(failure.__traceback__)[-1]
        message = " ".join(str(failure).split())[:300]
        place = f"{Path(at.filename).name}:{at.lineno}"
        raise BackendError(f"{' or '.join(foreign)}: {type(failure).__name__}: {message} ({place})") from failure
