"""Ranked lists of several labellers.

If several people labelled the same query, as ordered lists, their lists are merged by
one rule, and each list is kept as grades of its labeller. Lists of a model count only
if no person labelled the query. A document's rank is the sum of its ranks; a list
without it counts as one rank after the tenth, or after the longest list. Ten documents
stay, or as many as the longest list has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from harness.dataset.labels import Labels
from harness.dataset.source import PlacedLabels

MAX_MERGED_DOCUMENTS = 10
"""Documents, at most, of merged lists; more if the longest list has more."""


def merge_labellers(placed_labels: Iterable[PlacedLabels]) -> Iterator[PlacedLabels]:
    """Merge the lists of several labellers of one query.

    Labels of one labeller stay as they are.
    """
    by_query: dict[str, list[PlacedLabels]] = {}
    for placed in placed_labels:
        by_query.setdefault(placed.query_id, []).append(placed)
    for query_id, candidates in by_query.items():
        by_people = [placed for placed in candidates if not placed.labels.source]
        labelled = by_people or candidates
        ranked_lists = _lists_by_labeller(labelled)
        if len(ranked_lists) != len(labelled) or len(labelled) == 1:
            # Several that cannot be merged are a problem: their query occurs twice.
            yield from labelled
            continue
        source = labelled[0].labels.source
        merged = replace(merge_lists(ranked_lists), source=source)
        yield PlacedLabels(labelled[0].location, query_id, merged)


def _lists_by_labeller(labelled: Sequence[PlacedLabels]) -> dict[str, tuple[str, ...]]:
    """Return the ranked lists whose labeller is known."""
    ranked_lists: dict[str, tuple[str, ...]] = {}
    for placed in labelled:
        labels = placed.labels
        if labels.labelled_by and labels.ranked is not None:
            ranked_lists[labels.labelled_by] = labels.ranked
    return ranked_lists


def merge_lists(ranked_lists: Mapping[str, tuple[str, ...]]) -> Labels:
    """Merge the ranked lists of several labellers, of whom there is at least one.

    A document that a list has twice counts at its better rank. Ties are ordered by the
    better single rank, then by id. In the grades of a labeller, the last document of
    the list has 1, the one before it 2, and so on.

    >>> merge_lists({"ann": ("x", "y"), "ben": ("y", "z")}).ranked
    ('y', 'x', 'z')

    Ranks 5 and 6 are better than ranks 1 and 11:

    >>> merge_lists({"ann": ("x", *"abcy"), "ben": (*"pqrst", "y")}).ranked[0]
    'y'
    """
    lengths = [len(ranked) for ranked in ranked_lists.values()]
    length = max(MAX_MERGED_DOCUMENTS, *lengths)
    ranks: dict[str, list[int]] = {}
    for document in chain.from_iterable(ranked_lists.values()):
        ranks[document] = [
            _rank_of(document, ranked, absent_rank=length + 1)
            for ranked in ranked_lists.values()
        ]
    order = sorted(
        ranks,
        key=lambda document: (sum(ranks[document]), min(ranks[document]), document),
    )
    grades_by_labeller: dict[str, dict[str, int]] = {}
    for labeller, ranked in sorted(ranked_lists.items()):
        grades = grades_by_labeller.setdefault(labeller, {})
        for rank, document in enumerate(ranked):
            grades.setdefault(document, len(ranked) - rank)
    return Labels(
        ranked=tuple(order[:length]),
        labelled_by=", ".join(sorted(ranked_lists)),
        grades_by_labeller=grades_by_labeller,
    )


def _rank_of(document: str, ranked: tuple[str, ...], absent_rank: int) -> int:
    return ranked.index(document) + 1 if document in ranked else absent_rank
