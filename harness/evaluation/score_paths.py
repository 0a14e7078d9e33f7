"""The paths of a command line to scores."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness import records
from harness.english import join_names
from harness.evaluation.join_folders import judged_notes, score_folders
from harness.measures import parse_measure_list
from harness.records.results import is_results_folder
from harness.scoring.conventions import RunConventions
from harness.scoring.rescore import recomputable_measures, relevance_by_rule, rescore
from harness.scoring.scores import Scores
from harness.scoring.trec_runs import score_trec_runs
from retrievers.errors import InputError, Problem

DEFAULT_TREC_MEASURES = ("nDCG@10", "AP", "RR", "P@10", "R@100")
"""The measures on TREC files if none is named."""


def missing_retriever_notes(paths: Iterable[Path]) -> list[str]:
    """Return a sentence for each results folder that lacks some retrievers.

    It names those that failed or have no rankings yet: the best may be among them.

    Args:
        paths: results folders; other paths are ignored.

    Raises:
        InputError: the manifest of one cannot be read.
    """
    notes: list[str] = []
    for path in paths:
        if not is_results_folder(path):
            continue
        missing = [failure.retriever for failure in records.read_manifest(path).failed]
        if missing:
            warning = "the leader is the best of those that ran."
            notes.append(
                f"{path}: Incomplete: without {join_names(missing)}; {warning}"
            )
    return notes


def score_paths(
    paths: Sequence[Path],
    measure_names: Sequence[str],
    *,
    grade_rule: str | None = None,
    conventions: RunConventions,
) -> Scores:
    """Score TREC runs by qrels, or the rankings of results folders by their labels.

    Args:
        paths: qrels and TREC runs, one results folder, or several; at least one.
        measure_names: measures; if empty, those of the folders' experiments, or
            `DEFAULT_TREC_MEASURES` of TREC runs.
        grade_rule: another grade rule for results folders.
        conventions: which queries count; of results folders only `queries`, the others
            are refused.

    Raises:
        InputError: paths and options do not go together, a file cannot be read, or a
            measure cannot be computed.
    """
    first, *others = paths
    if not first.is_dir():
        _refuse_options_of_folders(first, others, grade_rule)
        measures = parse_measure_list(measure_names or DEFAULT_TREC_MEASURES)
        return score_trec_runs(first, others, measures, conventions=conventions)
    _refuse_conventions(conventions)
    queries = None if conventions.queries is None else list(conventions.queries)
    if others and all(path.is_dir() for path in others):
        return score_folders(
            paths, measure_names, grade_rule=grade_rule, queries=queries
        )
    _refuse_files_with_folder(first, others)
    results = records.read_results(first)
    measures = parse_measure_list(
        measure_names or recomputable_measures(results.manifest.resolved.measures)
    )
    scores = rescore(
        results,
        measures,
        relevance=relevance_by_rule(results, grade_rule),
        queries=queries,
    )
    return replace(scores, notes=(*scores.notes, *judged_notes(scores, [results])))


def _refuse_options_of_folders(
    qrels: Path, runs: Sequence[Path], grade_rule: str | None
) -> None:
    """Refuse qrels without runs, or with an option that only folders have.

    Raises:
        InputError: there is one of these.
    """
    if not runs:
        problem = "no run was named" if qrels.exists() else "does not exist"
        remedy = "give a results folder, or qrels and runs"
        raise InputError(Problem(str(qrels), problem, remedy))
    if grade_rule is not None:
        problem = "qrels have their grades already"
        raise InputError(Problem("--grades", problem, "it is for results folders"))


def _refuse_files_with_folder(folder: Path, others: Sequence[Path]) -> None:
    """Refuse other paths than folders after a results folder.

    Raises:
        InputError: there are any.
    """
    for path in others:
        if not path.exists():
            remedy = "give results folders, or qrels and runs"
            raise InputError(Problem(str(path), "does not exist", remedy))
    if others:
        problem = "is a results folder, which has its own runs"
        raise InputError(Problem(str(folder), problem, "give its qrels.trec"))


def _refuse_conventions(conventions: RunConventions) -> None:
    """Refuse options that only apply to TREC runs, rather than ignore them.

    Raises:
        InputError: naming every option.
    """
    is_used = {
        "--skip-no-relevant": conventions.skip_no_relevant,
        "--intersection": conventions.intersection,
        "--double": conventions.precision == "double",
    }
    problem = (
        "is for TREC runs: a results folder leaves out queries "
        "without a relevant document, and has every answer"
    )
    remedy = "leave it out, or give qrels.trec and runs/*.trec of the folder"
    problems = [
        Problem(option, problem, remedy) for option in is_used if is_used[option]
    ]
    if problems:
        raise InputError(problems)
