"""Non-inferiority of a challenger.

`gate_retrievers` takes two retrievers, of one results folder or of two; `gate_sets` a
folder of several data sets. `gate_verdict` has the test of their scores.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.evaluation.corpus_change import (
    LabelReason,
    changed_documents,
    label_reason,
    refuse_no_value,
)
from harness.evaluation.gate_verdict import (
    BASELINE_ARM,
    CHALLENGER_ARM,
    Gate,
    GateOutcome,
    gate_scores,
)
from harness.evaluation.pair_diagnostics import DEFAULT_CUTOFF
from harness.measures import parse_measure
from harness.records import NO_SCORES, Results
from harness.records.data_sets_csv import read_sets
from harness.records.staging import quoted_folder
from harness.scoring.declared_settings import settings_of_run
from harness.scoring.grades import people_judged
from harness.scoring.score_table import identical_ranking_pairs
from harness.scoring.scores import Scores, widest_range
from harness.scoring.shared_queries import SharedQueries, find_shared_queries
from harness.scoring.states import (
    RankedState,
    compare_labelling,
    find_state_queries,
)
from harness.scoring.stored_scores import stored_scores
from harness.stats.looks import settings_at_look
from harness.stats.settings import check_margin
from retrievers.errors import InputError, NotConfirmed, Problem, did_you_mean


class RetrieversFailed(NotConfirmed):
    """A retriever of a gate failed in its run."""


def gate_sets(
    folder: Path, challenger: str, baseline: str, margins: Mapping[str, float]
) -> dict[str, Gate]:
    """Gate each data set by its margin.

    All together pass if every one does, which needs no correction.

    Args:
        folder: the folder of several data sets' results.
        challenger: the retriever that would replace the other.
        baseline: the retriever in use.
        margins: data set -> margin; "" is for those that are not named.

    Raises:
        InputError: there is no such set, or one has no margin; else as
            `gate_retrievers`.
        RetrieversFailed: one failed on some data sets, which are all named.
    """
    sets = {results.manifest.name: results for results in read_sets(folder)}
    _check_margin_names(margins, sets, folder)
    gates: dict[str, Gate] = {}
    failures: list[str] = []
    for name, results in sets.items():
        try:
            gates[name] = gate_retrievers(
                GateArm(results, challenger),
                GateArm(results, baseline),
                margin=margins[name if name in margins else ""],
            )
        except RetrieversFailed as failure:
            failures.append(f"{name}: {failure}")
    if failures:
        raise RetrieversFailed("; ".join(failures))
    return gates


def _check_margin_names(
    margins: Mapping[str, float], sets: Collection[str], folder: Path
) -> None:
    """Check that margins name data sets of a folder, and that each set has one.

    Raises:
        InputError: the problems of all names.
    """
    problems: list[Problem] = []
    for name in margins:
        if name and name not in sets:
            problem = f"{folder} has no data set {name!r}"
            problems.append(Problem("--margin", problem, did_you_mean(name, sets)))
    for name in sets:
        if name not in margins and "" not in margins:
            remedy = f"--margin {name}=0.02"
            problems.append(Problem("--margin", f"names none for {name}", remedy))
    if problems:
        raise InputError(problems)


class GateArm(NamedTuple):
    """One of the two retrievers, and the folder with its scores."""

    results: Results
    retriever: str


def gate_retrievers(
    challenger: GateArm,
    baseline: GateArm,
    *,
    margin: float,
    corpus_changed: bool = False,
) -> Gate:
    """Test whether one retriever is not worse than another by the margin.

    They are compared on the primary measure; those of two folders on the queries that
    both have.

    Args:
        challenger: the retriever that would replace the other; its experiment declares
            the measure and the tests.
        baseline: the retriever in use.
        margin: the loss of the mean that is still acceptable.
        corpus_changed: whether the folders may be over two states of a corpus: each
            query is scored by its own state's labels.

    Raises:
        InputError: one did not run, or is named twice; the margin is out of range; or
            two folders cannot be compared: other documents, another primary measure,
            other texts or grades of a query, no query in both, or none for which both
            have a value.
        RetrieversFailed: one failed in its run.
    """
    _refuse_failed((challenger, baseline))
    _refuse_impossible(challenger, baseline)
    shared_ids = None
    if corpus_changed:
        shared_ids = _state_queries(challenger.results, baseline.results)
    elif challenger.results is not baseline.results:
        shared_ids = shared_gate_queries(challenger.results, baseline.results).ids
    primary = challenger.results.manifest.resolved.primary
    scores = _arm_scores(challenger, baseline, primary, shared_ids)
    refuse_no_value(scores, baseline.results)
    check_margin("--margin", margin, scores.range_of(primary))
    declared = replace(
        settings_of_run(challenger.results.manifest),
        judged_by_people=scores.judged_by_people,
    )
    settings = settings_at_look(declared, scores.n)
    gate = gate_scores(scores, margin=margin, settings=settings)
    if corpus_changed:
        return _without_unlabelled_verdict(gate, challenger, baseline, scores.ids)
    return gate


def _state_queries(new: Results, old: Results) -> tuple[str, ...]:
    """Return the queries with a label in both states of a corpus.

    Raises:
        InputError: the primary measures differ, or there is no such query.
    """
    problems = _primary_problems(new, old)
    queries = find_state_queries(old, new).ids
    if not problems and not queries:
        problem = f"has no query in common with {new.folder}"
        remedy = "gate runs of one experiment"
        problems = [Problem(str(old.folder), problem, remedy)]
    if problems:
        raise InputError(problems)
    return queries


def _without_unlabelled_verdict(
    gate: Gate, challenger: GateArm, baseline: GateArm, queries: Sequence[str]
) -> Gate:
    """Return a gate that shows nothing where missing labels may explain its outcome.

    New documents without labels may explain a fall, and fewer labels of the old state a
    rise.
    """
    cutoff = parse_measure(challenger.results.manifest.resolved.primary).cutoff
    depth = cutoff or DEFAULT_CUTOFF
    labels = compare_labelling(
        RankedState(baseline.results, baseline.retriever),
        RankedState(challenger.results, challenger.retriever),
        queries,
        changed_documents(baseline.results, challenger.results).new,
        cutoff=depth,
    )
    reason = label_reason(labels, gate.mean_difference)
    is_fall = reason is LabelReason.NEW_UNLABELLED and gate.is_worse
    is_rise = reason is LabelReason.OLD_LESS_LABELLED and gate.passed
    if is_fall or is_rise:
        gate = replace(gate, outcome=GateOutcome.NOT_SHOWN)
    folder = quoted_folder(challenger.results.folder)
    return replace(
        gate,
        label_reason=reason,
        to_label=labels.to_label,
        pool_command=f"harness pool {folder} --depth {depth}",
    )


def _arm_scores(
    challenger: GateArm,
    baseline: GateArm,
    primary: str,
    shared_ids: Sequence[str] | None,
) -> Scores:
    """Return the scores of both arms on the queries for which both have a value.

    The retrievers are called "challenger" and "baseline" there; all else is the
    challenger's.

    Args:
        challenger: one retriever.
        baseline: the other.
        primary: the measure.
        shared_ids: the queries that both folders share; None for one folder.
    """
    arms = {CHALLENGER_ARM: challenger, BASELINE_ARM: baseline}
    defined: dict[str, Scores] = {}
    for arm_name, arm in arms.items():
        stored = stored_scores(arm.results)
        mask = stored.defined(primary, arm.retriever)
        defined[arm_name] = stored.select_queries(mask)
    queries = set(defined[CHALLENGER_ARM].ids) & set(defined[BASELINE_ARM].ids)
    if shared_ids is not None:
        queries &= set(shared_ids)
    selected = {
        arm_name: scores.select_ids(queries) for arm_name, scores in defined.items()
    }
    challenger_scores = selected[CHALLENGER_ARM]
    cutoff = parse_measure(primary).cutoff
    columns = {}
    compared = {}
    for arm_name, arm in arms.items():
        scores = selected[arm_name]
        columns[arm_name] = scores.values[primary][arm.retriever]
        scores.rankings[arm.retriever]()  # rankings that were changed are refused
        if arm.retriever in scores.compared:
            compared[arm_name] = scores.compared[arm.retriever]
    return replace(
        challenger_scores,
        values={primary: columns},
        ranges={primary: widest_range(selected.values(), primary)},
        identical=identical_ranking_pairs(
            columns, compared, queries=challenger_scores.ids, cutoff=cutoff
        ),
        judged_by_people=all(map(_is_judged_by_people, (challenger, baseline))),
    )


def _is_judged_by_people(arm: GateArm) -> bool:
    queries = arm.results.queries
    return people_judged({query_id: queries[query_id].labels for query_id in queries})


def shared_gate_queries(challenger: Results, baseline: Results) -> SharedQueries:
    """Return the queries on which retrievers of two folders can be gated.

    Raises:
        InputError: the documents, the primary measure, or the text or the labels of a
            query in both are not the same.
    """
    where = str(baseline.folder)
    remedy = f"run its experiment again on the data of {challenger.folder}"
    problems = _primary_problems(challenger, baseline)
    challenger_corpus = challenger.manifest.dataset.corpus_digest
    if challenger_corpus != baseline.manifest.dataset.corpus_digest:
        problem = f"holds results on other documents than {challenger.folder}"
        changed_remedy = (
            f"{remedy}; or, if the documents were changed on purpose, add "
            "--corpus-changed"
        )
        problems.append(Problem(where, problem, changed_remedy))
        # Labels change with the documents: that would be the same problem again.
        raise InputError(problems)
    shared = find_shared_queries([challenger, baseline])
    changed = shared.reworded + shared.relabelled
    if changed:
        difference = f"another text or other labels than {challenger.folder}"
        problem = f"has {changed:,} of the same queries with {difference}"
        problems.append(Problem(where, problem, remedy))
    elif not shared.ids:
        problem = f"has no query in common with {challenger.folder}"
        problems.append(Problem(where, problem, remedy))
    if problems:
        raise InputError(problems)
    return shared


def _primary_problems(challenger: Results, baseline: Results) -> list[Problem]:
    """Return the problem that the primary measures differ, if they do."""
    measure = challenger.manifest.resolved.primary
    baseline_measure = baseline.manifest.resolved.primary
    if measure == baseline_measure:
        return []
    problem = f"was decided by {baseline_measure}, and {challenger.folder} by {measure}"
    remedy = "use one primary measure for both"
    return [Problem(str(baseline.folder), problem, remedy)]


def _refuse_failed(arms: Sequence[GateArm]) -> None:
    """Refuse retrievers that failed in their run, with the reason of each.

    Raises:
        RetrieversFailed: one did.
    """
    sentences: list[str] = []
    for results, retriever in arms:
        for failure in results.manifest.failed:
            if failure.retriever == retriever:
                reason = failure.reason.removeprefix(f"{retriever}: ").rstrip(".")
                sentences.append(f"{retriever} failed: {reason}")
    if sentences:
        raise RetrieversFailed("; ".join(dict.fromkeys(sentences)))


def _refuse_impossible(challenger: GateArm, baseline: GateArm) -> None:
    """Refuse folders without scores, retrievers without results, and equal arms.

    Raises:
        InputError: there is one of these.
    """
    arms = (challenger, baseline)
    for arm in arms:
        if not arm.results.scored:
            raise InputError(Problem(str(arm.results.folder), *NO_SCORES))
    is_same_folder = challenger.results is baseline.results
    if is_same_folder and challenger.retriever == baseline.retriever:
        problem = "would be compared with itself"
        remedy = "name two different retrievers"
        raise InputError(Problem(challenger.retriever, problem, remedy))
    missing = _missing_arms(arms)
    if missing:
        raise InputError(missing)


def _missing_arms(arms: Sequence[GateArm]) -> list[Problem]:
    """Return the problems of retrievers that are not in their folders."""
    problems: list[Problem] = []
    for results, retriever in arms:
        if retriever not in results.retrievers:
            problem = f"holds no retriever {retriever!r}"
            remedy = did_you_mean(retriever, results.retrievers)
            problems.append(Problem(str(results.folder), problem, remedy))
    return problems
