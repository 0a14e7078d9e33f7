"""The data in sentences."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from harness.english import count_of, join_names
from harness.evaluation.warning_sentences import warning_sentence
from harness.evaluation.warnings import WarningKind
from harness.measures import parse_measure
from harness.measures.sensitivity import RuleOutcome, winners_by_rule
from harness.pages import visible_text
from harness.report.sections.decision import first_screen
from harness.report.sections.quality_counts import (
    DatasetContents,
    QualityTables,
    describe_dataset,
    quality_tables,
)
from harness.report.templates import Section
from harness.report.view import View
from harness.scoring.other_grades import other_grades
from harness.stats.power import MIN_POWER_DIFFERENCES
from harness.wording.conclusion import lead_sentence, verdict_lines
from harness.wording.failures import failure_lines
from harness.wording.verdicts import ceiling_sentences, opposite_warning

MAX_NAMED_SHARES = 4
"""Retrievers up to which each has its share of labelled hits in a sentence.

Of more, the leader and the one with the smallest share have it.
"""


class GradeRules(NamedTuple):
    """The means under other grade rules."""

    verdict: str
    """Under which rules another retriever has the highest mean, in a sentence."""
    changed: bool
    """Whether another retriever has the highest mean under one."""
    rows: list[RuleOutcome]
    """The rule of the run first."""


class LabelSources(NamedTuple):
    """The number of queries by who judged them."""

    people: int
    """Also those whose labels are in files that say nothing of who gave them."""
    model: int
    mixed: int
    """Those that people began and a model finished; they are not scored."""
    by_model_alone: bool
    """Whether no person judged any."""
    are_known: bool
    """Whether any label says who gave it."""


@dataclass(frozen=True, slots=True)
class DataContext:
    """The section's content."""

    notes: list[str]
    """Sentences that are not in the fold: the first screen has no room for them."""
    grade_rules: GradeRules | None
    labels: LabelSources | None
    counts: QualityTables
    data: DatasetContents


def data_section(view: View) -> Section[DataContext]:
    """What the labels cover, and every warning; all counts are in one fold."""
    grade_rules = compare_grade_rules(view)
    screen = first_screen(view)
    # The leaderboard has the lead over the next.
    lead = lead_sentence(view.evaluation)
    details = [
        sentence
        for sentence in verdict_lines(view.evaluation).details
        if sentence != lead
    ]
    context = DataContext(
        notes=[
            *screen.warnings[len(screen.shown_warnings) :],
            *_label_sentences(view),
            *trust_warnings(view, grade_rules),
            *map(view.with_short_names, details),
            *_ceiling_sentences(view),
        ],
        grade_rules=grade_rules,
        labels=count_label_sources(view),
        counts=quality_tables(view),
        data=describe_dataset(view),
    )
    return Section("data", "Data", context)


def _label_sentences(view: View) -> Iterator[str]:
    """How many documents are relevant to a query, and how many hits have a label."""
    counts = [_count_relevant(view, query_id) for query_id in view.ids]
    if not any(counts):
        return
    fewest = min(counts)
    most = max(counts)
    relevant = count_of(most, "relevant document")
    if fewest < most:
        relevant = f"{fewest} to {relevant}"
    yield f"Each query has {relevant}."
    shares = view.evaluation.judged_shares
    names = [name for name in view.ranked if name in shares]
    if len(names) > MAX_NAMED_SHARES:
        # They may be the same.
        names = list(dict.fromkeys([names[0], min(names, key=shares.__getitem__)]))
    if not names:
        return
    percents = [f"{name} {100 * shares[name]:.0f} %" for name in names]
    first = "document" if view.cutoff == 1 else f"{view.cutoff} documents"
    yield f"Labelled of the first {first}: {', '.join(percents)}."


def _count_relevant(view: View, query_id: str) -> int:
    return sum(grade > 0 for grade in view.grades[query_id].values())


def compare_grade_rules(view: View) -> GradeRules | None:
    """The means under other grade rules and gains, and by each labeller's grades.

    None with one retriever or one rule, or if more than grades decides.
    """
    if len(view.retrievers) < 2:
        return None
    relevance = view.resolved.relevance
    labels = {
        query_id: labelled.labels for query_id, labelled in view.results.queries.items()
    }
    hits_by_retriever = {
        name: view.ranking_digests[name].primary_hits for name in view.retrievers
    }
    rows = winners_by_rule(
        parse_measure(view.primary),
        other_grades(labels, relevance),
        hits_by_retriever,
        view.scores.weight_of,
    )
    if len(rows) < 2:
        return None
    changed_rules = [
        f"{join_names(row.winners)} with {_grades_words(row.rule)} and {row.measure}"
        for row in rows
        if row.changed
    ]
    winners = join_names(rows[0].winners)
    verb = "has" if len(rows[0].winners) == 1 else "share"
    verdict = (
        f"{winners} {verb} the highest mean under each of these {len(rows)} rules."
    )
    if changed_rules:
        verdict = (
            "Under other grade rules another retriever has the highest mean: "
            f"{'; '.join(changed_rules)}."
        )
    return GradeRules(verdict, bool(changed_rules), rows)


