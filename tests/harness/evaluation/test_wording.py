"""Verdicts are worded in one place: every verdict and reason has its words there, and nothing elsewhere reads them."""

import ast
from dataclasses import replace

import numpy as np
import pytest

from harness.evaluation.conclusions import headline, sentences
from harness.evaluation.evaluation import RunWarning, WarningKind
from harness.evaluation.verdict import Finding, Reason, Verdict
from harness.evaluation.wording import (
    REASONS,
    SIGNS,
    pair_sentence,
    verdict_cell,
    warning_sentence,
)
from harness.stats.settings import Settings
from tests.support.scored import compare, concluded, finding

WORDING = {"harness.evaluation.wording", "harness.evaluation.conclusions", "harness.evaluation.verdict"}
SCORES = {"a": np.linspace(0.2, 0.9, 30), "b": np.linspace(0.21, 0.85, 30)}


def test_every_verdict_and_reason_has_words():
    assert set(SIGNS) == set(Verdict)
    assert set(REASONS) == set(Reason)
    (row,) = compare(SCORES)
    assert len(set(REASONS.values())) == len(Reason)
    for reason, words in REASONS.items():
        sentence = pair_sentence(replace(row, finding=Finding(Verdict.UNDECIDED, reason)), Settings())
        assert sentence.startswith(f"a and b: undecided, {words};")


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("reason", [None, *Reason])
@pytest.mark.parametrize("negligible", [False, True])
def test_a_cell_says_the_whole_finding(verdict, reason, negligible):
    found = Finding(verdict, reason, negligible)
    assert finding(verdict_cell(found)) == found


def test_every_warning_has_words():
    known = {
        kind: warning_sentence(RunWarning(kind, ("x", "y"), (1.0, 2.0, 3.0), ("suffix", "a", "b")))
        for kind in WarningKind
    }
    assert len(set(known.values())) == len(WarningKind)


@pytest.mark.parametrize("by_people", [True, False])
@pytest.mark.parametrize("margin", [None, 0.02, 0.5])
@pytest.mark.parametrize("shift", [0.0, 0.001, 0.3])
def test_a_conclusion_says_who_leads_and_never_more_than_was_shown(by_people, margin, shift):
    settings = Settings(margin=margin, by_people=by_people)
    scores = {"a": SCORES["a"] / 2 + 0.3, "b": SCORES["a"] / 2 + 0.3 - shift, "c": SCORES["b"] / 2}
    rows = compare(scores, settings=settings)
    result = concluded(scores, rows, settings=settings)
    words, line = " ".join(sentences(result)), headline(result)
    assert result.leader in words
    assert result.leader in line or "no difference is shown" in line
    if not by_people:
        assert "decides nothing" in line
    if not result.within_margin[1:]:
        assert "as good as" not in words
    for other in result.plans:
        assert f"worse than {result.leader}: {other}" not in words


def test_no_other_file_reads_or_composes_a_verdict(project):
    """Nothing else compares with the words of verdicts and reasons, or takes them apart."""
    words = {*(one.value for one in Verdict), *REASONS.values()} - {"undecided"}
    found = []
    for file in sorted((project / "harness").rglob("*.py")):
        module = ".".join(file.relative_to(project).with_suffix("").parts)
        if module in WORDING or module.startswith(("harness.answers", "harness.labels", "harness.dataset")):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.Call):
                parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.args
                texts = {
                    one.value
                    for part in parts
                    for one in ast.walk(part)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                }
                if texts & words:
                    found.append(f"{module}:{node.lineno} {sorted(texts & words)}")
    assert not found
