"""The tables of a results folder: what follows from rankings and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.evaluation.compare import compare, family, uncounted
from harness.evaluation.evaluation import summary_rows
from harness.evaluation.families import TestRow, equivalence_family, pair_family, slice_families
from harness.evaluation.grading import GradedLabels, scores_of
from harness.evaluation.scores import Scores
from harness.evaluation.sweep_choice import choose
from harness.evaluation.verdict import Finding
from harness.evaluation.wording import COMPARISON_COLUMNS, comparison_cells, verdict_cell
from harness.experiment import Experiment, Question, RerankedTable
from harness.stats.intervals import Summary
from harness.stats.power import at_look
from harness.stats.settings import Settings
from retrievers.types import Query

if TYPE_CHECKING:
    import pandas as pd

Provenances = Mapping[str, Mapping[str, str]]
"""Retriever -> what it says of itself."""
SCORE_COLUMNS = ("retriever", "query_id", "measure", "value")
SUMMARY_COLUMNS = ("retriever", "measure", *(f.name for f in fields(Summary)))
TEST_COLUMNS = tuple("verdict" if f.name == "finding" else f.name for f in fields(TestRow))


class RunFacts(NamedTuple):
    """What is known of runs beside their scores."""

    provenances: Provenances = MappingProxyType({})
    """Of a reranker, how many candidates it read; else its options say."""
    earlier: tuple[int, ...] = ()
    """How many queries each earlier look at this question had."""


@dataclass(frozen=True, slots=True)
class ScoreTables:
    """What follows from rankings and labels: tables, columns as in the CSV files of a results folder."""

    scores: pd.DataFrame
    summary: pd.DataFrame
    comparisons: pd.DataFrame
    tests: pd.DataFrame


def score_tables(
    question: Question,
    judged: GradedLabels,
    queries: Mapping[str, Query],
    scores: Scores,
    facts: RunFacts = RunFacts(),  # noqa: B008 - immutable
    *,
    step: Callable[[], None] = uncounted,
) -> ScoreTables:
    """Summarize and compare scores.

    Args:
        question: measures, primary measure, baseline and tests.
        judged: the labels after the grade rule.
        queries: every judged query, by id; their texts and fields make the slices.
        scores: those of the retrievers that finished; without a query, the tables are empty.
        facts: what is known of the runs.
        step: as for `compare`.
    """
    import pandas as pd

    if not scores.n:
        columns = (SCORE_COLUMNS, SUMMARY_COLUMNS, COMPARISON_COLUMNS, TEST_COLUMNS)
        return ScoreTables(*(pd.DataFrame(columns=list(one)) for one in columns))
    declared = replace(settings_of(question.experiment, facts.earlier), by_people=judged.by_people)
    settings = at_look(declared, scores.n)
    # A declared baseline that failed has no rankings: then all pairs are compared.
    baseline = question.experiment.baseline if question.experiment.baseline in scores.retrievers else None
    rows = compare(scores, baseline=baseline, settings=settings, step=step)
    others = _tests(question, judged, queries, scores, (settings, baseline, facts.provenances))
    return ScoreTables(
        scores=pd.concat(_score_rows(scores), ignore_index=True),
        summary=pd.DataFrame(summary_rows(scores, settings.level), columns=list(SUMMARY_COLUMNS)),
        comparisons=pd.DataFrame([comparison_cells(row) for row in rows], columns=list(COMPARISON_COLUMNS)),
        tests=pd.DataFrame([_test_cells(row) for row in others], columns=list(TEST_COLUMNS)),
    )


def _test_cells(row: TestRow) -> dict[str, Any]:
    cells = {one.name: getattr(row, one.name) for one in fields(row)}
    finding: Finding | None = cells.pop("finding")
    return {**cells, "verdict": None if finding is None else verdict_cell(finding)}


def _tests(
    question: Question,
    judged: GradedLabels,
    queries: Mapping[str, Query],
    scores: Scores,
    how: tuple[Settings, str | None, Provenances],
) -> list[TestRow]:
    """Every family beside the declared comparisons, on the queries for which everyone has a value."""
    settings, baseline, provenances = how
    pairs = family(list(scores.retrievers), baseline)
    kept = scores.defined(scores.primary)
    if not kept.any() or not pairs:
        return []
    decided = scores.of(scores.primary).only(kept)
    asked = [queries[query] for query in decided.ids]
    return [
        *equivalence_family(decided, pairs, settings),
        *slice_families(decided, pairs, asked, settings),
        *_uplifts(question, judged, decided, settings, provenances),
        *_choice(question, decided, settings),
    ]


def _choice(question: Question, scores: Scores, settings: Settings) -> Iterator[TestRow]:
    """The best configuration of a sweep against the default, one-sided, over the whole grid."""
    sweep = question.experiment.sweep
    found = None if sweep is None else choose(scores, sweep, settings, {})
    if found is not None:
        names, note = ("sweep", scores.primary, found.chosen, found.default), f"best of {found.configurations}"
        yield TestRow(*names, scores.n, None, found.p_value, found.p_value, found.method, note, found.gain)


def _uplifts(
    question: Question, judged: GradedLabels, scores: Scores, settings: Settings, provenances: Provenances
) -> Iterator[TestRow]:
    """Each reranked retriever against its own first stage, with the ceiling that the candidates allow."""
    blocks = {
        (block.name, block.of): candidates_read(provenances.get(block.name, {}), block.rerank.options)
        for block in question.experiment.retrievers
        if isinstance(block, RerankedTable)
        and isinstance(block.of, str)
        and {block.name, block.of} <= set(scores.retrievers)
    }
    for row in pair_family(scores, list(blocks), "rerank uplift", settings) if blocks else ():
        # Nobody judged the claims against candidates below the cutoff: what could be made of them is not known.
        note = "no ceiling: the candidates below the cutoff have no verdicts" if question.primary.claimed else (
            f"ceiling {_ceiling(question, judged, (scores, row.b), blocks[row.a, row.b]):.4f}"
        )  # fmt: skip
        yield replace(row, note=note)


def _ceiling(question: Question, judged: GradedLabels, first: tuple[Scores, str], depth: int | None) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates of a retriever."""
    scores, name = first
    answers = scores.lists[name]()
    best = {query: perfect(answers[query], judged.grades[query], depth) for query in judged.grades if query in answers}
    return scores_of([question.primary], judged, best).means(scores.weight_of)[question.primary]


