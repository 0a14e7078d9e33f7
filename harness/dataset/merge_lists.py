"""Ranked lists of several labellers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from harness.dataset.labels import Labels
from harness.dataset.source import PlacedLabels

MAX_MERGED_DOCUMENTS = 10
"""So many documents of merged lists are kept, or as many as the longest list has."""


def merge_labellers(rows: Iterable[PlacedLabels]) -> Iterator[PlacedLabels]:
    """Bring the lists of several labellers of one query together; what one labeller labelled alone stays as it is."""
    by_query: dict[str, list[PlacedLabels]] = {}
    for row in rows:
        by_query.setdefault(row[1], []).append(row)
    for query, given in by_query.items():
        labelled = [row for row in given if not row[2].source] or given
        lists = {
            labels.labelled_by: labels.ranked
            for _, _, labels in labelled
            if labels.labelled_by and labels.ranked is not None
        }
        if len(lists) == len(labelled) > 1:
            yield (
                labelled[0][0],
                query,
                replace(merge_lists(lists), source=labelled[0][2].source),
            )
        else:
            yield from labelled


def merge_lists(lists: Mapping[str, tuple[str, ...]]) -> Labels:
    """Merge the lists of several labellers.

    >>> merge_lists({"ann": ("x", "y"), "ben": ("y", "z")}).ranked
    ('y', 'x', 'z')
    >>> merge_lists({"ann": ("x", *"abcy"), "ben": (*"pqrst", "y")}).ranked[0]  # ranks 5 and 6; "x" has 1 and 11
    'y'
    """
    most = max(MAX_MERGED_DOCUMENTS, *(len(ranked) for ranked in lists.values()))
    places = {
        document: [
            ranked.index(document) + 1 if document in ranked else most + 1
            for ranked in lists.values()
        ]
        for document in chain.from_iterable(lists.values())
    }
    order = sorted(
        places,
        key=lambda document: (sum(places[document]), min(places[document]), document),
    )
    given = {
        judge: {document: len(ranked) - place for place, document in enumerate(ranked)}
        for judge, ranked in sorted(lists.items())
    }
    return Labels(
        ranked=tuple(order[:most]),
        labelled_by=", ".join(sorted(lists)),
        grades_by_labeller=given,
    )
