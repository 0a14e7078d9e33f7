"""The judging of claims during a run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.build.build import BuiltExperiment
from harness.experiment import LoadedExperiment
from harness.records import Manifest, Run
from harness.records.judge_files import ANSWERS_FOLDER
from harness.records.judge_readings import JudgedClaims
from harness.running.accounts import RunAccounts
from harness.running.context import RunContext
from retrievers.cache import Cache
from retrievers.errors import BackendError
from retrievers.options.placeholders import redact_keys


def check_judge_price(
    loaded: LoadedExperiment, accounts: RunAccounts, cache: Cache
) -> None:
    """Refuse a judge without a price where the run may only spend so much.

    Raises:
        InputError: the price of the judge is unknown.
    """
    judge = loaded.experiment.judge
    if accounts.budget.limit is None or judge is None:
        return
    from harness.answers.declared_judge import check_judge_price

    check_judge_price(judge, loaded.question.measures, cache)


def judge_claims(
    loaded: LoadedExperiment,
    runs: Sequence[Run],
    context: RunContext,
    accounts: RunAccounts,
    *,
    staging: Path,
    earlier: Path,
) -> JudgedClaims:
    """Judge the claims of reference answers, where the experiment measures by them.

    Args:
        loaded: the experiment.
        runs: the rankings.
        context: of the run; the cache keeps the replies of a chat model.
        accounts: of the run; the judge has a stage in them.
        staging: the folder under way, where verdicts are written.
        earlier: the results folder, whose verdicts are used again.

    Raises:
        BackendError: the judge failed, and the primary measure needs it; rankings and
            replies are kept.
    """
    measures = [measure for measure in loaded.question.measures if measure.uses_claims]
    judge_config = loaded.experiment.judge
    if not measures or judge_config is None:
        return JudgedClaims({}, None)
    from harness.answers.declared_judge import build_judge
    from harness.answers.rankings_judge import judge_hits

    rankings = {run.retriever: run.rankings for run in runs if not run.error}
    meter = accounts.meter
    with meter.stage("judge"):
        judged = judge_hits(
            staging / ANSWERS_FOLDER,
            earlier / ANSWERS_FOLDER,
            build_judge(judge_config, context.cache, meter),
            context.dataset,
            rankings=rankings,
            measures=measures,
        )
    counts = meter.counts("judge")
    warning = redact_keys(judged.warning)
    if warning and loaded.question.primary.uses_claims:
        raise BackendError(warning)
    record = judged.record
    if record is not None:
        record = replace(
            record,
            truncated=int(counts.get("truncated", 0)),
            without_schema=int(counts.get("without_schema", 0)),
        )
    return judged._replace(record=record, warning=warning)


def with_judged_claims(built: BuiltExperiment, judged: JudgedClaims) -> BuiltExperiment:
    """Return an experiment whose labels hold the claims that were judged."""
    return built._replace(labels=built.labels._replace(claims=judged.claims))


def complete_manifest(
    manifest: Manifest, judged: JudgedClaims, accounts: RunAccounts
) -> Manifest:
    """Return a manifest with the judge of the claims and the times of the run."""
    warnings = manifest.warnings
    if judged.warning:
        warnings = (*warnings, judged.warning)
    return replace(
        manifest,
        judge=judged.record,
        warnings=warnings,
        started=accounts.started.isoformat(timespec="seconds"),
        seconds=accounts.seconds(),
    )