def _score_rows(scores: Scores) -> list[pd.DataFrame]:
    import pandas as pd

    return [
        pd.DataFrame(dict(zip(SCORE_COLUMNS, (name, scores.ids, measure, group[name]), strict=True)))
        for name in scores.retrievers
        for measure, group in scores.values.items()
    ] or [pd.DataFrame(columns=list(SCORE_COLUMNS))]


def settings_of(experiment: Experiment, earlier: tuple[int, ...] = ()) -> Settings:
    """The statistics that an experiment declares, with its seed and the numbers of queries of earlier looks."""
    return Settings.of(asdict(experiment.statistics), experiment.seed, earlier)


READ = "reranker depth"
"""Where a retriever's provenance says how many candidates its reranker reads."""


def candidates_read(provenance: Mapping[str, str], reranker: Mapping[str, Any]) -> int | None:
    """Return how many candidates a reranker reads: as it says, or as its options say, in folders of before.

    >>> candidates_read({"reranker depth": "10"}, {"kind": "http", "depth": 20}), candidates_read({}, {"kind": "x"})
    (10, None)
    """
    stated = provenance.get(READ, "")
    if stated.isascii() and stated.isdigit():
        return int(stated)
    option = reranker.get("depth")
    return option if isinstance(option, int) else None


def perfect(doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None) -> list[str]:
    """Return the first `depth` candidates in the order of their grades, the others beneath as they were.

    >>> perfect(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda doc: -grades.get(doc, 0))
    return [*head, *doc_ids[len(head) :]]
