"""Judgments to labels."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median_low

from harness.dataset.judgment import (
    JUDGMENTS_FILE,
    Judgment,
    PairKey,
    judged_text_digest,
    read_judgment_file,
    resolve_corrections,
)
from harness.dataset.labels import Labels, LabelSource
from harness.dataset.read_problems import ReadProblems
from harness.dataset.reference import DatasetReference
from harness.dataset.source import Source
from retrievers.types import Query


def merge_judgments(judgments: Sequence[Judgment]) -> dict[str, Labels]:
    """Merge judgments into the labels of each query that was judged, in the order of their first judgments.

    Those of an earlier version's `pool --next` chose their documents by what they could change, and make no label.
    """
    by_query: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.design != "next":
            by_query.setdefault(judgment.query_id, []).append(judgment)
    return {query: _merged(given) for query, given in by_query.items()}


def _merged(given: list[Judgment]) -> Labels:
    people = [one for one in given if one.kind == "human"]
    human, model = (
        grades_by_document(people),
        grades_by_document([one for one in given if one.kind == "llm"]),
    )
    source: LabelSource
    if not people:
        source, grades = "model", model
    elif _finished(people):
        source, grades = "people", human
    else:
        source, grades = "mixed", {**model, **human}
    probabilities, populations = (
        {getattr(one, name) for one in people} for name in ("inclusion", "population")
    )
    return Labels(
        grades=grades,
        labelled_by=", ".join(sorted({one.judge for one in given})),
        source=source,
        model=model if source != "model" else {},
        grades_by_labeller=_each(people),
        inclusion=min(probabilities) if probabilities else 1.0,
        population=populations.pop() if len(populations) == 1 else 0,
    )


def grades_by_document(judgments: list[Judgment]) -> dict[str, int]:
    """One grade for each document that got any."""
    found: dict[str, int] = {}
    for (_, document), given in group_by_pair(judgments).items():
        final = [
            one
            for one in given
            if one.design == "adjudication" and one.grade is not None
        ] or given
        grades = [one.grade for one in final if one.grade is not None]
        if grades:
            found[document] = median_low(grades)
    return found


def _each(people: list[Judgment]) -> dict[str, dict[str, int]]:
    """What each of several people gave; nothing where there is one."""
    given: dict[str, dict[str, int]] = {}
    for one in people:
        if one.round == 1 and one.design == "sample" and one.grade is not None:
            given.setdefault(one.judge, {})[one.document_id] = one.grade
    return dict(sorted(given.items())) if len(given) > 1 else {}


def group_by_pair(judgments: Iterable[Judgment]) -> dict[PairKey, list[Judgment]]:
    """The judgments of the first round, by query and document."""
    pairs: dict[PairKey, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.round == 1:
            pairs.setdefault(judgment.key, []).append(judgment)
    return pairs


def _finished(people: list[Judgment]) -> bool:
    """Whether people answered all that their pools asked of this query, also where the answer was not a grade."""
    asked: dict[str, int] = {}
    answered: dict[str, set[str]] = {}
    for one in people:
        asked[one.pool] = max(asked.get(one.pool, 0), one.asked)
        answered.setdefault(one.pool, set()).add(one.document_id)
    return all(len(answered[pool]) >= number for pool, number in asked.items())


def read_replacing_judgments(
    reference: DatasetReference, seen: ReadProblems
) -> list[Judgment] | None:
    """Read the `judgments.jsonl` that replaces labels of a folder; None if there is none."""
    if (
        reference.scheme
        or not reference.folder.is_dir()
        or not (reference.folder / JUDGMENTS_FILE).is_file()
    ):
        return None
    return resolve_corrections(
        list(read_judgment_file(reference.folder / JUDGMENTS_FILE, seen)), seen
    )


def replace_labels(
    labels: Mapping[str, Labels],
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    documents: Collection[str],
    seen: ReadProblems,
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
            seen.add(JUDGMENTS_FILE, what, "restore the document, or remove the line")
        else:
            known.append(one)
    merged = merge_judgments(known)
    kept = dict(labels)
    for query, given in merged.items():
        if query in labels:
            seen.note("replaced-labels", query)
        kept[query] = given
    return {query: kept[query] for query in queries if query in kept}


def note_changed_texts(
    source: Source,
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    seen: ReadProblems,
) -> None:
    """Count the pairs whose question or document is not what was judged: a pass over the corpus."""
    judged: dict[str, dict[str, str]] = {}
    for one in judgments:
        if one.query_id in queries:
            judged.setdefault(one.document_id, {})[one.query_id] = one.text
    if not judged:
        return
    for _, document in source.documents(ReadProblems()):
        for query, digest in judged.get(document.id, {}).items():
            if judged_text_digest(queries[query].text, document) != digest:
                seen.note("changed-text", f"{query} {document.id}")
