"""The rows of tests.csv: every family of tests beside the declared comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.evaluation.compare import Key, corrected, finding_on, observe, sign_of
from harness.evaluation.grading import GradedLabels, scores_of
from harness.evaluation.scores import Scores
from harness.evaluation.verdict import Evidence, Reason, TestRow
from harness.measures import parse
from harness.records import Manifest
from harness.stats.heterogeneity import large_slices, length_slices
from harness.stats.multiplicity import adjust
from harness.stats.paired_tests import Decided, Within, decide, equivalence_tests
from harness.stats.settings import Settings
from retrievers.types import CONTROL, Query

Pairs = Sequence[tuple[str, str]]


def equivalence_family(scores: Scores, pairs: Pairs, settings: Settings) -> Iterator[TestRow]:
    """Yield the tests of equivalence of the same pairs on the primary measure, Holm-corrected; none without a margin.

    Args:
        scores: of the queries for which everyone has a value.
        pairs: the declared family (`compare.family`).
        settings: margin and seed.
    """
    if settings.margin is not None:
        within = Within(settings.margin, scores.span_of(scores.primary), scores.units, settings.alpha)
        tests = equivalence_tests(scores.values[scores.primary], pairs, within, settings.seed)
        decided = [Decided(test.greater, None, None, test.method) for test in tests]
        yield from _rows(("equivalence", scores.primary), [("", scores, *pair) for pair in pairs], decided, "holm")


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
            parts = []
            for kind, places in large_slices(labels).items():
                kept = np.zeros(scores.n, dtype=np.bool_)
                kept[places] = True
                parts.append((kind, scores.only(kept)))
            yield from _deciding_rows(parts, pairs, name, settings)


def uplift_family(scores: Scores, manifest: Manifest, judged: GradedLabels, settings: Settings) -> Iterator[TestRow]:
    """Yield each reranked retriever against its own first stage, with the ceiling that the candidates allow.

    Args:
        scores: of the queries for which everyone has a value.
        manifest: which retrievers rerank which.
        judged: the labels after the grade rule.
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
        # Nobody judged the claims against candidates below the cutoff: what could be made of them is not known.
        note = "no ceiling: the candidates below the cutoff have no verdicts"
        if not parse(scores.primary).claimed:
            note = f"ceiling {_ceiling(judged, scores, row.b, blocks[row.a, row.b]):.4f}"
        yield replace(row, note=note)


def _ceiling(judged: GradedLabels, scores: Scores, name: str, depth: int | None) -> float:
    """The mean that a perfect reranker would reach from the first `depth` candidates of a retriever."""
    measure, answers = parse(scores.primary), scores.lists[name]()
    best = {query: perfect(answers[query], judged.grades[query], depth) for query in judged.grades if query in answers}
    return scores_of([measure], judged, best).means(scores.weight_of)[measure]


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


def _deciding_rows(parts: Sequence[tuple[str, Scores]], pairs: Pairs, name: str, settings: Settings) -> list[TestRow]:
    """One row for each part of the queries (its note, its scores) and pair, corrected and judged together."""
    observed = [
        pair
        for _, part in parts
        for pair in observe(part, [Key(part.primary, a, b) for a, b in pairs], settings.seed).values()
    ]
    decided = [decide(pair, settings.test) for pair in observed]
    keys = [(note, part, a, b) for note, part in parts for a, b in pairs]
    measure = parts[0][1].primary if parts else ""
    rows = _rows((name, measure), keys, decided, settings.correction)
    p_values = corrected(list(zip(observed, decided, strict=True)), settings.correction)
    judged = []
    for row, pair, p, test in zip(rows, observed, p_values, decided, strict=True):
        differ = pair.queries.wins + pair.queries.losses
        state = (
            None if differ and test.method != "undefined" else Reason.UNDEFINED if differ else Reason.NO_QUERY_DIFFERS
        )
        sign = sign_of(pair, row.mean_difference or 0.0, settings.test)
        finding = finding_on(Evidence(p.decided, p.floor, sign, state), settings)
        ranks = None if pair.units.weights is not None else p.ranks
        judged.append(replace(row, p_wilcoxon_adjusted=ranks, finding=finding))
    return judged


def _rows(
    names: tuple[str, str], keys: Iterable[tuple[str, Scores, str, str]], decided: Sequence[Decided], correction: str
) -> Iterator[TestRow]:
    adjusted = adjust([test.p_value for test in decided], correction)
    for (note, scores, a, b), test, p in zip(keys, decided, adjusted, strict=True):
        gap = scores.mean(scores.primary, a) - scores.mean(scores.primary, b)
        yield TestRow(*names, a, b, scores.n, test.statistic, test.p_value, p, test.method, note, gap)
