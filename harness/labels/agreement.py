"""How far judges agree.

Judgments are compared by pair of query and document, in the first round: each two
judges, all together, and each judge with their own second round; adjudications count
for disputes alone. Labels of a data set's files are compared in twos alone, as relevant
or not, over all documents. The measures are in `harness.stats.kappa`; intervals come
from drawing queries.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.dataset import (
    DatasetReference,
    Labels,
    load_dataset,
    parse_reference,
)
from harness.dataset.file import File
from harness.dataset.judgment import (
    JUDGMENT_GRADES,
    JUDGMENTS_FILE,
    Judgment,
    PairKey,
    read_judgments,
)
from harness.dataset.readers.markdown_folder import LABELLER_COLUMN
from harness.labels.disputes import Dispute, model_disputes, people_disputes
from harness.stats.kappa import (
    AgreementEstimate,
    MeasurementLevel,
    bootstrap_agreement,
    cohen_kappa,
    coincidence_table,
    confusion_table,
    krippendorff_alpha,
    positive_agreement,
)
from harness.stats.rank_overlap import rank_overlap
from retrievers.errors import InputError, Problem
from retrievers.types import Floats

RatingsByJudge = Mapping[str, Mapping[PairKey, int]]
"""Judge -> pair -> grade."""
QueryWords = tuple[str, ...]
"""The history and the text of a query, whose id may be another one in each file."""


class PairOfJudges(NamedTuple):
    """Two judges on the pairs that both judged, or two labellers on their queries."""

    a: str
    b: str
    queries: int
    """Number of queries with one of the units."""
    units: int
    """Number of pairs that both judged; of labels in files, of all documents with each
    query.
    """
    kappa: AgreementEstimate
    """Cohen's kappa."""
    weighted: AgreementEstimate | None
    """Cohen's kappa with quadratic weights; None for a data set's labellers."""
    positive: AgreementEstimate
    """Dice coefficient of the documents that each called relevant."""
    rbo: float | None
    """The mean rank-biased overlap of ranked lists; None without such lists."""
    table: tuple[tuple[int, ...], ...]
    """Confusion: rows are the first judge's grades, columns the second's."""


class AllJudges(NamedTuple):
    """The agreement of all judges together: Krippendorff's alpha at three levels."""

    judges: tuple[str, ...]
    """Every judge with a grade, also one who shares no pair."""
    nominal: AgreementEstimate
    ordinal: AgreementEstimate
    interval: AgreementEstimate


class SelfAgreement(NamedTuple):
    """One judge on the pairs that were judged twice, without seeing the first grade."""

    judge: str
    pairs: int
    """Number of pairs of query and document that were judged twice."""
    same: float
    """The share of them with equal grades."""
    weighted: AgreementEstimate
    """Cohen's kappa of the two rounds, with quadratic weights."""


class AgreementReport(NamedTuple):
    """The result of `harness labels agree`."""

    pairs: tuple[PairOfJudges, ...]
    """Each two judges that have judged a pair, or labelled a query, in common."""
    together: AllJudges | None
    """None if no two judges have judged the same pair, or for labels of files."""
    themselves: tuple[SelfAgreement, ...]
    """Each judge with their own earlier grades."""
    disputed: tuple[Dispute, ...]
    """Pairs of the sample on which people differ by two grades or more.

    Without those that somebody has adjudicated.
    """
    apart: tuple[Dispute, ...] = ()
    """Pairs on which the grade of people and that of models differ by two or more.

    Each is the adjudicated one, else the lower median.
    """


def measure_agreement(paths: Sequence[Path]) -> AgreementReport:
    """Measure the agreement of all judges.

    Args:
        paths: files of judgments, or one data set: its `judgments.jsonl`, else its
            files of queries with `labelled_by`.

    Raises:
        InputError: there is nothing to compare, or a file cannot be read.
    """
    if len(paths) != 1 or not paths[0].is_dir():
        return compare_judges(read_judgments(paths))
    folder = paths[0]
    judgment_path = folder / JUDGMENTS_FILE
    if judgment_path.is_file():
        return compare_judges(read_judgments([judgment_path]))
    pairs = tuple(_compare_labellers(folder))
    return AgreementReport(pairs, together=None, themselves=(), disputed=())


