"""Parts of the queries: the leader against the others within each; groups of failures, and a cause for each miss."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.english import join
from harness.evaluation.csv_views import slices_of
from harness.evaluation.verdict import Finding
from harness.report import text
from harness.report.charts import Figure, ForestRow, Section, paired_forest
from harness.report.view import View, inherited
from harness.stats.differences import SLACK, differences
from harness.stats.intervals import mean, student
from retrievers.types import Floats

FEWEST = 10
"""Fewest queries of a slice, here and in the tests."""
DRAWN = 3
"""Pairs with a panel; the tables have every pair with the leader."""
ALL = "all queries"
BY_LENGTH, LENGTHS = "query length", ("short", "medium", "long")
"""The family of slices by query length, and the start of their names."""
ONE_LENGTH = re.compile(r"\b(\d+) to \1\b")
"""A range of one length."""
UNIT = " characters)"
"""The unit of lengths: the table shows it; a chart has no room for it."""


class Slice(NamedTuple):
    """One retriever against another within one part of the queries."""

    family: str
    """The field that divides the queries; "" for all queries."""
    slice: str
    queries: int
    weight: float
    """The sum of the query weights; their number if all weights are equal."""
    wins: int
    """Queries on which the first scores higher."""
    ties: int
    losses: int
    difference: float
    """Mean of the first minus mean of the second."""
    low: float | None
    """Both ends are None if no interval can be estimated."""
    high: float | None
    p_adjusted: float | None = None
    """Of the deciding test, within the family of slices; None if the pair was not tested."""
    finding: Finding | None = None
    """The finding about the first, by the rule of every verdict; None if nothing was tested."""
    p_wilcoxon: float | None = None
    """Of the exact signed-rank test, adjusted in the same way."""


class SlicePair(NamedTuple):
    """The leader against another, slice by slice."""

    a: str
    b: str
    rows: tuple[Slice, ...]
    """All queries first."""


def section(view: View) -> Section | None:
    """The leader against the others in every part of the queries; None without parts or others."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds:
        return None
    pairs = [
        pair_of(view, view.evaluation.leader, other, kinds) for other in compared(view)
    ]
    drawn = _forest(view, pairs[:DRAWN])
    turned = [sentence for pair in pairs for sentence in turns(view, pair)]
    context = {
        "pairs": pairs,
        "drawn": drawn,
        "left": len(pairs) - DRAWN,
        "turned": turned,
        "called": called,
    }
    return Section("slices", "Slices", context, (drawn,))


def labels_of(view: View) -> dict[str, list[str]]:
    """Family -> each query's slice, for the families with at least two slices of ten queries."""
    kinds = slices_of(
        [view.query(place).query for place in range(view.n)], view.settings.cluster
    )
    return {
        family: labels
        for family, labels in kinds.items()
        if len(_large(family, labels)) > 1
    }


def compared(view: View) -> list[str]:
    """The retrievers compared with the leader: the runner-up, the baseline, then the others by mean."""
    others = list(view.ranked[1:])
    second = [name for name in (view.baseline,) if name in others[1:]]
    return [*others[:1], *second, *(name for name in others[1:] if name not in second)]


def pair_of(
    view: View, a: str, b: str, kinds: Mapping[str, Sequence[str]]
) -> SlicePair:
    """One pair over all queries and within every slice."""
    tested = _tests(view, a, b)
    rows = [slice_of(view, (a, b), list(range(view.n)), ("", ALL))]
    for family, labels in kinds.items():
        for kind in _large(family, labels):
            places = [place for place, label in enumerate(labels) if label == kind]
            rows.append(
                slice_of(view, (a, b), places, (family, kind))._replace(
                    **tested.get((family, kind), {})
                )
            )
    return SlicePair(a, b, tuple(rows))


def turns(view: View, pair: SlicePair) -> Iterator[str]:
    """The slices with a significant difference opposite to that of all queries."""
    whole, name = pair.rows[0], view.names[view.primary].short
    for row in pair.rows[1:]:
        if row.finding is None or row.difference * whole.difference >= 0:
            continue
        high = pair.a if row.difference > 0 else pair.b
        where, gap = (
            f"On the {row.queries:,} queries of {called(row)}, {high}",
            f"{abs(row.difference):.3f}",
        )
        if row.finding.verdict.separates:
            p = text.p_value(row.p_adjusted)
            yield f"{where} is ahead by {gap} in {name}, opposite to all queries (adjusted p {p})."


def carried(view: View, pair: SlicePair) -> Slice | None:
    """The smallest slice, of at most half the weight, without which the leader would not be ahead."""
    whole = pair.rows[0]
    total, least = whole.difference * whole.weight, SLACK * whole.weight
    small = (row for row in pair.rows[1:] if 2 * row.weight <= whole.weight)
    carriers = [
        row for row in small if total > least >= total - row.difference * row.weight
    ]
    return min(carriers, key=lambda row: row.weight, default=None)


