"""Agreement and disagreement of judges: in pairs, all together, and each with their own second round."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.dataset import DatasetReference, load, reference_of
from harness.dataset.judgments import (
    GRADES,
    NAME,
    Judgment,
    PairKey,
    Placed,
    by_pair,
    grades_by_document,
    read_judgments,
)
from harness.stats import agreement
from harness.stats.agreement import Agreement, by_query, cohen_kappa
from retrievers.errors import InputError, Problem
from retrievers.types import Floats

SPREAD = 2
"""A difference of people's grades that needs a decision."""


class Dispute(NamedTuple):
    """A pair on which people differ by two grades or more, without an adjudicated grade."""

    query_id: str
    document_id: str
    grades: tuple[tuple[str, int], ...]
    """Judge -> grade."""


def disputes(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people differ by two grades or more, without an adjudicated grade."""
    graded = [one for one in judgments if one.grade is not None]
    settled = {one.key for one in graded if one.design == "adjudication"}
    people = (
        one
        for one in graded
        if one.kind == "human" and one.design == "sample" and one.key not in settled
    )
    given = {key: _grades_of(some) for key, some in by_pair(people).items()}
    return [
        Dispute(*key, grades)
        for key, grades in given.items()
        if np.ptp([grade for _, grade in grades]) >= SPREAD
    ]


def _grades_of(judgments: Iterable[Judgment]) -> tuple[tuple[str, int], ...]:
    """Each judge with the grade, where there is one."""
    return tuple((one.judge, one.grade) for one in judgments if one.grade is not None)


def apart(judgments: Iterable[Judgment]) -> list[Dispute]:
    """List the pairs on which people and a model differ by two grades or more, the largest difference first.

    Documents that manipulate a model appear here. Of people who disagree (see `disputes`) the median counts.
    """
    found: list[tuple[int, Dispute]] = []
    for key, given in by_pair(one for one in judgments if one.design != "next").items():
        by_kind = (
            [one for one in given if one.kind == kind] for kind in ("human", "llm")
        )
        people, model = (grades_by_document(some).get(key[1]) for some in by_kind)
        if people is not None and model is not None and abs(people - model) >= SPREAD:
            found.append((abs(people - model), Dispute(*key, _grades_of(given))))
    return [dispute for _, dispute in sorted(found, key=lambda one: -one[0])]


def as_opinions(
    before: Iterable[Judgment], placed: Iterable[Placed], corrected: Collection[str]
) -> Iterator[Placed]:
    """Yield judgments; a correction that another person may have sent becomes a second round.

    A correction counts if its judge is in `corrected`, or if a model gave no grade before; otherwise anyone could
    overwrite another person's grades with a file in their name.

    Args:
        before: the existing judgments, with corrections resolved.
        placed: the lines to add.
        corrected: judges whose corrections count.
    """
    known = {(*one.key, one.judge, one.design, one.round): one for one in before}
    for place, judgment in placed:
        key = (*judgment.key, judgment.judge, judgment.design, judgment.round)
        first = known.get(key)
        written_over = first is not None and (
            first.kind == "human" or first.grade is not None
        )
        if written_over and judgment.corrects and judgment.judge not in corrected:
            yield (
                place,
                judgment.model_copy(
                    update={"corrects": False, "round": judgment.round + 1}
                ),
            )
        else:
            known[key] = judgment
            yield place, judgment


Ratings = Mapping[str, Mapping[PairKey, int]]
"""Judge -> pair -> grade."""


class PairOfJudges(NamedTuple):
    """Two judges on the pairs, or lists, that both judged."""

    a: str
    b: str
    queries: int
    units: int
    """Documents that both judged; for lists, every document of the corpus for each query."""
    kappa: Agreement
    """Cohen's."""
    weighted: Agreement | None
    """Cohen's kappa with quadratic weights; None for lists, which have two categories."""
    positive: Agreement
    """Dice coefficient of the documents that each called relevant."""
    rbo: float | None
    """The mean rank-biased overlap of ordered lists; None for grades."""
    table: tuple[tuple[int, ...], ...]
    """Confusion: rows are the first judge's grades, columns the second's."""


class AllJudges(NamedTuple):
    """All judges."""

    judges: tuple[str, ...]
    nominal: Agreement
    ordinal: Agreement
    interval: Agreement


class SelfAgreement(NamedTuple):
    """One judge on the pairs that were shown twice, the second time without the first grade."""

    judge: str
    pairs: int
    same: float
    """The share of equal grades."""
    weighted: Agreement


class Agreements(NamedTuple):
    """The result of `harness labels agree`."""

    pairs: tuple[PairOfJudges, ...]
    together: AllJudges | None
    themselves: tuple[SelfAgreement, ...]
    """Each judge with their own earlier grades."""
    disputed: tuple[Dispute, ...]
    """Pairs on which people differ by two grades or more."""
    apart: tuple[Dispute, ...] = ()
    """Pairs on which people and a model differ by as much."""


def agree(paths: Sequence[Path]) -> Agreements:
    """Measure the agreement of all judges in files of judgments, or of the labellers of a data set.

    Args:
        paths: files of judgments, or one data set: its `judgments.jsonl`, else its files of lists with `labelled_by`.

    Raises:
        InputError: there is nothing to compare, or a file cannot be read.
    """
    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0]
        if not (folder / NAME).is_file():
            return Agreements(tuple(_of_lists(folder)), None, (), ())
        paths = [folder / NAME]
    return agreement_of(read_judgments(paths))


