"""The tested verdict under each labeller's own labels, beside that under the merge of them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.dataset import Labels
from harness.experiment import Relevance
from harness.measures import parse, score, span
from harness.records import Results
from harness.scoring.facts import clusters_of, head_of, identical_pairs
from harness.scoring.grading import by_labeller, grade_labels, labels_that_count
from harness.scoring.outcome import primary_of, settings_of
from harness.scoring.undefined import compare_defined
from harness.stats import Comparison, Facts, Range, at_look
from retrievers.types import Floats

DocumentPair = tuple[str, str]


class LabellerVerdict(NamedTuple):
    """What the tests show by one person's labels alone."""

    labeller: str
    queries: int
    """Those with a document that this person calls relevant."""
    rows: Mapping[DocumentPair, Comparison]
    """Each pair of the primary measure's family."""


class Disagreement(NamedTuple):
    """A pair of retrievers with more than one verdict."""

    a: str
    b: str
    words: Mapping[str, str]
    """Labeller, or "the merge" -> better, worse, equivalent, undecided."""


MERGED = "the merge"


def labeller_verdicts(results: Results, relevance: Relevance) -> tuple[LabellerVerdict, ...]:
    """Test the primary measure's family anew by the labels of each person who labelled beside others.

    The tests are those of the run, over the queries that the person labelled; nothing is corrected for the number of
    labellers, since the verdict of the run stays that of the merge.
    """
    labels = labels_that_count({query: asked.labels for query, asked in results.queries.items()})
    verdicts = (_verdict(results, name, own, relevance) for name, own in by_labeller(labels).items())
    return tuple(verdict for verdict in verdicts if verdict.rows)


def disagreements(merged: Sequence[Comparison], verdicts: Sequence[LabellerVerdict]) -> list[Disagreement]:
    """The pairs whose verdict depends on whose labels are taken."""
    words = {
        (row.a, row.b): {
            MERGED: row.word,
            **{one.labeller: one.rows[row.a, row.b].word for one in verdicts if (row.a, row.b) in one.rows},
        }
        for row in merged
    }
    return [Disagreement(a, b, by) for (a, b), by in words.items() if len(set(by.values())) > 1]


def labellers_sentence(merged: Sequence[Comparison], verdicts: Sequence[LabellerVerdict]) -> str:
    """Whether the verdicts depend on whose labels are taken; "" where there is one labeller."""
    if not verdicts or not merged:
        return ""
    apart = disagreements(merged, verdicts)
    if not apart:
        names = " and ".join(one.labeller for one in verdicts)
        return f"Every verdict is the same under the labels of {names} and under the merge of them."
    pairs = "; ".join(
        f"{one.a} and {one.b}: " + ", ".join(f"{word} under {by}" for by, word in one.words.items()) for one in apart
    )
    return f"Verdicts depend on whose labels are taken: {pairs}."


def _verdict(results: Results, name: str, labels: Mapping[str, Labels], relevance: Relevance) -> LabellerVerdict:
    measure = parse(primary_of(results.manifest.resolved))
    graded = grade_labels(labels, relevance)
    grades = {query: graded.grades[query] for query in sorted(graded.grades)}
    declared = settings_of(results.manifest)
    values: dict[str, Floats] = {}
    heads = {}
    for retriever in results.retrievers:
        answers = {query: ranking.doc_ids for query, ranking in results.answers(retriever) if query in grades}
        values[retriever] = score([measure], grades, answers).of(measure)
        heads[retriever] = head_of(answers, list(grades), measure.cutoff)
    facts = Facts(
        ranges={str(measure): Range(0.0, span(measure, grades))},
        clusters=clusters_of([results.queries[query].query for query in grades], declared.cluster),
        identical=identical_pairs(heads),
    )
    baseline = results.manifest.resolved.baseline
    rows = compare_defined(
        {str(measure): values} if grades else {}, primary=str(measure), settings=at_look(declared, len(grades)),
        baseline=baseline if baseline in results.retrievers else None, facts=facts,
    )  # fmt: skip
    return LabellerVerdict(name, len(grades), {(row.a, row.b): row for row in rows})