def _grades_words(rule: str) -> str:
    """Return a rule with its noun.

    >>> _grades_words("binary"), _grades_words("by ann"), _grades_words("as given")
    ('binary grades', 'grades by ann', 'grades as given')
    """
    follows = rule == "as given" or rule.startswith("by ")
    return f"grades {rule}" if follows else f"{rule} grades"


def _ceiling_sentences(view: View) -> list[str]:
    evaluation = view.evaluation
    if evaluation.ceilings is None:
        return []
    leader_mean = evaluation.means[evaluation.leader]
    return ceiling_sentences(evaluation.ceilings, leader_mean)


def trust_warnings(view: View, grade_rules: GradeRules | None) -> list[str]:
    """Warnings of the run, and of doubtful intervals, labels or grade rules."""
    warnings = [
        *map(visible_text, view.manifest.warnings),
        *_failure_warnings(view),
        *_measure_warnings(view),
        *_few_differences_warnings(view),
        *_opposite_warnings(view),
        *_judged_warnings(view),
    ]
    if grade_rules and grade_rules.changed:
        warnings.append(grade_rules.verdict)
    return [warning for warning in warnings if warning]


def _failure_warnings(view: View) -> Iterator[str]:
    yield from map(visible_text, failure_lines(view.manifest.failed))
    if view.resolved.baseline and view.baseline is None:
        yield (
            f"The baseline {view.resolved.baseline} failed: "
            "all pairs were compared instead."
        )


def _measure_warnings(view: View) -> Iterator[str]:
    if parse_measure(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        yield (
            "The ideal of the primary measure is what was retrieved: one relevant "
            "document at rank 1 scores 1, however much was missed."
        )
    primary = parse_measure(view.primary)
    if primary.name == "RR" and primary.cutoff != 1:
        yield (
            "The primary measure, RR, is ordinal: from rank 1 to 2 is a loss of 0.5, "
            "from 2 to 3 of 0.17. Its means are to be read with care (Fuhr 2017)."
        )


def _few_differences_warnings(view: View) -> Iterator[str]:
    """Pairs with intervals that are likely too short."""
    pairs = [
        f"between {row.a} and {row.b}"
        for row in view.comparisons[view.primary]
        if 0 < row.wins + row.losses < MIN_POWER_DIFFERENCES
    ]
    if pairs:
        listed_pairs = pairs if len(pairs) <= 3 else [*pairs[:3], "in other pairs"]
        yield (
            f"Fewer than {MIN_POWER_DIFFERENCES} queries differ "
            f"{join_names(listed_pairs)}: the intervals there are likely too short."
        )


def _opposite_warnings(view: View) -> Iterator[str]:
    """Pairs that the leaderboard does not show."""
    reference = view.evaluation.reference
    rows = [
        row for row in view.comparisons[view.primary] if reference not in (row.a, row.b)
    ]
    yield opposite_warning(rows, view.settings)


def _judged_warnings(view: View) -> list[str]:
    """Warnings that missing labels may favour a retriever.

    Empty if claims decide, which need no labels of documents.
    """
    if parse_measure(view.primary).uses_claims:
        return []
    if not view.scores.has_irrelevant_labels:
        # Only relevant documents have a label then: the share that has one is that of
        # relevant ones, and does not show whose results were labelled.
        return [
            "Unlabelled documents count as irrelevant, which favours retrievers "
            "whose results were labelled."
        ]
    return [
        warning_sentence(warning)
        for warning in view.evaluation.warnings
        if warning.kind is WarningKind.JUDGED_GAP
    ]


def count_label_sources(view: View) -> LabelSources | None:
    """How many queries people or models judged; None if claims decide, not labels."""
    if parse_measure(view.primary).uses_claims:
        return None
    labels = [labelled.labels for labelled in view.results.queries.values()]
    sources = Counter(
        query_labels.source for query_labels in labels if query_labels.judged
    )
    return LabelSources(
        people=sources["people"] + sources[""],
        model=sources["model"],
        mixed=sources["mixed"],
        by_model_alone=not view.settings.judged_by_people,
        are_known=bool(sources.keys() - {""}),
    )