def called(row: Slice) -> str:
    """The name of a slice in a sentence.

    >>> called(Slice("field tags", "typo", 20, 20.0, 1, 18, 1, 0.0, None, None, None))
    'tags: typo'
    """
    return label_of(row.family, row.slice) if row.family else row.slice


def label_of(family: str, kind: str) -> str:
    """The name of a slice with its family.

    >>> label_of("field tags", "typo"), label_of("query length", "medium (20 to 20)")
    ('tags: typo', 'query length: medium (20 characters)')
    """
    if family == BY_LENGTH:
        kind = ONE_LENGTH.sub(r"\1", kind).replace(")", UNIT)
    kind = text.shortened(kind, 4_000)
    ends = (
        kind if len(kind) <= 60 else f"{kind[:30].rstrip()}…{kind[-29:]}"
    )  # long ones often differ only at the end
    return f"{text.shortened(divided(family), 40)}: {ends}"


def divided(family: str) -> str:
    """The field of a family of slices.

    >>> divided("field tags"), divided("query length")
    ('tags', 'query length')
    """
    return family.removeprefix("field ")


def kinds_of(family: str, labels: Sequence[str]) -> list[str]:
    """The slices of a family: lengths from short to long, others in the order of their first query.

    >>> kinds_of("query length", ["long (3 or more)", "", "short (up to 1)"])
    ['short (up to 1)', 'long (3 or more)']
    """
    kinds = [kind for kind in dict.fromkeys(labels) if kind]
    return (
        sorted(kinds, key=lambda kind: LENGTHS.index(kind.split()[0]))
        if family == BY_LENGTH
        else kinds
    )


def _large(family: str, labels: Sequence[str]) -> list[str]:
    """The slices with enough queries."""
    return [
        kind for kind in kinds_of(family, labels) if list(labels).count(kind) >= FEWEST
    ]


def slice_of(
    view: View, pair: tuple[str, str], places: list[int], name: tuple[str, str]
) -> Slice:
    """One pair within some of the queries.

    Args:
        view: with the scores.
        pair: of retrievers.
        places: indices of the queries, in any order.
        name: the family, and the slice.
    """
    kept = np.zeros(view.n, dtype=np.bool_)
    kept[places] = True
    a, b = (
        view.scores[view.primary][one][kept] for one in pair
    )  # in the order of their weights
    units, pairs = view.table.only(kept).units, differences(a, b)
    ends = student(
        pairs.values, view.settings.level, bounds=view.table.gap_range, units=units
    )[:2]
    record = (pairs.wins, len(a) - pairs.wins - pairs.losses, pairs.losses)
    return Slice(
        *name,
        len(a),
        float(units.totals.sum()),
        *record,
        mean(pairs.values, units.weights),
        *ends,
    )


