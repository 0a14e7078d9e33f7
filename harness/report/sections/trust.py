"""The warnings of a run."""

from collections.abc import Mapping
from typing import Any

from harness.english import join_names
from harness.evaluation.warnings import WarningKind, warning_sentence
from harness.experiment import RelevanceConfig
from harness.measures import parse_measure
from harness.measures.sensitivity import winners_by_rule
from harness.pages import visible_text
from harness.report.sections.decision import first_screen
from harness.report.sections.quality_counts import describe_dataset, quality_tables
from harness.report.templates import Section
from harness.report.view import View
from harness.scoring.other_grades import other_grades
from harness.stats.power import MIN_POWER_DIFFERENCES
from harness.wording.verdicts import ceiling_sentences, opposite_warning
from retrievers.options.tables import validated


def compare_grade_rules(view: View) -> dict[str, Any] | None:
    """The means under other grade rules and gains, and by each labeller's grades; None if there are none."""
    if len(view.retrievers) < 2:
        return None
    relevance = validated(
        RelevanceConfig, view.resolved.relevance, "resolved.relevance"
    )
    labels = {
        query_id: judged.labels for query_id, judged in view.results.queries.items()
    }
    primary = parse_measure(view.primary)
    weights = view.scores.weight_of
    heads = (
        (name, view.ranking_digests[name].primary_hits) for name in view.retrievers
    )
    # A measure by claims has no grades.
    rows = (
        []
        if primary.uses_claims
        else winners_by_rule(primary, other_grades(labels, relevance), heads, weights)
    )
    changed = [row for row in rows if row.changed]
    if len(rows) > 1 and changed:
        others = ", ".join(
            f"{' and '.join(row.winners)} under {row.rule} grades ({row.measure})"
            for row in changed
        )
        verdict = f"Another retriever has the highest mean under other rules: {others}."
    elif len(rows) > 1:
        have = "has" if len(rows[0].winners) == 1 else "share"
        verdict = f"{' and '.join(rows[0].winners)} {have} the highest mean under each of these {len(rows)} readings."
    else:
        verdict = ""
    return (
        {"verdict": verdict, "changed": bool(changed), "rows": rows}
        if verdict
        else None
    )


def trust_section(view: View) -> Section:
    """Warnings of the run and of the labels; all counts are in one fold."""
    other = compare_grade_rules(view)
    notes = [*first_screen(view).warnings, *trust_warnings(view, other)]
    known = {
        "readings": other,
        "ceilings": _ceilings(view),
        "labels": count_label_sources(view),
        "counted": quality_tables(view),
    }
    return Section(
        "trust", "Trust", {"notes": notes, **known, "data": describe_dataset(view)}
    )


def _ceilings(view: View) -> list[str]:
    found, evaluation = view.evaluation.ceilings, view.evaluation
    return (
        []
        if found is None
        else ceiling_sentences(found, view.primary, evaluation.means[evaluation.leader])
    )


def trust_warnings(view: View, other: Mapping[str, Any] | None) -> list[str]:
    """Warnings of the run, intervals that are too short, biased labels, another winner under other rules."""
    notes = [visible_text(warning) for warning in view.manifest.warnings]
    failed = view.manifest.failed.items()
    notes += [
        f"{name} failed and is not compared: {visible_text(error)}"
        for name, error in failed
    ]
    if view.resolved.baseline and view.baseline is None:
        notes.append(
            f"The baseline {view.resolved.baseline} failed: all pairs were compared instead."
        )
    if parse_measure(view.primary).get("ideal") in ("retrieved", "retrieved-all"):
        notes.append(
            "The ideal of the primary measure is what was retrieved: one relevant document at rank 1 scores 1, "
            "however much was missed."
        )
    rows = view.comparisons[view.primary]
    few = [row for row in rows if 0 < row.wins + row.losses < MIN_POWER_DIFFERENCES]
    if few:
        pairs = join_names(
            [f"{row.a} and {row.b}" for row in few[:3]]
            + (["other pairs"] if few[3:] else [])
        )
        notes.append(
            f"Fewer than {MIN_POWER_DIFFERENCES} queries differ between {pairs}: the intervals there are likely too short."
        )
    others = [
        row for row in rows if view.evaluation.reference not in (row.a, row.b)
    ]  # others than the board's
    notes += [opposite_warning(others, view.settings), *_judged(view)]
    if other and other["changed"]:
        notes.append(other["verdict"])
    return list(filter(None, notes))


def _judged(view: View) -> list[str]:
    """Whether missing labels may favour a retriever; a measure by claims needs no document labels."""
    if parse_measure(view.primary).uses_claims:
        return []
    if (
        not view.scores.has_irrelevant_labels
    ):  # then Judged equals precision, and does not show pooling
        return [
            "Labels name relevant documents only; every other document counts as irrelevant. "
            "That favours retrievers whose results were read during labelling."
        ]
    return [
        warning_sentence(one)
        for one in view.evaluation.warnings
        if one.kind is WarningKind.JUDGED_GAP
    ]


def count_label_sources(view: View) -> dict[str, Any] | None:
    """Judged@k of each retriever, and the labellers; None without labels."""
    if parse_measure(view.primary).uses_claims:
        return None
    sources = [labelled.labels.source for labelled in view.results.queries.values()]
    return {
        **{one: sources.count(one) for one in ("people", "model", "mixed")},
        "alone": not view.settings.judged_by_people,
    }
