"""The rows of the CSV files of a results folder, the families of tests.csv among them: views of an evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from harness.evaluation.compare import Equivalence, Key, judged, observe
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.grading import GradedLabels, scores_of
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Comparison, TestRow
from harness.evaluation.wording import verdict_cell
from harness.measures import parse
from harness.records import Manifest, TableColumns
from harness.stats.intervals import Summary
from harness.stats.multiplicity import large_slices, length_slices
from harness.stats.settings import Settings
from retrievers.types import CONTROL, Query

Pairs = Sequence[tuple[str, str]]


def equivalence_family(scores: Scores, equivalence: Equivalence) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the declared pairs on the primary measure, `compare.equivalence_of` them."""
    for (a, b), (test, p) in equivalence.items():
        gap = scores.mean(scores.primary, a) - scores.mean(scores.primary, b)
        yield TestRow("equivalence", scores.primary, a, b, scores.n, None, test.greater, p, test.method, "", gap)


def slices_of(queries: Sequence[Query], cluster: str | None = None) -> dict[str, list[str]]:
    r"""Return family -> each query's slice: by its text's length, and by each field that queries have.

    A field whose values are the clusters makes no slices. Names are as tests.csv has them, by which they are found.

    >>> slices_of([Query("1", "a", {"ki\nd": "x\ty"})])["field ki d"]
    ['x y']
    """
    kinds = {"query length": length_slices([query.text for query in queries])} if queries else {}
    for name in sorted({name for query in queries for name in query.fields} - {cluster}):
        labels = [CONTROL.sub(" ", query.fields.get(name, "")) for query in queries]
        kinds[CONTROL.sub(" ", f"field {name}")] = labels
    return kinds


def slice_families(scores: Scores, pairs: Pairs, queries: Sequence[Query], settings: Settings) -> Iterator[TestRow]:
    """Yield, for each way to divide the queries, the deciding tests within each slice: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out: `stats.heterogeneity`
    names them (`small_slices`).

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        queries: (n,) those that were scored.
        settings: the test, its correction, the declared cluster.
    """
    for name, labels in slices_of(queries, settings.cluster).items():
        if len(set(labels)) > 1:
            slices = large_slices(labels)
            parts = [(kind, scores.only(np.isin(np.arange(scores.n), places))) for kind, places in slices.items()]
            yield from _deciding_rows(parts, pairs, name, settings)


def uplift_family(scores: Scores, manifest: Manifest, graded: GradedLabels, settings: Settings) -> Iterator[TestRow]:
    """Yield each reranked retriever against its own first stage, with the ceiling that the candidates allow.

    Args:
        scores: of the queries for which everyone has a value.
        manifest: which retrievers rerank which.
        graded: the labels after the grade rule.
        settings: the test and its correction.
    """
    blocks = {
        (name, str(block["of"])): candidates_read(manifest.retrievers[name].provenance)
        for name, block in manifest.resolved.blocks.items()
        if block["kind"] == "rerank"
        and isinstance(block.get("of"), str)
        and {name, block["of"]} <= set(scores.retrievers)
    }
    for row in _deciding_rows([("", scores)], list(blocks), "rerank uplift", settings) if blocks else ():
        # Claims were not judged against candidates below the cutoff: what these could add is unknown.
        note = "no ceiling: the candidates below the cutoff have no verdicts"
        if not parse(scores.primary).claimed:
            note = f"ceiling {_ceiling(graded, scores, row.b, blocks[row.a, row.b]):.4f}"
        yield replace(row, note=note)


def _ceiling(graded: GradedLabels, scores: Scores, name: str, depth: int | None) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates of a retriever."""
    measure, answers = parse(scores.primary), scores.lists[name]()
    best = {query: perfect(answers[query], graded.grades[query], depth) for query in graded.grades if query in answers}
    return scores_of([measure], graded, best).means(scores.weight_of)[measure]


READ = "reranker depth"
"""Where the provenance of a reranked retriever says how many candidates are read."""


def candidates_read(provenance: Mapping[str, str]) -> int | None:
    """Return how many candidates a reranker reads, as it says; None where it does not."""
    stated = provenance.get(READ, "")
    return int(stated) if stated.isascii() and stated.isdigit() else None


def perfect(doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None) -> list[str]:
    """Return the first `depth` candidates in the order of their grades, the others beneath as they were.

    >>> perfect(["a", "b", "c", "d"], {"b": 1, "c": 2, "d": 3}, 3)
    ['c', 'b', 'a', 'd']
    """
    head = sorted(doc_ids[:depth], key=lambda doc: -grades.get(doc, 0))
    return [*head, *doc_ids[len(head) :]]


def _deciding_rows(
    parts: Sequence[tuple[str, Scores]], pairs: Pairs, name: str, settings: Settings
) -> Iterator[TestRow]:
    """One row for each part of the queries (its note, its scores) and pair, corrected and judged together."""
    noted = [
        (note, pair)
        for note, part in parts
        for pair in observe(part, [Key(part.primary, *names) for names in pairs], settings).values()
    ]
    for (note, pair), shown in zip(noted, judged([pair for _, pair in noted], settings), strict=True):
        test = pair.decided
        yield TestRow(
            name, *pair.key, pair.scores.n, test.statistic, test.p_value, shown.p, test.method, note, pair.difference,
            shown.ranks, shown.finding,
        )  # fmt: skip


CsvRows = list[dict[str, Any]]
COLUMNS = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", *(one.name for one in fields(Summary))),
    "comparisons": tuple("verdict" if one.name == "finding" else one.name for one in fields(Comparison)),
    "tests": (*(one.name for one in fields(TestRow) if one.name != "finding"), "verdict"),
}
"""Table -> its columns, in their order."""


def summary_rows(summary: Mapping[str, Mapping[str, Summary]]) -> CsvRows:
    """The rows of summary.csv, retriever by retriever."""
    return [
        {"retriever": name, "measure": measure, **asdict(of[name])}
        for name in dict.fromkeys(name for of in summary.values() for name in of)
        for measure, of in summary.items()
        if name in of
    ]


def comparison_rows(evaluation: Evaluation) -> CsvRows:
    """The rows of comparisons.csv."""
    return [cells_of(row, "comparisons") for rows in evaluation.comparisons.values() for row in rows]


def cells_of(row: Comparison | TestRow, table: str) -> dict[str, Any]:
    """A comparison as a row of comparisons.csv, or a test of another family as one of tests.csv."""
    verdict = None if row.finding is None else verdict_cell(row.finding)
    return {name: verdict if name == "verdict" else getattr(row, name) for name in COLUMNS[table]}


def tables_of(scores: Scores, evaluation: Evaluation | None) -> dict[str, TableColumns]:
    """Return the tables of a results folder by name; empty without an evaluation, for which nothing was scored."""
    if evaluation is None:
        return {name: dict.fromkeys(columns, ()) for name, columns in COLUMNS.items()}
    rows = {
        "summary": summary_rows(evaluation.summary),
        "comparisons": comparison_rows(evaluation),
        "tests": [cells_of(row, "tests") for row in evaluation.tests],
    }
    columns = {name: {key: [row[key] for row in of] for key in COLUMNS[name]} for name, of in rows.items()}
    parts = [(name, measure) for name in scores.retrievers for measure in scores.values]
    every = {
        "retriever": [name for name, _ in parts for _ in scores.ids],
        "query_id": list(scores.ids) * len(parts),
        "measure": [measure for _, measure in parts for _ in scores.ids],
        "value": [value for name, measure in parts for value in scores.values[measure][name].tolist()],
    }
    return {"scores": every, **columns}
