"""From judgments to labels, by one stated rule, and over those of files; people and models are never averaged.

1. Of each judge the first round counts; further rounds only measure the judge.
2. For a pair that several people judged: the median of their grades, the lower of two middle ones. Where their grades
   lie two or more apart, the pair is listed for adjudication; an adjudicated grade goes before all others.
3. Several models: the same among themselves.
4. A query belongs to people where a person answered every document that was asked of it: then people's grades alone are
   its labels. It belongs to the model where no person judged. Where people began and did not finish it is mixed: a
   person's grade goes before a model's, document by document.
5. Grades of pairs that were chosen because they could change a result are kept apart, and no score is made of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median_low
from typing import NamedTuple

from harness.dataset.dataset_model import DatasetReference, Labels, LabelSource
from harness.dataset.judgments import NAME, Judgment, PairKey, read_file, settle, text_digest
from harness.dataset.source import Findings, Source
from retrievers.types import Query

SPREAD = 2
"""People's grades that lie so far apart are a matter to talk about."""


class Dispute(NamedTuple):
    """A pair on which people differ by two grades or more, not yet adjudicated."""

    query_id: str
    document_id: str
    grades: tuple[tuple[str, int], ...]
    """Who gave what."""


def merge(judgments: Sequence[Judgment]) -> dict[str, Labels]:
    """Merge judgments into the labels of each query that was judged, in the order of their first judgments."""
    by_query: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        by_query.setdefault(judgment.query_id, []).append(judgment)
    return {query: _merged(given) for query, given in by_query.items()}


def disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs whose people's grades lie two or more apart, and which nobody has adjudicated."""
    adjudicated = {one.key for one in judgments if one.design == "adjudication" and one.grade is not None}
    open_disputes = []
    for key, given in _by_pair(one for one in judgments if one.kind == "human" and one.design == "sample").items():
        grades = [one.grade for one in given if one.grade is not None]
        if key not in adjudicated and grades and max(grades) - min(grades) >= SPREAD:
            open_disputes.append(Dispute(*key, tuple((one.judge, one.grade) for one in given if one.grade is not None)))
    return open_disputes


def apart(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people and a model lie two grades or more apart, the farthest first.

    Documents that bring a model to a grade stand out here. People's own disputes, which `disputes` lists, are left to
    them: their median counts.
    """
    found: list[tuple[int, Dispute]] = []
    for key, given in _by_pair(one for one in judgments if one.design != "next").items():
        people, model = (_grades([one for one in given if one.kind == kind]).get(key[1]) for kind in ("human", "llm"))
        if people is not None and model is not None and abs(people - model) >= SPREAD:
            grades = tuple((one.judge, one.grade) for one in given if one.grade is not None)
            found.append((abs(people - model), Dispute(*key, grades)))
    return [dispute for _, dispute in sorted(found, key=lambda one: -one[0])]


def _merged(given: list[Judgment]) -> Labels:
    chosen = [one for one in given if one.design == "next"]
    sampled = [one for one in given if one.design != "next"]
    people = [one for one in sampled if one.kind == "human"]
    human, model = _grades(people), _grades([one for one in sampled if one.kind == "llm"])
    source: LabelSource
    grades: dict[str, int] | None
    if not sampled:
        source, grades = "", None
    elif not people:
        source, grades = "model", model
    elif _finished(people):
        source, grades = "people", human
    else:
        source, grades = "mixed", {**model, **human}
    probabilities, populations = ({getattr(one, name) for one in people} for name in ("inclusion", "population"))
    return Labels(
        grades=grades,
        by=", ".join(sorted({one.judge for one in given})),
        source=source,
        model=model if source != "model" else {},
        chosen=_grades([one for one in chosen if one.kind == "human"]) or _grades(chosen),
        given=_each(people),
        inclusion=min(probabilities) if probabilities else 1.0,
        population=populations.pop() if len(populations) == 1 else 0,
    )


def _grades(judgments: list[Judgment]) -> dict[str, int]:
    """One grade for each document that got any."""
    grades_by_document = {}
    for (_, document), given in _by_pair(judgments).items():
        final = [one for one in given if one.design == "adjudication" and one.grade is not None] or given
        grades = [one.grade for one in final if one.grade is not None]
        if grades:
            grades_by_document[document] = median_low(grades)
    return grades_by_document


def _each(people: list[Judgment]) -> dict[str, dict[str, int]]:
    """What each of several people gave; nothing where there is one."""
    given: dict[str, dict[str, int]] = {}
    for one in people:
        if one.round == 1 and one.design == "sample" and one.grade is not None:
            given.setdefault(one.judge, {})[one.document_id] = one.grade
    return dict(sorted(given.items())) if len(given) > 1 else {}


def _by_pair(judgments: Iterable[Judgment]) -> dict[PairKey, list[Judgment]]:
    pairs: dict[PairKey, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.round == 1:
            pairs.setdefault(judgment.key, []).append(judgment)
    return pairs


def _finished(people: list[Judgment]) -> bool:
    """Whether people answered all that their pools asked of this query, also where the answer was no grade."""
    asked: dict[str, int] = {}
    answered: dict[str, set[str]] = {}
    for one in people:
        asked[one.pool] = max(asked.get(one.pool, 0), one.asked)
        answered.setdefault(one.pool, set()).add(one.document_id)
    return all(len(answered[pool]) >= number for pool, number in asked.items())


def read_overlay(reference: DatasetReference, seen: Findings) -> list[Judgment] | None:
    """Read the `judgments.jsonl` that lies over the labels of a folder; None where there is none."""
    if reference.scheme or not reference.folder.is_dir() or not (reference.folder / NAME).is_file():
        return None
    return settle(list(read_file(reference.folder / NAME, seen)), seen)


def overlay(
    labels: Mapping[str, Labels],
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    documents: Collection[str],
    seen: Findings,
) -> dict[str, Labels]:
    """The labels of the files, with those of the judgments in the place of them where a query was judged.

    Judgments of queries that are not asked here are counted: several files of queries may share a folder.
    """
    known: list[Judgment] = []
    for one in judgments:
        if one.query_id not in queries:
            seen.note("judged-elsewhere", one.query_id)
        elif one.document_id not in documents:
            what = f"judges document {one.document_id!r} for query {one.query_id!r}, which does not exist"
            seen.wrong(NAME, what, "restore the document, or remove the line")
        else:
            known.append(one)
    merged = merge(known)
    kept = dict(labels)
    for query, given in merged.items():
        if given.grades is None and query in labels:
            kept[query] = replace(labels[query], chosen=given.chosen)
            continue
        if query in labels:
            seen.note("replaced-labels", query)
        kept[query] = given
    return {query: kept[query] for query in queries if query in kept}


def note_changes(source: Source, judgments: list[Judgment], queries: Mapping[str, Query], seen: Findings) -> None:
    """Count the pairs whose question or document is not what was judged: a pass over the corpus."""
    judged: dict[str, dict[str, str]] = {}
    for one in judgments:
        if one.query_id in queries:
            judged.setdefault(one.document_id, {})[one.query_id] = one.text
    if not judged:
        return
    for _, document in source.documents(Findings()):
        for query, digest in judged.get(document.id, {}).items():
            if text_digest(queries[query].text, document) != digest:
                seen.note("changed-text", f"{query} {document.id}")
