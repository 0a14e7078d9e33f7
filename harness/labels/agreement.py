"""How far judges agree."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.dataset import DatasetReference, load_dataset, parse_reference
from harness.dataset.judgment import (
    JUDGMENT_GRADES,
    JUDGMENTS_FILE,
    Judgment,
    PairKey,
    read_judgments,
)
from harness.labels.disputes import Dispute, model_disputes, people_disputes
from harness.stats.kappa import (
    AgreementEstimate,
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


class PairOfJudges(NamedTuple):
    """Two judges on the pairs, or lists, that both judged."""

    a: str
    b: str
    queries: int
    units: int
    """Documents that both judged; for lists, every document of the corpus for each query."""
    kappa: AgreementEstimate
    """Cohen's."""
    weighted: AgreementEstimate | None
    """Cohen's kappa with quadratic weights; None for lists, which have two categories."""
    positive: AgreementEstimate
    """Dice coefficient of the documents that each called relevant."""
    rbo: float | None
    """The mean rank-biased overlap of ordered lists; None for grades."""
    table: tuple[tuple[int, ...], ...]
    """Confusion: rows are the first judge's grades, columns the second's."""


class AllJudges(NamedTuple):
    """All judges."""

    judges: tuple[str, ...]
    nominal: AgreementEstimate
    ordinal: AgreementEstimate
    interval: AgreementEstimate


class SelfAgreement(NamedTuple):
    """One judge on the pairs that were shown twice, the second time without the first grade."""

    judge: str
    pairs: int
    same: float
    """The share of equal grades."""
    weighted: AgreementEstimate


class AgreementReport(NamedTuple):
    """The result of `harness labels agree`."""

    pairs: tuple[PairOfJudges, ...]
    together: AllJudges | None
    themselves: tuple[SelfAgreement, ...]
    """Each judge with their own earlier grades."""
    disputed: tuple[Dispute, ...]
    """Pairs on which people differ by two grades or more."""
    apart: tuple[Dispute, ...] = ()
    """Pairs on which people and a model differ by as much."""


def measure_agreement(paths: Sequence[Path]) -> AgreementReport:
    """Measure the agreement of all judges in files of judgments, or of the labellers of a data set.

    Args:
        paths: files of judgments, or one data set: its `judgments.jsonl`, else its files of lists with `labelled_by`.

    Raises:
        InputError: there is nothing to compare, or a file cannot be read.
    """
    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0]
        if not (folder / JUDGMENTS_FILE).is_file():
            return AgreementReport(tuple(_of_lists(folder)), None, (), ())
        paths = [folder / JUDGMENTS_FILE]
    return compare_judges(read_judgments(paths))


def compare_judges(judgments: Sequence[Judgment]) -> AgreementReport:
    """Measure the agreement of judgments; InputError if no pair has two grades."""
    first = _ratings(
        one for one in judgments if one.round == 1 and one.design != "adjudication"
    )
    pairs = tuple(
        pair
        for a, b in combinations(sorted(first), 2)
        if (pair := _pair(first, a, b)) is not None
    )
    repeated = tuple(_self_agreements(judgments))
    if not pairs and not repeated:
        what = "no document was judged by two judges, nor by one judge twice"
        raise InputError(Problem("", what, "let a second person judge the same pool"))
    together = _together(first) if pairs else None
    return AgreementReport(
        pairs,
        together,
        repeated,
        tuple(people_disputes(judgments)),
        tuple(model_disputes(judgments)),
    )


def _ratings(judgments: Iterable[Judgment]) -> dict[str, dict[PairKey, int]]:
    ratings: dict[str, dict[PairKey, int]] = {}
    for one in judgments:
        if one.grade is not None:
            ratings.setdefault(one.judge, {})[one.key] = one.grade
    return ratings


def _pair(ratings: RatingsByJudge, a: str, b: str) -> PairOfJudges | None:
    common = [key for key in ratings[a] if key in ratings[b]]
    if not common:
        return None
    tables = _tables((ratings[a], ratings[b]), common, _confusion)
    weighted = bootstrap_agreement(
        partial(cohen_kappa, categories=JUDGMENT_GRADES), tables
    )
    return _compared((a, b), tables)._replace(weighted=weighted)


