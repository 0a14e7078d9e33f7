"""From the rankings of a run to its evaluation."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

from harness.build.build import BuiltExperiment
from harness.evaluation.costs import RetrieverPrices
from harness.evaluation.evaluate_run import EvaluationInput, evaluate_run
from harness.evaluation.query_properties import query_properties, truncated_documents
from harness.experiment import LoadedExperiment
from harness.records import Manifest, QueryRanking, Run
from harness.running.accounts import RunAccounts
from harness.scoring.score_rankings import ScoringSetup, score_rankings
from harness.scoring.scores import Trials
from harness.writing.write_results import EvaluatedRun


def evaluate_rankings(
    loaded: LoadedExperiment,
    built: BuiltExperiment,
    runs: Sequence[Run],
    manifest: Manifest,
    *,
    prices: RetrieverPrices,
    accounts: RunAccounts,
) -> EvaluatedRun:
    """Score the rankings of a run, and compare its retrievers if a query is scored.

    Args:
        loaded: the experiment.
        built: its data set, with graded labels.
        runs: the rankings; those of failed retrievers are left out.
        manifest: of the run.
        prices: what each retriever costs.
        accounts: of the run; scoring and comparing are stages in them.
    """
    finished = [run for run in runs if not run.error]
    queries = {query.id: query for query in built.dataset.stored_queries}
    setup = ScoringSetup(
        loaded.question.measures,
        loaded.question.primary,
        built.labels,
        built.units,
    )
    with accounts.meter.stage("scoring"):
        trials = {run.retriever: partial(_trials, run) for run in finished}
        scores = score_rankings(setup, trials)
    properties = tuple(query_properties(built.dataset, truncated_documents(runs)))
    if not scores.n:
        return EvaluatedRun(scores, None, properties)
    with accounts.meter.stage("comparing"):
        evaluation = evaluate_run(
            EvaluationInput(
                manifest,
                scores,
                built.labels,
                queries,
                prices,
                rankings={
                    run.retriever: partial(_query_rankings, run) for run in finished
                },
                properties=properties,
            )
        )
    return EvaluatedRun(scores, evaluation, properties)


def _query_rankings(run: Run) -> Iterator[QueryRanking]:
    return itertools.starmap(QueryRanking, run.rankings.items())


def _trials(run: Run) -> Trials:
    return run.trials