def compare_judges(judgments: Sequence[Judgment]) -> AgreementReport:
    """Measure the agreement of judgments, after corrections.

    Raises:
        InputError: no pair has grades of two judges, or of both rounds of one.
    """
    first_ratings = _ratings_by_judge(
        judgment
        for judgment in judgments
        if judgment.round == 1 and judgment.design != "adjudication"
    )
    pairs: list[PairOfJudges] = []
    for a, b in combinations(sorted(first_ratings), 2):
        pair = _compare_pair(first_ratings, a, b)
        if pair is not None:
            pairs.append(pair)
    themselves = tuple(self_agreements(judgments))
    if not pairs and not themselves:
        problem = "no document was judged by two judges, nor by one judge twice"
        remedy = "let a second person judge the same pool"
        raise InputError(Problem("", problem, remedy))
    return AgreementReport(
        pairs=tuple(pairs),
        together=_compare_all(first_ratings) if pairs else None,
        themselves=themselves,
        disputed=tuple(people_disputes(judgments)),
        apart=tuple(model_disputes(judgments)),
    )


def _ratings_by_judge(judgments: Iterable[Judgment]) -> dict[str, dict[PairKey, int]]:
    """Return judge -> pair -> grade; if judged under two designs, the last counts."""
    ratings: dict[str, dict[PairKey, int]] = {}
    for judgment in judgments:
        if judgment.grade is not None:
            ratings.setdefault(judgment.judge, {})[judgment.key] = judgment.grade
    return ratings


def _compare_pair(ratings: RatingsByJudge, a: str, b: str) -> PairOfJudges | None:
    """Return the agreement of two judges; None if they judged no pair in common."""
    common_keys = [key for key in ratings[a] if key in ratings[b]]
    if not common_keys:
        return None
    tables = _tables_by_query([ratings[a], ratings[b]], common_keys, _confusion_table)
    agreement = _agreement_of_tables(a, b, tables)
    return agreement._replace(weighted=_weighted_kappa(tables))


def _weighted_kappa(tables: Floats) -> AgreementEstimate:
    kappa = partial(cohen_kappa, categories=JUDGMENT_GRADES)
    return bootstrap_agreement(kappa, tables)


def _agreement_of_tables(a: str, b: str, tables: Floats) -> PairOfJudges:
    """Return the agreement of two judges, from one confusion table per query.

    Grades of 1 and above are relevant.
    """
    total = tables.sum(axis=0).astype(int)
    binary_rows = np.add.reduceat(tables, [0, 1], axis=1)
    binary_tables = np.add.reduceat(binary_rows, [0, 1], axis=2)
    return PairOfJudges(
        a=a,
        b=b,
        queries=len(tables),
        units=int(total.sum()),
        kappa=bootstrap_agreement(cohen_kappa, tables),
        weighted=None,
        positive=bootstrap_agreement(positive_agreement, binary_tables),
        rbo=None,
        table=tuple(map(tuple, total.tolist())),
    )


def _tables_by_query(
    ratings: Sequence[Mapping[PairKey, int]],
    keys: Sequence[PairKey],
    count: Callable[[Floats], Floats],
) -> Floats:
    """Return one table of counts per query, (queries, 4, 4): there are four grades.

    Args:
        ratings: of each judge.
        keys: the pairs.
        count: counts the grades of one query, (judges, pairs), in a table; a grade that
            a judge did not give is NaN.
    """
    grades = np.full((len(ratings), len(keys)), np.nan)
    for judge_number, judge_ratings in enumerate(ratings):
        for pair_number, key in enumerate(keys):
            grades[judge_number, pair_number] = judge_ratings.get(key, np.nan)
    query_ids = np.array([query_id for query_id, _ in keys])
    distinct_ids = dict.fromkeys(query_ids.tolist())
    return np.stack([count(grades[:, query_ids == id_]) for id_ in distinct_ids])


def _confusion_table(grades: Floats) -> Floats:
    return confusion_table(grades[0], grades[1], JUDGMENT_GRADES)


