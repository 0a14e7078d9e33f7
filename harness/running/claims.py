"""The judging of claims during a run.

The judge is opened before anything is sent, judges after all rankings, and is recorded
in the manifest. What it judges is in `harness.answers.rankings_judge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.dataset import Dataset
from harness.experiment import LoadedExperiment
from harness.records import Manifest, Run
from harness.records.judge_files import ANSWERS_FOLDER
from harness.records.judge_readings import JudgedClaims
from harness.running.accounts import RunAccounts
from retrievers.cache import Cache
from retrievers.errors import BackendError
from retrievers.meter import Meter
from retrievers.options.placeholders import redact_keys

if TYPE_CHECKING:  # the package of answers can be deleted
    from harness.answers.judge import Judge


@dataclass(frozen=True, slots=True)
class ClaimJudging:
    """The judge of an experiment's claims, and how far down it judges."""

    judge: Judge
    depth: int | None
    """The deepest cutoff of the measures by claims; None: all stored hits."""
    serves_primary: bool
    """Whether the primary measure needs it."""


def open_judging(
    loaded: LoadedExperiment, accounts: RunAccounts, cache: Cache
) -> ClaimJudging | None:
    """Return the judge of claims before anything is sent; None if no measure needs one.

    Raises:
        InputError: dollars are limited, and the price of the judge is unknown.
    """
    measures = loaded.question.measures
    table = loaded.experiment.judge
    if table is None or not any(measure.uses_claims for measure in measures):
        return None
    from harness.answers.declared_judge import build_judge, check_judge_price
    from harness.answers.rankings_judge import claims_depth

    if accounts.budget.limit is not None:
        check_judge_price(table, cache)
    judge = build_judge(table, cache, accounts.meter)
    serves_primary = loaded.question.primary.uses_claims
    return ClaimJudging(judge, claims_depth(measures), serves_primary)


def judge_claims(
    judging: ClaimJudging | None,
    runs: Sequence[Run],
    dataset: Dataset,
    meter: Meter,
    *,
    staging: Path,
    earlier: Path,
) -> JudgedClaims:
    """Judge the claims of reference answers against the hits of all rankings.

    Args:
        judging: the judge; None if no measure is by claims: nothing is judged.
        runs: the rankings.
        dataset: its queries have the claims, or answers that the judge takes them from.
        meter: of the run; the judge has a stage in it.
        staging: the folder under way, where verdicts are written.
        earlier: the results folder, whose verdicts are used again.

    Raises:
        BackendError: the judge failed, and the primary measure needs it; rankings and
            replies are kept.
    """
    if judging is None:
        return JudgedClaims({}, None)
    from harness.answers.rankings_judge import judge_hits

    rankings = {run.retriever: run.rankings for run in runs if not run.error}
    with meter.stage("judge"):
        judged = judge_hits(
            staging / ANSWERS_FOLDER,
            earlier / ANSWERS_FOLDER,
            judging.judge,
            dataset,
            rankings=rankings,
            depth=judging.depth,
        )
    counts = meter.counts("judge")
    warning = redact_keys(judged.warning)
    if warning and judging.serves_primary:
        raise BackendError(warning)
    record = judged.record
    if record is not None:
        record = replace(
            record,
            truncated=int(counts.get("truncated", 0)),
            without_schema=int(counts.get("without_schema", 0)),
        )
    return judged._replace(record=record, warning=warning)


def with_judge_and_times(
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
