"""Warnings: their stored form and their sentences."""

import pytest

from harness.evaluation import warnings
from harness.evaluation.run_warnings import judged_warnings
from harness.evaluation.warning_sentences import warning_sentence

WARNINGS = [
    warnings.Fragile("x", "y"),
    warnings.HalfRead(("x", "y"), 0.1, 0.2),
    warnings.UnknownHits("x", 1, 2, "d1"),
    warnings.MatchedIds("x", (1,), ("suffix",), "d1"),
    warnings.Unjudged("x", "y", 0.1, 0.2, 10),
    warnings.JudgedGap("x", "y", 0.2, 0.1),
    warnings.ClickLabels(2),
    warnings.ShortContexts("x", 2),
    warnings.WholeDocuments(("x",)),
    warnings.EstimatedTokens(),
    warnings.ChangedAnswers("x", 1, 2),
    warnings.UnknownRepeatability(("x",)),
    warnings.NoHits("x", 2, 3, "q2"),
    warnings.TiedRun("x", 2, 2),
    warnings.RisingScores("x", 40, 40),
    warnings.NoSharedWord(3, 40, ("q1", "q2", "q3")),
    warnings.UnconvertedFiles(("a.docx",)),
]


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda warning: warning.kind.value)
def test_a_warning_is_read_back_from_its_stored_form(warning):
    assert warnings.read_warning(warnings.store_warning(warning)) == warning


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"kind": "new"},
        {"kind": "clicks", "retrievers": [], "numbers": [], "words": []},
        {"kind": "clicks", "retrievers": [], "numbers": ["many"], "words": []},
        {"kind": "clicks", "retrievers": ["x"], "numbers": [1], "words": []},
        {"kind": "fragile", "retrievers": ["x"], "numbers": [], "words": []},
    ],
)
def test_a_damaged_warning_is_refused(stored):
    with pytest.raises(ValueError, match=r"warning|number|field"):
        warnings.read_warning(stored)


def test_every_kind_of_warning_has_its_own_sentence():
    sentences = {warning.kind: warning_sentence(warning) for warning in WARNINGS}
    assert sentences.keys() == set(warnings.WarningKind)
    assert len(set(sentences.values())) == len(warnings.WarningKind)


@pytest.mark.parametrize("share", [0.9, 0.85])
def test_from_a_tenth_without_labels_on_there_is_a_warning(share):
    assert [warning.kind for warning in judged_warnings({"a": share}, 10)] == [
        warnings.WarningKind.UNJUDGED
    ]
    assert not list(judged_warnings({"a": 0.91}, 10))
