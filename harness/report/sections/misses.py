"""The cause of each miss."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from harness.english import join_names
from harness.report.sections.quality_counts import quality_with_parts
from harness.report.view import View
from retrievers.types import Floats

WORD_PATTERN = re.compile(r"[^\W_]+")
UNSPACED_SCRIPTS = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words: pairs of letters are used as words."""


QueryMask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
GroupKind = tuple[str, str, str, QueryMask]
"""Key, title, meaning, and its queries."""


class QueryGroup(NamedTuple):
    """Queries that fail alike."""

    key: str
    title: str
    meaning: str
    query_indices: tuple[int, ...]
    """Indices of its queries in the arrays."""


def found_within(view: View, depth: int) -> dict[str, Floats]:
    """Retriever -> 1 for each query with a relevant document among its first `depth` hits, else 0."""
    return {
        name: (view.ranking_digests[name].first_relevant_rank <= depth).astype(
            np.float64
        )
        for name in view.ranked
    }


def group_queries(view: View) -> list[QueryGroup]:
    """The groups that have queries; a query may be in several."""
    near, far = (
        np.column_stack(list(found_within(view, k).values())) > 0
        for k in (view.cutoff, view.resolved.depth)
    )
    every = [
        *_by_hits(view, near, far),
        *_by_text(view, near),
        *_cut(view, near),
        *_unjudged(view),
    ]
    return [
        QueryGroup(key, title, meaning, places)
        for key, title, meaning, mask in every
        if (
            places := tuple(
                i for i in view.order if mask[i] and view.grades[view.ids[i]]
            )
        )
    ]


def no_groups_reason(view: View) -> str:
    """The reason why no query is in any group, as a sentence."""
    if not any(view.grades.values()):
        return "No query has document labels, so it is unknown which queries fail."
    who = (
        "at least two retrievers find" if view.ranked[1:] else f"{view.ranked[0]} finds"
    )
    return f"No query fails: for each, {who} a relevant document among the first {view.cutoff} hits."


def _by_hits(view: View, near: QueryMask, far: QueryMask) -> Iterator[GroupKind]:
    """The queries that no retriever finds, that none finds early enough, that one alone finds."""
    k, hits = view.cutoff, np.asarray(near.sum(axis=1))
    yield (
        "nobody",
        "Found by none",
        f"no retriever has a relevant document among its first {k} hits",
        hits == 0,
    )
    yield (
        "deep",
        f"Found only at {k + 1} to {view.resolved.depth}",
        f"no retriever has a relevant document among the first {k} hits, but one has it further down",
        (hits == 0) & far.any(axis=1),
    )
    for at, name in enumerate(view.ranked if len(view.ranked) > 1 else ()):
        meaning = f"every other retriever has nothing relevant among its first {k} hits"
        yield (
            f"only-{name}",
            f"Found by {name} alone",
            meaning,
            (hits == 1) & near[:, at],
        )


def _by_text(view: View, near: QueryMask) -> Iterator[GroupKind]:
    """Queries without a word in common with a relevant document, if a retriever missed it."""
    missed = np.asarray(near.sum(axis=1)) < len(view.ranked)
    mask = np.array(
        [bool(missed[i]) and _no_word_in_common(view, i) for i in range(view.n)]
    )
    meaning = "a retriever missed them, and they share no word with the stored text of a relevant document"
    yield "words", "No word in common", meaning, mask


def _cut(view: View, near: QueryMask) -> Iterator[GroupKind]:
    """For each retriever that truncated documents: the queries whose relevant documents it truncated and missed."""
    relevant = [frozenset(_relevant(view, i)) for i in range(view.n)]
    for at, name in enumerate(view.ranked):
        cut = frozenset(
            quality_with_parts(view.manifest, name).notes.get("truncated", ())
        )
        if cut:
            meaning = f"nothing relevant among its first {view.cutoff} hits; its model read only the start of each"
            mask = np.array([documents <= cut for documents in relevant]) & ~near[:, at]
            yield f"cut-{name}", f"Missed by {name}, truncated", meaning, mask


def _unjudged(view: View) -> Iterator[GroupKind]:
    """Queries whose first hit of the leader has no label, if labels also name irrelevant documents."""
    leader = view.evaluation.leader
    if _negatives(view):
        tops = [
            view.ranking_digests[leader].primary_hits.get(query_id, ())[:1]
            for query_id in view.ids
        ]
        mask = np.array(
            [
                bool(top) and top[0] not in view.grades[query_id]
                for top, query_id in zip(tops, view.ids, strict=True)
            ]
        )
        yield (
            "unjudged",
            f"No label on top of {leader}",
            "its first hit has no label: it counts as irrelevant",
            mask,
        )


def miss_causes(view: View) -> dict[int, dict[str, str]]:
    """Index of a query -> retriever -> why nothing relevant is among its first hits, if that can be computed."""
    k, depth = view.cutoff, view.resolved.depth
    near, far = found_within(view, k), found_within(view, depth)
    cut = {
        name: frozenset(
            quality_with_parts(view.manifest, name).notes.get("truncated", ())
        )
        for name in view.ranked
    }
    found: dict[int, dict[str, str]] = {}
    negatives = _negatives(view)  # it reads all labels
    for i in view.listed_queries:
        relevant = _relevant(view, i)
        for name in view.ranked if relevant else ():
            if near[name][i] > 0:
                continue
            parts = [
                part
                for part in view.resolved.uses(name)
                if part in near and near[part][i] > 0
            ]
            top = view.ranking_digests[name].primary_hits.get(view.ids[i], ())[:1]
            ranks = (
                view.ranking_digests[name].relevant_ranks.get(view.ids[i], {}).values()
            )
            if parts:
                why = f"lost, {join_names(parts)} had it: {f'rank {min(ranks)}' if ranks else f'not among the first {depth}'}"
            elif far[name][i] > 0:
                why = f"below the cutoff: rank {min(ranks)}"
            elif cut[name].issuperset(relevant):
                why = "the model read only the start of every relevant document"
            elif _no_word_in_common(view, i):
                why = "no word in common with a relevant document"
            elif negatives and top and top[0] not in view.grades[view.ids[i]]:
                why = "its first hit has no label"
            else:
                why = f"not among the first {depth} hits"
            found.setdefault(i, {})[name] = why
    return found


def _negatives(view: View) -> bool:
    """Whether labels also name irrelevant documents."""
    return any(
        grade <= 0 for judged in view.grades.values() for grade in judged.values()
    )


def text_words(text: str) -> set[str]:
    """The words of a text in lower case; pairs of letters if the script has no spaces.

    >>> sorted(text_words("Two cats, 休暇は"))
    ['cats', 'two', '休暇', '暇は']
    """
    out: set[str] = set()
    for word in WORD_PATTERN.findall(text.casefold()):
        out |= (
            {word[at : at + 2] for at in range(max(1, len(word) - 1))}
            if UNSPACED_SCRIPTS.search(word)
            else {word}
        )
    return out


def _relevant(view: View, place: int) -> list[str]:
    return [doc for doc, grade in view.grades[view.ids[place]].items() if grade > 0]


def _no_word_in_common(view: View, place: int) -> bool:
    documents = [view.results.documents.get(doc) for doc in _relevant(view, place)]
    asked = text_words(view.query(place).query.text)
    return bool(documents) and all(
        document is not None
        and not asked & text_words(f"{document.title} {document.text}")
        for document in documents
    )
