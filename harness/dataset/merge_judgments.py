"""Judgments to labels.

People's judgments of a query decide over a model's, which fill what people have not
finished, and adjudications over the other judgments; of several grades the lower median
counts. These labels replace all that the data set has for the query, also people's.
`judgment` reads the lines.
"""

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
    """Merge judgments into the labels of each query, in the order of first judgments.

    Judgments by `pool --next` of an earlier version are no labels: their documents were
    chosen because they could change a result.
    """
    by_query: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.design != "next":
            by_query.setdefault(judgment.query_id, []).append(judgment)
    return {query_id: _merge_query(group) for query_id, group in by_query.items()}


def _merge_query(judgments: list[Judgment]) -> Labels:
    """Return the labels of one query, of which people's judgments decide.

    A model's fill the gaps of people who did not finish the query ("mixed").
    """
    by_people = [judgment for judgment in judgments if judgment.kind == "human"]
    by_models = [judgment for judgment in judgments if judgment.kind == "llm"]
    human_grades = grades_by_document(by_people)
    model_grades = grades_by_document(by_models)
    source: LabelSource
    if not by_people:
        source = "model"
        grades = model_grades
    elif _is_finished(by_people):
        source = "people"
        grades = human_grades
    else:
        source = "mixed"
        grades = {**model_grades, **human_grades}
    populations = {judgment.population for judgment in by_people}
    return Labels(
        grades=grades,
        labelled_by=", ".join(sorted({judgment.judge for judgment in judgments})),
        source=source,
        model={} if source == "model" else model_grades,
        grades_by_labeller=_grades_by_labeller(by_people),
        inclusion=min((judgment.inclusion for judgment in by_people), default=1.0),
        population=populations.pop() if len(populations) == 1 else 0,
    )


def grades_by_document(judgments: list[Judgment]) -> dict[str, int]:
    """Return one grade for each document that has any, in the first round.

    It is the lower median: of the adjudications, if there are any, else of all grades.
    """
    grades: dict[str, int] = {}
    for (_, document_id), pair_judgments in group_first_round(judgments).items():
        graded = [judgment for judgment in pair_judgments if judgment.grade is not None]
        adjudicated = [
            judgment for judgment in graded if judgment.design == "adjudication"
        ]
        pair_grades = [
            judgment.grade
            for judgment in adjudicated or graded
            if judgment.grade is not None
        ]
        if pair_grades:
            grades[document_id] = median_low(pair_grades)
    return grades


def _grades_by_labeller(by_people: list[Judgment]) -> dict[str, dict[str, int]]:
    """Return the grades of each of several people; empty if there is only one.

    Only the first round counts, and no adjudication.
    """
    grades: dict[str, dict[str, int]] = {}
    for judgment in by_people:
        is_first = judgment.round == 1 and judgment.design == "sample"
        if is_first and judgment.grade is not None:
            person_grades = grades.setdefault(judgment.judge, {})
            person_grades[judgment.document_id] = judgment.grade
    return dict(sorted(grades.items())) if len(grades) > 1 else {}


def group_first_round(judgments: Iterable[Judgment]) -> dict[PairKey, list[Judgment]]:
    """Return the judgments of the first round, by query and document."""
    pairs: dict[PairKey, list[Judgment]] = {}
    for judgment in judgments:
        if judgment.round == 1:
            pairs.setdefault(judgment.key, []).append(judgment)
    return pairs


def _is_finished(by_people: list[Judgment]) -> bool:
    """Whether people, taken together, judged all documents of a query in their pools.

    A judgment without a grade counts, too.
    """
    pool_sizes: dict[str, int] = {}
    judged: dict[str, set[str]] = {}
    for judgment in by_people:
        pool = judgment.pool
        pool_sizes[pool] = max(pool_sizes.get(pool, 0), judgment.asked)
        judged.setdefault(pool, set()).add(judgment.document_id)
    return all(len(judged[pool]) >= size for pool, size in pool_sizes.items())


def read_replacing_judgments(
    reference: DatasetReference, problems: ReadProblems
) -> list[Judgment] | None:
    """Return the judgments that replace the labels of a folder.

    None without a file of them; an archive, a single table or a name of a hub has none.
    """
    if reference.scheme or not reference.folder.is_dir():
        return None
    path = reference.folder / JUDGMENTS_FILE
    if not path.is_file():
        return None
    return resolve_corrections(list(read_judgment_file(path, problems)), problems)


def replace_labels(
    labels: Mapping[str, Labels],
    judgments: list[Judgment],
    *,
    queries: Mapping[str, Query],
    document_ids: Collection[str],
    problems: ReadProblems,
) -> dict[str, Labels]:
    """Return the labels, replaced by judgments for each query that was judged.

    Judgments of other queries are noted: several files of queries may share a folder.
    One of a document that does not exist is a problem.
    """
    used_judgments: list[Judgment] = []
    for judgment in judgments:
        if judgment.query_id not in queries:
            problems.note("judged-elsewhere", judgment.query_id)
        elif judgment.document_id not in document_ids:
            pair = f"document {judgment.document_id!r} for query {judgment.query_id!r}"
            problem = f"judges {pair}, which does not exist"
            remedy = "restore the document, or remove the line"
            problems.add(JUDGMENTS_FILE, problem, remedy)
        else:
            used_judgments.append(judgment)
    all_labels = dict(labels)
    for query_id, judged_labels in merge_judgments(used_judgments).items():
        if query_id in labels:
            problems.note("replaced-labels", query_id)
        all_labels[query_id] = judged_labels
    return {
        query_id: all_labels[query_id] for query_id in queries if query_id in all_labels
    }


def note_changed_texts(
    source: Source,
    judgments: list[Judgment],
    queries: Mapping[str, Query],
    problems: ReadProblems,
) -> None:
    """Note the pairs whose texts have changed since they were judged.

    This takes a pass over the corpus.
    """
    digests_by_document: dict[str, dict[str, str]] = {}
    for judgment in judgments:
        if judgment.query_id in queries:
            digests = digests_by_document.setdefault(judgment.document_id, {})
            digests[judgment.query_id] = judgment.text
    if not digests_by_document:
        return
    for _, document in source.documents(ReadProblems()):
        digests = digests_by_document.get(document.id, {})
        for query_id, digest in digests.items():
            query_text = queries[query_id].text_with_history
            if judged_text_digest(query_text, document) != digest:
                problems.note("changed-text", f"{query_id} {document.id}")
