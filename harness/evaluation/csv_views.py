"""The rows of the CSV files of a results folder, the families of tests.csv among them: views of an evaluation.

And what the retrievers cost: money, time and memory, each with all that it uses.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, NamedTuple

import numpy as np

from harness.evaluation.compare import Equivalence, Key, judged, observe
from harness.evaluation.evaluation import Evaluation
from harness.evaluation.grading import GradedLabels, scores_of
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Comparison, TestRow
from harness.evaluation.wording import verdict_cell
from harness.measures import parse
from harness.records import Manifest, Results, TableColumns
from harness.stats.intervals import Summary
from harness.stats.multiplicity import large_slices, length_slices
from harness.stats.settings import Settings
from retrievers.types import CONTROL, Floats, Query

Pairs = Sequence[tuple[str, str]]


def equivalence_family(scores: Scores, equivalence: Equivalence) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the declared pairs on the primary measure, `compare.equivalence_of` them."""
    for (a, b), (test, p) in equivalence.items():
        gap = scores.mean(scores.primary, a) - scores.mean(scores.primary, b)
        yield TestRow(
            "equivalence",
            scores.primary,
            a,
            b,
            scores.n,
            None,
            test.greater,
            p,
            test.method,
            "",
            gap,
        )


def slices_of(
    queries: Sequence[Query], cluster: str | None = None
) -> dict[str, list[str]]:
    r"""Return family -> each query's slice: by its text's length, and by each field that queries have.

    A field whose values are the clusters makes no slices. Names are as tests.csv has them, by which they are found.

    >>> slices_of([Query("1", "a", {"ki\nd": "x\ty"})])["field ki d"]
    ['x y']
    """
    kinds = (
        {"query length": length_slices([query.text for query in queries])}
        if queries
        else {}
    )
    for name in sorted(
        {name for query in queries for name in query.fields} - {cluster}
    ):
        labels = [CONTROL.sub(" ", query.fields.get(name, "")) for query in queries]
        kinds[CONTROL.sub(" ", f"field {name}")] = labels
    return kinds


def slice_families(
    scores: Scores, pairs: Pairs, queries: Sequence[Query], settings: Settings
) -> Iterator[TestRow]:
    """Yield, for each way to divide the queries, the deciding tests within each slice: one family, always exploratory.

    Corrected over all slices and pairs together. Slices of fewer than 10 queries are left out (`small_slices`).

    Args:
        scores: of the queries for which everyone has a value.
        pairs: whom to compare on the primary measure.
        queries: (n,) those that were scored.
        settings: the test, its correction, the declared cluster.
    """
    for name, labels in slices_of(queries, settings.cluster).items():
        if len(set(labels)) > 1:
            slices = large_slices(labels)
            parts = [
                (kind, scores.only(np.isin(np.arange(scores.n), places)))
                for kind, places in slices.items()
            ]
            yield from _deciding_rows(parts, pairs, name, settings)


def uplift_family(
    scores: Scores, manifest: Manifest, graded: GradedLabels, settings: Settings
) -> Iterator[TestRow]:
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
    for row in (
        _deciding_rows([("", scores)], list(blocks), "rerank uplift", settings)
        if blocks
        else ()
    ):
        # Claims were not judged against candidates below the cutoff: what these could add is unknown.
        note = "no ceiling: the candidates below the cutoff have no verdicts"
        if not parse(scores.primary).claimed:
            note = (
                f"ceiling {_ceiling(graded, scores, row.b, blocks[row.a, row.b]):.4f}"
            )
        yield replace(row, note=note)