def _tests(view: View, a: str, b: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The tests of a pair, in either order: (family, slice) -> result."""
    slices = {}
    for row in view.evaluation.tests:
        if {row.a, row.b} == {a, b} and row.note:
            turned = (
                row.finding
                if row.finding is None or row.a == a
                else row.finding.swapped
            )
            tested = {
                "p_adjusted": row.p_adjusted,
                "finding": turned,
                "p_wilcoxon": row.p_wilcoxon_adjusted,
            }
            slices[row.family, row.note] = tested
    return slices


def _forest(view: View, pairs: Sequence[SlicePair]) -> Figure:
    """One panel per pair, on one axis."""
    name, leader = view.names[view.primary].short, pairs[0].a
    panels = {
        f"ahead of {text.shortened(pair.b, 30)}" if len(pairs) > 1 else "": [
            ForestRow(
                f"{text.shortened(called(row).replace(UNIT, ')'), 48)} ({row.queries:,})",
                called(row),
                row.difference,
                row.low,
                row.high,
                row.queries,
                f"{row.wins} / {row.ties} / {row.losses}",
            )
            for row in pair.rows
        ]
        for pair in pairs
    }
    means = "; ".join(
        f"{pair.b}: {', '.join(f'{called(row)} {text.signed(row.difference)}' for row in pair.rows)}"
        for pair in pairs
    )
    words = (
        "slices",
        f"{leader} − {', '.join(pair.b for pair in pairs)} in {name}, by slice, with "
        f"{100 * view.settings.level:g} % intervals",
        f"Mean difference of each slice, right of zero {leader} is better. {means}.",
        f"{name}: right of 0 {leader} is better",
    )
    return paired_forest(words, panels, view.settings.margin)


WORD = re.compile(r"[^\W_]+")
UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words: pairs of letters are used as words."""


Members = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
GroupKind = tuple[str, str, str, Members]
"""Key, title, meaning, and its queries."""


class Group(NamedTuple):
    """Queries that fail alike."""

    key: str
    title: str
    meaning: str
    places: tuple[int, ...]
    """Indices of its queries in the arrays."""


def hits_within(view: View, depth: int) -> dict[str, Floats]:
    """Retriever -> 1 for each query with a relevant document among its first `depth` hits, else 0."""
    return {
        name: (view.answers[name].first <= depth).astype(np.float64)
        for name in view.ranked
    }


def groups(view: View) -> list[Group]:
    """The groups that have queries; a query may be in several."""
    near, far = (
        np.column_stack(list(hits_within(view, k).values())) > 0
        for k in (view.cutoff, view.resolved.depth)
    )
    every = [
        *_by_hits(view, near, far),
        *_by_text(view, near),
        *_cut(view, near),
        *_unjudged(view),
    ]
    return [
        Group(key, title, meaning, places)
        for key, title, meaning, mask in every
        if (
            places := tuple(
                i for i in view.order if mask[i] and view.grades[view.ids[i]]
            )
        )
    ]


def without_groups(view: View) -> str:
    """The reason why no query is in any group, as a sentence."""
    if not any(view.grades.values()):
        return "No query has document labels, so it is unknown which queries fail."
    who = (
        "at least two retrievers find" if view.ranked[1:] else f"{view.ranked[0]} finds"
    )
    return f"No query fails: for each, {who} a relevant document among the first {view.cutoff} hits."


def _by_hits(view: View, near: Members, far: Members) -> Iterator[GroupKind]:
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


def _by_text(view: View, near: Members) -> Iterator[GroupKind]:
    """Queries without a word in common with a relevant document, if a retriever missed it."""
    missed = np.asarray(near.sum(axis=1)) < len(view.ranked)
    mask = np.array(
        [bool(missed[i]) and _no_word_in_common(view, i) for i in range(view.n)]
    )
    meaning = "a retriever missed them, and they share no word with the stored text of a relevant document"
    yield "words", "No word in common", meaning, mask


def _cut(view: View, near: Members) -> Iterator[GroupKind]:
    """For each retriever that truncated documents: the queries whose relevant documents it truncated and missed."""
    relevant = [frozenset(_relevant(view, i)) for i in range(view.n)]
    for at, name in enumerate(view.ranked):
        cut = frozenset(inherited(view.manifest, name).notes.get("truncated", ()))
        if cut:
            meaning = f"nothing relevant among its first {view.cutoff} hits; its model read only the start of each"
            mask = np.array([documents <= cut for documents in relevant]) & ~near[:, at]
            yield f"cut-{name}", f"Missed by {name}, truncated", meaning, mask


def _unjudged(view: View) -> Iterator[GroupKind]:
    """Queries whose first hit of the leader has no label, if labels also name irrelevant documents."""
    leader = view.evaluation.leader
    if _negatives(view):
        tops = [
            view.answers[leader].heads.get(query_id, ())[:1] for query_id in view.ids
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


def causes(view: View) -> dict[int, dict[str, str]]:
    """Index of a query -> retriever -> why nothing relevant is among its first hits, if that can be computed."""
    k, depth = view.cutoff, view.resolved.depth
    near, far = hits_within(view, k), hits_within(view, depth)
    cut = {
        name: frozenset(inherited(view.manifest, name).notes.get("truncated", ()))
        for name in view.ranked
    }
    found: dict[int, dict[str, str]] = {}
    negatives = _negatives(view)  # it reads all labels
    for i in view.shown:
        relevant = _relevant(view, i)
        for name in view.ranked if relevant else ():
            if near[name][i] > 0:
                continue
            parts = [
                part
                for part in view.resolved.made_of(name)
                if part in near and near[part][i] > 0
            ]
            top = view.answers[name].heads.get(view.ids[i], ())[:1]
            ranks = view.answers[name].places.get(view.ids[i], {}).values()
            if parts:
                why = f"lost, {join(parts)} had it: {f'rank {min(ranks)}' if ranks else f'not among the first {depth}'}"
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


def words(text: str) -> set[str]:
    """The words of a text in lower case; pairs of letters if the script has no spaces.

    >>> sorted(words("Two cats, 休暇は"))
    ['cats', 'two', '休暇', '暇は']
    """
    out: set[str] = set()
    for word in WORD.findall(text.casefold()):
        out |= (
            {word[at : at + 2] for at in range(max(1, len(word) - 1))}
            if UNSPACED.search(word)
            else {word}
        )
    return out


def _relevant(view: View, place: int) -> list[str]:
    return [doc for doc, grade in view.grades[view.ids[place]].items() if grade > 0]


def _no_word_in_common(view: View, place: int) -> bool:
    documents = [view.results.documents.get(doc) for doc in _relevant(view, place)]
    asked = words(view.query(place).query.text)
    return bool(documents) and all(
        document is not None and not asked & words(f"{document.title} {document.text}")
        for document in documents
    )


PLACES = {20: section}
