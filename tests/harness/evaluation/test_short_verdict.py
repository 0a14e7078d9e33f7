"""Verdicts in one short line."""

from dataclasses import replace

import numpy as np
import pytest

from harness.evaluation.evaluate import conclude_scores
from harness.evaluation.evaluation import SweepChoice
from harness.records import RetrieverFailure
from harness.report.index import index_headline
from harness.stats.settings import Settings
from harness.wording.failures import failure_summary, short_failure
from harness.wording.short_verdict import ShortVerdict, short_verdict
from tests.support.scored import compare, concluded, scored

BASE = np.random.default_rng(4).random(60) / 2
SWEEP = SweepChoice(
    default="b",
    chosen="a",
    configurations=1,
    gain=0.4,
    expected=None,
    expected_error=None,
    low=None,
    p_value=0.001,
    method="draws",
    beats=False,
    too_few=False,
    alike=("a",),
    effects=(),
)
NEAR = BASE + 0.4 - 0.01 * np.random.default_rng(5).random(60)


@pytest.mark.parametrize(
    ("scores", "line"),
    [
        ({"a": BASE + 0.4, "b": BASE}, "● use a beats b"),
        ({"a": BASE + 0.4, "b": BASE, "c": BASE}, "● use a beats both others"),
        (
            {"a": BASE + 0.4, "near": BASE + 0.4, "c": BASE},
            "? undecided a leads; near may be as good",
        ),
        ({"a": BASE, "b": BASE}, "? undecided a leads; the other may be as good"),
        ({"a": BASE}, "alone a has no other to compare"),
        ({"a": 0 * BASE, "b": 0 * BASE}, "no scores  every score is 0"),
    ],
)
def test_a_verdict_fits_one_line(scores, line):
    evaluation = concluded(scores, compare(scores) if len(scores) > 1 else ())
    verdict = short_verdict(evaluation)
    parts = [verdict.sign, verdict.word, verdict.retriever, verdict.words]
    assert " ".join(parts).strip() == line
    assert len(line) <= 60


def test_a_retriever_within_the_margin_is_not_among_the_beaten():
    scores = {"a": BASE + 0.4, "near": NEAR, "c": BASE}
    rows = compare(scores, settings=Settings(margin=0.1))
    verdict = short_verdict(concluded(scores, rows, settings=Settings(margin=0.1)))
    assert verdict.sentence == "a is as good as 1 other; beats c"


def test_a_failed_retriever_is_no_winner():
    scores = {"a": BASE + 0.4, "b": BASE}
    evaluation = concluded(scores, compare(scores))
    failed = evaluation.model_copy(
        update={"failed": (RetrieverFailure("ours", "refused"),)}
    )
    verdict = short_verdict(failed)
    assert (verdict.state, verdict.word) == ("muted", "failed")
    assert verdict.words == "ours (refused)"


@pytest.mark.parametrize(
    ("choice", "line"),
    [
        ({"beats": True}, "use a beats b"),
        (
            {"beats": True, "configurations": 3, "alike": ("a", "c", "d")},
            "use a beats b; 2 of 3 settings may be as good",
        ),
        ({"too_few": True}, "undecided a leads 1 setting; too few queries"),
        (
            {"too_few": True, "gain": -0.1},
            "undecided b leads 1 setting; too few queries",
        ),
        ({}, "keep b is not shown to lose to any of 1 setting"),
    ],
)
def test_the_choice_of_a_sweep_is_one_line(choice, line):
    scores = {"a": BASE + 0.4, "b": BASE}
    evaluation = conclude_scores(
        scored(scores), compare(scores), Settings(), sweep=replace(SWEEP, **choice)
    )
    verdict = short_verdict(evaluation)
    assert f"{verdict.word} {verdict.sentence}" == line


@pytest.mark.parametrize(
    ("words", "headline", "reason"),
    [
        (["use", "keep"], "One of two experiments has a winner", "One keeps what"),
        (["keep"], "Nothing is shown to beat what you have", ""),
        (["keep", "keep"], "Neither of two experiments has a winner", "Two keep what"),
        (["keep"] * 3, "None of three experiments has a winner", "Three keep"),
        (["undecided"], "No winner yet", ""),
    ],
)
def test_what_is_kept_for_want_of_a_better_one_is_no_winner(words, headline, reason):
    verdicts = [ShortVerdict("good", "●", word, "a", "") for word in words]
    found_headline, found_reason = index_headline(verdicts)
    assert found_headline == headline
    assert found_reason.startswith(reason)


def test_a_sweep_that_a_model_alone_judged_keeps_nothing():
    scores = {"a": BASE + 0.4, "b": BASE}
    settings = Settings(judged_by_people=False)
    evaluation = conclude_scores(
        scored(scores), compare(scores, settings=settings), settings, sweep=SWEEP
    )
    assert short_verdict(evaluation).state == "undecided"


@pytest.mark.parametrize(
    ("reason", "summary"),
    [
        ("('Connection aborted; peer', 1)", "ours failed (('Connection aborted)"),
        ("", "ours failed"),
        ("ours: ", "ours failed"),
        ("busy (tried 3; then no more)", "ours failed (busy)"),
    ],
)
def test_a_failure_has_no_empty_brackets(reason, summary):
    failure = RetrieverFailure("ours", reason)
    assert failure_summary([failure]) == summary
    assert short_failure([failure]) == summary.replace(" failed", "")
