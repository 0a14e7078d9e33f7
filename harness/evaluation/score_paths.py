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
"""What is measured on TREC files where no measure is named."""


def missing_retriever_notes(paths: Iterable[Path]) -> list[str]:
    """Say which retrievers of results folders failed, or had not answered: the best may be among them.

    Args:
        paths: results folders; anything else is passed over.
    """
    failed = {
        path: [*records.read_manifest(path).failed]
        for path in paths
        if is_results_folder(path)
    }
    others = "who leads here leads among those that ran."
    return [
        f"{path}: Incomplete: without {join_names(missing)}; {others}"
        for path, missing in failed.items()
        if missing
    ]


def score_paths(
    paths: Sequence[Path],
    measure_names: Sequence[str],
    *,
    grade_rule: str | None = None,
    conventions: RunConventions,
) -> Scores:
    """Score TREC runs by qrels, or the rankings of results folders by their own labels.

    Args:
        paths: qrels and TREC runs, one results folder, or several.
        measure_names: measures; none means those of the experiments, or the usual ones.
        grade_rule: another grade rule for results folders.
        conventions: which queries count; of results folders only `queries`, the others are refused.

    Raises:
        InputError: with every problem that was found.
    """
    first, *runs = paths
    if not first.is_dir():
        if not runs:
            what = "no run was named" if first.exists() else "does not exist"
            raise InputError(
                Problem(str(first), what, "give a results folder, or qrels and runs")
            )
        if grade_rule is not None:
            raise InputError(
                Problem(
                    "--grades",
                    "qrels have their grades already",
                    "it is for results folders",
                )
            )
        return score_trec_runs(
            first,
            runs,
            parse_measure_list(measure_names or DEFAULT_TREC_MEASURES),
            conventions=conventions,
        )
    _refuse_conventions(conventions)
    queries = None if conventions.queries is None else list(conventions.queries)
    if runs and all(path.is_dir() for path in runs):
        return score_folders(
            paths, measure_names, grade_rule=grade_rule, queries=queries
        )
    if absent := [path for path in runs if not path.exists()]:
        raise InputError(
            Problem(
                str(absent[0]),
                "does not exist",
                "give results folders, or qrels and runs",
            )
        )
    if runs:
        raise InputError(
            Problem(
                str(first),
                "is a results folder, which has its own runs",
                "give its qrels.trec",
            )
        )
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


def _refuse_conventions(conventions: RunConventions) -> None:
    """Refuse what only TREC runs can be scored with, rather than ignore it.

    Raises:
        InputError: naming every option.
    """
    options = {
        "--skip-no-relevant": conventions.skip_no_relevant,
        "--intersection": conventions.intersection,
        "--double": conventions.precision == "double",
    }
    if given := [option for option, used in options.items() if used]:
        what = "is for TREC runs: a results folder leaves out queries without a relevant document, and has every answer"
        remedy = "leave it out, or give qrels.trec and runs/*.trec of the folder"
        raise InputError([Problem(option, what, remedy) for option in given])
