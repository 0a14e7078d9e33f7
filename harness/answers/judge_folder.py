"""The judging of a folder of answers.

One process at a time asks the judge (`ask_judge`) and stores what it says; `score`
computes the measures afterwards, without a request.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.answers.ask_judge import ask_judge, claim_pairs
from harness.answers.case import build_cases
from harness.answers.declared_judge import build_judge
from harness.answers.extras import require_extras
from harness.answers.inputs import AnswerInputs, read_answer_inputs
from harness.answers.judge import Judge
from harness.english import count_of
from harness.records.judge_readings import JudgeReadings
from retrievers.cache import Cache, default_cache_path
from retrievers.errors import BackendError
from retrievers.files.text_files import exclusive_lock, explain_write_errors
from retrievers.meter import Budget, Meter


class VerdictCounts(NamedTuple):
    """The counts of a judge's verdicts."""

    judge: str
    verdicts: int
    """Number of pairs of claim and text with a verdict."""
    unreadable: int
    """Number of pairs without one: null, which is not "no"."""
    claims_missing: int
    """Number of responses whose claims could not be read."""
    truncated: int = 0
    """Number of items with a truncated text, in this call."""
    without_schema: int = 0
    """Number of replies of a server that supports no schema, in this call."""

    def lines(self) -> Iterator[str]:
        """Yield the counts in words: what `harness answers judge` prints, and notes."""
        yield (
            f"{self.judge}: {count_of(self.verdicts, 'verdict')}, "
            f"{self.unreadable:,} unreadable (undefined, never 0)"
        )
        if self.claims_missing:
            texts = count_of(self.claims_missing, "text")
            yield f"the claims of {texts} could not be read"
        if self.truncated:
            yield (
                f"{self.truncated:,} were judged by the start of "
                "a text longer than [judge] longest"
            )
        if self.without_schema:
            yield (
                "the server supports no schema: "
                f"{self.without_schema:,} replies came without one"
            )
        if self.judge.startswith("lexical"):
            yield (
                "weak: it compares words only, misses paraphrases "
                "and never finds a contradiction"
            )


def count_verdicts(
    inputs: AnswerInputs, judge: Judge, readings: JudgeReadings
) -> VerdictCounts:
    """Count the verdicts on the pairs that the measures need."""
    cases = build_cases(inputs.queries, inputs.systems, readings)
    pairs = {pair for case in cases for pair in claim_pairs(case)}
    words = [readings.verdict_word(*pair) for pair in pairs]
    unreadable = words.count(None)
    without_claims = {
        case.answer.response for case in cases if case.response_claims is None
    }
    return VerdictCounts(
        judge.name,
        verdicts=len(words) - unreadable,
        unreadable=unreadable,
        claims_missing=len(without_claims),
    )


def judge_answers_folder(
    experiment: Path,
    folder: Path,
    *,
    max_cost: float | None = None,
    allow_code: bool = True,
) -> VerdictCounts:
    """Ask the judge for all that is missing, and store it in the folder.

    Args:
        experiment: the file, which names the data set and the judge.
        folder: of the answers.
        max_cost: dollars that may be spent; None: any sum.
        allow_code: whether the experiment may name Python code.

    Raises:
        InputError: a problem with the experiment, the data or the answers.
        BackendError: the judge failed permanently, or every reply is unreadable;
            OverBudget before more is spent than allowed.
    """
    # Only scoring needs them, but judging costs time and money: refuse before.
    require_extras(experiment, allow_code=allow_code)
    inputs = read_answer_inputs(experiment, folder, allow_code=allow_code)
    meter = Meter(budget=Budget(max_cost))
    verdicts_path = folder / "verdicts.jsonl"
    with explain_write_errors(verdicts_path):
        lock = exclusive_lock(
            verdicts_path, "is in use by another process", "wait for it, and run again"
        )
    with Cache(default_cache_path()) as cache, lock, meter.stage("judge"):
        judge = build_judge(inputs.judge, cache, meter)
        readings = ask_judge(folder, judge, inputs.queries, inputs.systems)
    meter_counts = meter.counts("judge")
    verdict_counts = count_verdicts(inputs, judge, readings)
    if judge.unreadable_example and not verdict_counts.verdicts:
        raise BackendError(
            f"{judge.name} gave {verdict_counts.unreadable:,} verdicts, none of them "
            f"readable ({judge.unreadable_example}): nothing was judged; "
            "check the model and its server, and run again"
        )
    meter.budget.check(f"verdicts so far are in {folder}")
    return verdict_counts._replace(
        truncated=int(meter_counts.get("truncated", 0)),
        without_schema=int(meter_counts.get("without_schema", 0)),
    )