def agreement_of(judgments: Sequence[Judgment]) -> Agreements:
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
    return Agreements(
        pairs, together, repeated, tuple(disputes(judgments)), tuple(apart(judgments))
    )


def _ratings(judgments: Iterable[Judgment]) -> dict[str, dict[PairKey, int]]:
    ratings: dict[str, dict[PairKey, int]] = {}
    for one in judgments:
        if one.grade is not None:
            ratings.setdefault(one.judge, {})[one.key] = one.grade
    return ratings


def _pair(ratings: Ratings, a: str, b: str) -> PairOfJudges | None:
    common = [key for key in ratings[a] if key in ratings[b]]
    if not common:
        return None
    tables = _tables((ratings[a], ratings[b]), common, _confusion)
    weighted = by_query(partial(cohen_kappa, categories=GRADES), tables)
    return _compared((a, b), tables)._replace(weighted=weighted)


def _compared(judges: tuple[str, str], tables: Floats) -> PairOfJudges:
    """The agreement of two judges from one confusion table per query, grades 1 and above being relevant."""
    whole = tables.sum(axis=0).astype(int)
    binary = np.add.reduceat(np.add.reduceat(tables, [0, 1], axis=1), [0, 1], axis=2)
    return PairOfJudges(
        *judges,
        len(tables),
        int(whole.sum()),
        by_query(cohen_kappa, tables),
        None,
        by_query(agreement.dice, binary),
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
    return agreement.confusion(values[0], values[1], GRADES)


def _together(ratings: Ratings) -> AllJudges:
    keys = sorted({key for rated in ratings.values() for key in rated})
    tables = _tables(
        [*ratings.values()], keys, partial(agreement.coincidences, categories=GRADES)
    )
    alphas = {
        level: by_query(
            partial(agreement.krippendorff_alpha, categories=GRADES, level=level),
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
            weighted = by_query(partial(cohen_kappa, categories=GRADES), tables)
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
        dataset = load(DatasetReference(folder, queries=(file.name,)))
        documents = dataset.count
        for query, labels in dataset.labels.items():
            if labels.by:
                lists.setdefault(labels.by, {})[query] = labels.relevant
    if len(lists) < 2:
        remedy = f"two files of queries with 'labelled_by', or {NAME} by two judges"
        raise InputError(
            Problem(str(reference_of(folder).name), "names no two labellers", remedy)
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
        overlaps.append(
            agreement.overlap(lists[a][query], lists[b][query]).extrapolated
        )
    counted = np.array(tables, dtype=np.float64).reshape(-1, 2, 2)
    return _compared((a, b), counted)._replace(
        rbo=float(np.mean(overlaps)) if overlaps else None
    )