def _compared(judges: tuple[str, str], tables: Floats) -> PairOfJudges:
    """The agreement of two judges from one confusion table per query, grades 1 and above being relevant."""
    whole = tables.sum(axis=0).astype(int)
    binary = np.add.reduceat(np.add.reduceat(tables, [0, 1], axis=1), [0, 1], axis=2)
    return PairOfJudges(
        *judges,
        len(tables),
        int(whole.sum()),
        bootstrap_agreement(cohen_kappa, tables),
        None,
        bootstrap_agreement(positive_agreement, binary),
        None,
        tuple(tuple(row) for row in whole.tolist()),
    )


def _tables(
    ratings: Sequence[Mapping[PairKey, int]],
    keys: Sequence[PairKey],
    count: Callable[[Floats], Floats],
) -> Floats:
    """One table of counts per query: (queries, 4, 4)."""
    values = np.array(
        [[of.get(key, np.nan) for key in keys] for of in ratings], dtype=np.float64
    )
    queries = np.array([query for query, _ in keys])
    return np.stack(
        [
            count(values[:, queries == query])
            for query in dict.fromkeys(queries.tolist())
        ]
    )


def _confusion(values: Floats) -> Floats:
    return confusion_table(values[0], values[1], JUDGMENT_GRADES)


def _together(ratings: RatingsByJudge) -> AllJudges:
    keys = sorted({key for rated in ratings.values() for key in rated})
    tables = _tables(
        [*ratings.values()],
        keys,
        partial(coincidence_table, categories=JUDGMENT_GRADES),
    )
    alphas = {
        level: bootstrap_agreement(
            partial(krippendorff_alpha, categories=JUDGMENT_GRADES, level=level),
            tables,
        )
        for level in ("nominal", "ordinal", "interval")
    }
    return AllJudges(tuple(sorted(ratings)), **alphas)


def _self_agreements(judgments: Sequence[Judgment]) -> Iterator[SelfAgreement]:
    first, second = (
        _ratings(one for one in judgments if one.round == number) for number in (1, 2)
    )
    for judge, again in sorted(second.items()):
        own = first.get(judge, {})
        if both := [key for key in again if key in own]:
            tables = _tables((own, again), both, _confusion)
            weighted = bootstrap_agreement(
                partial(cohen_kappa, categories=JUDGMENT_GRADES), tables
            )
            yield SelfAgreement(
                judge,
                len(both),
                float(np.trace(tables.sum(axis=0))) / len(both),
                weighted,
            )


def _of_lists(folder: Path) -> list[PairOfJudges]:
    """The labellers of a folder's files of lists; documents outside a list are not relevant."""
    lists: dict[str, dict[str, tuple[str, ...]]] = {}
    documents = 0
    for file in sorted(folder.glob("*.json")):
        dataset = load_dataset(DatasetReference(folder, queries=(file.name,)))
        documents = dataset.document_count
        for query, labels in dataset.labels.items():
            if labels.labelled_by:
                lists.setdefault(labels.labelled_by, {})[query] = labels.relevant
    if len(lists) < 2:
        remedy = f"two files of queries with 'labelled_by', or {JUDGMENTS_FILE} by two judges"
        raise InputError(
            Problem(str(parse_reference(folder).name), "names no two labellers", remedy)
        )
    return [
        _pair_of_lists(lists, a, b, documents)
        for a, b in combinations(sorted(lists), 2)
    ]


def _pair_of_lists(
    lists: Mapping[str, Mapping[str, tuple[str, ...]]], a: str, b: str, documents: int
) -> PairOfJudges:
    common = [query for query in lists[a] if query in lists[b]]
    tables, overlaps = [], []
    for query in common:
        first, second = set(lists[a][query]), set(lists[b][query])
        both, only_a, only_b = (
            len(first & second),
            len(first - second),
            len(second - first),
        )
        tables.append([[documents - both - only_a - only_b, only_b], [only_a, both]])
        overlaps.append(rank_overlap(lists[a][query], lists[b][query]).extrapolated)
    counted = np.array(tables, dtype=np.float64).reshape(-1, 2, 2)
    return _compared((a, b), counted)._replace(
        rbo=float(np.mean(overlaps)) if overlaps else None
    )
