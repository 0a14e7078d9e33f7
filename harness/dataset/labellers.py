"""The same queries labelled by several people, as ordered lists: merged by one rule, and each list kept.

A model's list is merged with no person's: where people listed a query, theirs count alone.
A document's place is the sum of its places in the lists, a list that does not name it counting one place beyond the
tenth, or beyond the longest list; ties go by the better single place, then by id. At most ten are kept, or as many as
the longest list has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from harness.dataset.model import Labels
from harness.dataset.source import Place

MOST = 10
Labelled = tuple[Place, str, Labels]


def merged(rows: Iterable[Labelled]) -> Iterator[Labelled]:
    """Bring the lists of several labellers of one query together; what one labeller labelled alone stays as it is."""
    by_query: dict[str, list[Labelled]] = {}
    for row in rows:
        by_query.setdefault(row[1], []).append(row)
    for query, given in by_query.items():
        labelled = [row for row in given if not row[2].source] or given
        lists = {labels.by: labels.ranked for _, _, labels in labelled if labels.by and labels.ranked is not None}
        if len(lists) == len(labelled) > 1:
            yield labelled[0][0], query, replace(merge_lists(lists), source=labelled[0][2].source)
        else:
            yield from labelled


def merge_lists(lists: Mapping[str, tuple[str, ...]]) -> Labels:
    """Merge the lists of several labellers.

    >>> merge_lists({"ann": ("x", "y"), "ben": ("y", "z")}).ranked
    ('y', 'x', 'z')
    """
    most = max(MOST, *(len(ranked) for ranked in lists.values()))
    places: dict[str, list[int]] = {}
    for ranked in lists.values():
        for document in ranked:
            places.setdefault(document, [])
    for document, numbers in places.items():
        numbers += [ranked.index(document) + 1 if document in ranked else most + 1 for ranked in lists.values()]
    order = sorted(places, key=lambda document: (sum(places[document]), min(places[document]), document))
    given = {
        judge: {document: len(ranked) - place for place, document in enumerate(ranked)}
        for judge, ranked in sorted(lists.items())
    }
    return Labels(ranked=tuple(order[:most]), by=", ".join(sorted(lists)), given=given)