def _compare_all(ratings: RatingsByJudge) -> AllJudges:
    keys: set[PairKey] = set()
    for judge_ratings in ratings.values():
        keys.update(judge_ratings)
    count = partial(coincidence_table, categories=JUDGMENT_GRADES)
    tables = _tables_by_query([*ratings.values()], sorted(keys), count)
    return AllJudges(
        judges=tuple(sorted(ratings)),
        nominal=_alpha(tables, "nominal"),
        ordinal=_alpha(tables, "ordinal"),
        interval=_alpha(tables, "interval"),
    )


def _alpha(tables: Floats, level: MeasurementLevel) -> AgreementEstimate:
    alpha = partial(krippendorff_alpha, categories=JUDGMENT_GRADES, level=level)
    return bootstrap_agreement(alpha, tables)


def self_agreements(judgments: Sequence[Judgment]) -> Iterator[SelfAgreement]:
    """Yield the agreement of each judge with their own earlier grades, by name.

    Adjudications do not count: they are given with the first grades in view.
    """
    blind = [judgment for judgment in judgments if judgment.design != "adjudication"]
    first_ratings = _ratings_by_judge(
        judgment for judgment in blind if judgment.round == 1
    )
    second_ratings = _ratings_by_judge(
        judgment for judgment in blind if judgment.round == 2
    )
    for judge, second in sorted(second_ratings.items()):
        first = first_ratings.get(judge, {})
        common_keys = [key for key in second if key in first]
        if not common_keys:
            continue
        tables = _tables_by_query([first, second], common_keys, _confusion_table)
        equal = float(np.trace(tables.sum(axis=0)))
        yield SelfAgreement(
            judge=judge,
            pairs=len(common_keys),
            same=equal / len(common_keys),
            weighted=_weighted_kappa(tables),
        )


def _compare_labellers(folder: Path) -> list[PairOfJudges]:
    """Return the agreement of the labellers of a folder's files of queries.

    Those are its files *.json with the word `labelled_by`. If a labeller has a query in
    several files, the last file counts.

    Raises:
        InputError: there are no two labellers of the same query.
    """
    labels_by_judge: dict[str, dict[QueryWords, Labels]] = {}
    document_count = 0
    for file in sorted(folder.glob("*.json")):
        if LABELLER_COLUMN.encode() not in File(file).read():
            continue
        dataset = load_dataset(DatasetReference(folder, queries=(file.name,)))
        document_count = dataset.document_count
        for query in dataset.judged_queries:
            labels = dataset.labels[query.id]
            if labels.labelled_by:
                by_query = labels_by_judge.setdefault(labels.labelled_by, {})
                by_query[query.words] = labels
    compared = [
        _compare_relevant(labels_by_judge, a, b, document_count)
        for a, b in combinations(sorted(labels_by_judge), 2)
        if not labels_by_judge[a].keys().isdisjoint(labels_by_judge[b])
    ]
    if not compared:
        remedy = (
            "two files of queries with 'labelled_by', "
            f"or {JUDGMENTS_FILE} by two judges"
        )
        name = parse_reference(folder).name
        problem = "names no two labellers of the same query"
        raise InputError(Problem(name, problem, remedy))
    return compared


def _compare_relevant(
    labels_by_judge: Mapping[str, Mapping[QueryWords, Labels]],
    a: str,
    b: str,
    document_count: int,
) -> PairOfJudges:
    """Return the agreement of two labellers on the queries that both have.

    There is such a query. All that is not relevant counts as 0. Only
    ranked lists have an order to compare.
    """
    tables: list[list[list[int]]] = []
    overlaps: list[float] = []
    for words, labels_a in labels_by_judge[a].items():
        if words not in labels_by_judge[b]:
            continue
        labels_b = labels_by_judge[b][words]
        relevant_a = set(labels_a.relevant)
        relevant_b = set(labels_b.relevant)
        both = len(relevant_a & relevant_b)
        only_a = len(relevant_a - relevant_b)
        only_b = len(relevant_b - relevant_a)
        neither = document_count - both - only_a - only_b
        tables.append([[neither, only_b], [only_a, both]])
        if labels_a.ranked is not None and labels_b.ranked is not None:
            overlaps.append(rank_overlap(labels_a.ranked, labels_b.ranked).extrapolated)
    agreement = _agreement_of_tables(a, b, np.array(tables, dtype=np.float64))
    if not overlaps:
        return agreement
    return agreement._replace(rbo=float(np.mean(overlaps)))