def _ceiling(
    graded: GradedLabels, scores: Scores, name: str, depth: int | None
) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates of a retriever."""
    measure, answers = parse(scores.primary), scores.lists[name]()
    best = {
        query: perfect(answers[query], graded.grades[query], depth)
        for query in graded.grades
        if query in answers
    }
    return scores_of([measure], graded, best).means(scores.weight_of)[measure]


READ = "reranker depth"
"""Where the provenance of a reranked retriever says how many candidates are read."""


def candidates_read(provenance: Mapping[str, str]) -> int | None:
    """Return how many candidates a reranker reads, as it says; None where it does not."""
    stated = provenance.get(READ, "")
    return int(stated) if stated.isascii() and stated.isdigit() else None


def perfect(
    doc_ids: Sequence[str], grades: Mapping[str, int], depth: int | None
) -> list[str]:
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
        for pair in observe(
            part, [Key(part.primary, *names) for names in pairs], settings
        ).values()
    ]
    for (note, pair), shown in zip(
        noted, judged([pair for _, pair in noted], settings), strict=True
    ):
        test = pair.decided
        yield TestRow(
            name,
            *pair.key,
            pair.scores.n,
            test.statistic,
            test.p_value,
            shown.p,
            test.method,
            note,
            pair.difference,
            shown.ranks,
            shown.finding,
        )


CsvRows = list[dict[str, Any]]
COLUMNS = {
    "scores": ("retriever", "query_id", "measure", "value"),
    "summary": ("retriever", "measure", *(one.name for one in fields(Summary))),
    "comparisons": tuple(
        "verdict" if one.name == "finding" else one.name for one in fields(Comparison)
    ),
    "tests": (
        *(one.name for one in fields(TestRow) if one.name != "finding"),
        "verdict",
    ),
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
    return [
        cells_of(row, "comparisons")
        for rows in evaluation.comparisons.values()
        for row in rows
    ]


def cells_of(row: Comparison | TestRow, table: str) -> dict[str, Any]:
    """A comparison as a row of comparisons.csv, or a test of another family as one of tests.csv."""
    verdict = None if row.finding is None else verdict_cell(row.finding)
    return {
        name: verdict if name == "verdict" else getattr(row, name)
        for name in COLUMNS[table]
    }


def tables_of(scores: Scores, evaluation: Evaluation | None) -> dict[str, TableColumns]:
    """Return the tables of a results folder by name; empty without an evaluation, for which nothing was scored."""
    if evaluation is None:
        return {name: dict.fromkeys(columns, ()) for name, columns in COLUMNS.items()}
    rows = {
        "summary": summary_rows(evaluation.summary),
        "comparisons": comparison_rows(evaluation),
        "tests": [cells_of(row, "tests") for row in evaluation.tests],
    }
    columns = {
        name: {key: [row[key] for row in of] for key in COLUMNS[name]}
        for name, of in rows.items()
    }
    parts = [(name, measure) for name in scores.retrievers for measure in scores.values]
    every = {
        "retriever": [name for name, _ in parts for _ in scores.ids],
        "query_id": list(scores.ids) * len(parts),
        "measure": [measure for _, measure in parts for _ in scores.ids],
        "value": [
            value
            for name, measure in parts
            for value in scores.values[measure][name].tolist()
        ],
    }
    return {"scores": every, **columns}


PER_QUERY = ("embed-queries", "search", "fuse", "rerank")
"""The stages that every query passes; the others are passed once by the corpus."""
PRICE = "usd_per_million_tokens"
SEARCH_PRICE = "reranker usd_per_thousand_searches"
"""The key of a model's provenance that says what it costs; a reranker's has "reranker " before it."""
OWN_SEARCH = ("dense", "sparse", "multivector", "qdrant-fusion", "bm25")
"""Kinds that search here, for nothing; what any other retriever's search costs, only its price can tell."""


class Stage(NamedTuple):
    """The latency of one stage of one query, in milliseconds."""

    stage: str
    p50: float
    p95: float
    p99: float


class Cost(NamedTuple):
    """What one retriever costs, with all that it uses; None where it was not measured."""

    usd: float
    """Dollars that this run spent."""
    usd_per_million: float | None
    """Dollars for a million queries."""
    stages: tuple[Stage, ...]
    """Stages of a query, where latency was measured."""
    measured_at: str
    seconds: float
    """Wall time of indexing and answering in this run, without the measuring of latency."""
    vector_bytes: float | None

    @property
    def p50(self) -> float | None:
        """Sum of the stages' medians."""
        return math.fsum(stage.p50 for stage in self.stages) if self.stages else None

    @property
    def p95(self) -> float | None:
        """Sum of the stages' 95th percentiles: at most this, were the stages never slow together."""
        return math.fsum(stage.p95 for stage in self.stages) if self.stages else None


def costs_of(results: Results) -> dict[str, Cost]:
    """Return the cost of each retriever that finished."""
    return _costs(results.manifest, results.cost_rows)


def _costs(manifest: Manifest, costs: Iterable[Mapping[str, Any]]) -> dict[str, Cost]:
    rows = defaultdict[str, list[Mapping[str, Any]]](list)
    for row in costs:
        rows[row["retriever"]].append(row)
    return {name: _cost(name, rows, manifest) for name in manifest.finished}


Prices = Mapping[str, tuple[float, ...]]
"""Retriever -> what a query costs, in dollars and time, and what it keeps at hand: the cheapest comes first."""


