"""Judging claims while a run goes on."""

from collections.abc import Sequence
from pathlib import Path

from harness.records import Run
from harness.records.judge_files import ANSWERS_FOLDER
from harness.records.judge_readings import JudgedClaims
from harness.writing.write_results import RunMaterial
from retrievers.cache import Cache
from retrievers.errors import BackendError
from retrievers.options.placeholders import redact_keys


def judge_claims(
    staging_dir: Path, work: RunMaterial, runs: Sequence[Run], cache: Cache
) -> JudgedClaims:
    """Have the claims of reference answers judged, where the experiment measures by them.

    Raises:
        BackendError: the judge failed, and the measure that decides rests on it; rankings and replies are kept.
    """
    loaded, meter = work.loaded, work.meter
    measures = [measure for measure in loaded.question.measures if measure.uses_claims]
    if not measures or loaded.experiment.judge is None:
        return JudgedClaims({}, {})
    from harness.answers.declared_judge import build_judge
    from harness.answers.rankings_judge import judge_hits

    rankings = {one.retriever: one.rankings for one in runs if not one.error}
    with meter.stage("judge"):
        judge = build_judge(loaded.experiment.judge, cache, meter)
        judgment = judge_hits(
            staging_dir / ANSWERS_FOLDER,
            work.folder / ANSWERS_FOLDER,
            judge,
            work.dataset,
            rankings,
            measures,
        )
    counts = meter.counts("judge")
    asked = {
        name: str(int(counts[name]))
        for name in ("truncated", "without_schema")
        if counts.get(name)
    }
    warning = redact_keys(judgment.warning)
    if warning and loaded.question.primary.uses_claims:
        raise BackendError(warning)
    return judgment._replace(facts={**judgment.facts, **asked}, warning=warning)