def by_price(
    manifest: Manifest, costs: Iterable[Mapping[str, Any]]
) -> dict[str, tuple[float, ...]]:
    """Return what orders retrievers by what a query costs: dollars, median latency, bytes of vectors; unknown last.

    Args:
        manifest: of the run.
        costs: the rows of costs.csv.
    """
    every = _costs(manifest, costs).items()
    known = {
        name: (cost.usd_per_million, cost.p50, cost.vector_bytes)
        for name, cost in every
    }
    return {
        name: tuple(math.inf if value is None else value for value in of)
        for name, of in known.items()
    }


def frontier(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the (price, quality) that no other point beats on both, cheapest first.

    >>> frontier([(1, 0.5), (2, 0.4), (3, 0.6), (4, 0.6)])
    [(1, 0.5), (3, 0.6)]
    """
    kept: list[tuple[float, float]] = []
    for price, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or quality > kept[-1][1]:
            kept.append((price, quality))
    return kept


def _cost(
    name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]], manifest: Manifest
) -> Cost:
    parts = manifest.resolved.parts(name)
    made_of = [row for part in parts for row in rows.get(part, ())]
    timed = [row for row in made_of if not math.isnan(row["p50_ms"])]
    whole = timed if {row["retriever"] for row in timed} == {*parts} else []
    per_million = [
        _per_million(row, manifest) for row in made_of if row["stage"] in PER_QUERY
    ]
    known = [usd for usd in per_million if usd is not None]
    return Cost(
        usd=math.fsum(row["usd"] for row in made_of),
        usd_per_million=math.fsum(known) if len(known) == len(per_million) else None,
        stages=_stages(whole),
        measured_at=max((str(row["measured_at"]) for row in whole), default=""),
        seconds=math.fsum(
            row["seconds"] for row in made_of if row["stage"] != "latency"
        ),
        vector_bytes=_vector_bytes(parts, manifest),
    )


def _stages(rows: Sequence[Mapping[str, Any]]) -> tuple[Stage, ...]:
    """The stages of one query in the order that it passes them; two searches of a fusion are one stage."""
    stages: dict[str, Floats] = {}
    for row in sorted(
        rows,
        key=lambda row: (
            PER_QUERY.index(row["stage"]) if row["stage"] in PER_QUERY else 0
        ),
    ):
        own = np.array(
            [row[name] for name in ("p50_ms", "p95_ms", "p99_ms")], dtype=np.float64
        )
        stages[row["stage"]] = own + stages.get(row["stage"], 0.0)
    return tuple(Stage(name, *times.tolist()) for name, times in stages.items())


def _per_million(row: Mapping[str, Any], manifest: Manifest) -> float | None:
    """Dollars that one stage takes for a million queries; None where that is not known.

    What was billed is shared out over the texts that it was billed for. Where the cache or parts answered all of them,
    the tokens that they remember are multiplied by the price.
    """
    stage, name, queries = row["stage"], row["retriever"], manifest.dataset.queries
    if stage == "fuse" or (
        stage == "search" and manifest.resolved.blocks[name]["kind"] in OWN_SEARCH
    ):
        return 0.0  # what its encoder costs is of another stage
    counts = manifest.ledger.retrievers[name].counts.get(stage, {})
    texts = row["texts"] or (
        queries if stage == "search" else 0
    )  # another system need not count what it is asked
    billed = texts - row["cached"]
    # The texts of a reranker are pairs, of which a query has many.
    of_a_query = texts / queries if stage == "rerank" and queries else 1
    if row["usd"] > 0 and billed > 0:
        return float(row["usd"] / billed * of_a_query * 1e6)
    if not texts:
        return 0.0
    search = manifest.retrievers[name].provenance.get(SEARCH_PRICE)
    if stage == "rerank" and search is not None:
        return float(search) / 1e3 * 1e6
    price = _price(name, stage, manifest)
    if not price:
        return price
    tokens = row["tokens"] + counts.get("cached_tokens", 0)
    return float(tokens / texts * of_a_query * price) if tokens else None


def _price(retriever: str, stage: str, manifest: Manifest) -> float | None:
    """Dollars for a million tokens that a stage of a retriever takes; None where it is not known."""
    stated = manifest.retrievers[retriever].provenance.get(
        f"reranker {PRICE}" if stage == "rerank" else PRICE
    )
    try:
        return None if stated is None else float(stated)
    except ValueError:
        return None


def _vector_bytes(parts: Sequence[str], manifest: Manifest) -> float | None:
    total = 0.0
    for part in parts:
        facts = manifest.retrievers[part].provenance
        if "vector_bytes" in facts:
            total += float(facts["vector_bytes"])
        elif manifest.resolved.blocks[part]["kind"] == "dense":
            total += (
                4.0
                * float(facts.get("dimensions", math.nan))
                * manifest.dataset.documents
            )
    return None if math.isnan(total) else total
