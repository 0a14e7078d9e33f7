"""The sentence of each kind of warning.

The first screen shows them by `warning_sentences` (those that may change the verdict)
and `note_sentences` (how something was measured).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.english import (
    count_of,
    first_names,
    join_names,
    names_or_count,
    possessive,
    rising_run_count,
    shared_word_count,
    tied_run_count,
    unconverted_count,
)
from harness.evaluation.warnings import (
    NOTE_KINDS,
    ChangedAnswers,
    ClickLabels,
    EstimatedTokens,
    Fragile,
    HalfRead,
    JudgedGap,
    MatchedIds,
    NoHits,
    NoSharedWord,
    RisingScores,
    RunWarning,
    ShortContexts,
    TiedRun,
    UnconvertedFiles,
    Unjudged,
    UnknownHits,
    UnknownRepeatability,
    WarningKind,
    WholeDocuments,
)

UNLABELLED_NOTE = "documents without a label count as irrelevant"


def note_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the sentences that say how something was measured."""
    return [
        warning_sentence(warning) for warning in warnings if warning.kind in NOTE_KINDS
    ]


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the sentences of warnings that may change the verdict.

    If several retrievers are unevenly labelled, only the one farthest from the leader
    has a sentence, and no other sentence is about missing labels. Fragile pairs have
    theirs where their verdict is told.
    """
    gaps = [warning for warning in warnings if isinstance(warning, JudgedGap)]
    farthest = max(gaps, key=lambda warning: warning.gap, default=None)
    left_out = {WarningKind.FRAGILE, WarningKind.JUDGED_GAP, *NOTE_KINDS}
    if gaps:
        left_out.add(WarningKind.UNJUDGED)
    return [
        warning_sentence(warning)
        for warning in warnings
        if warning is farthest or warning.kind not in left_out
    ]


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> warning = Unjudged("b", "a", 0.25, unjudged_share_of_leader=0.04, cutoff=10)
    >>> print(warning_sentence(warning))
    25 % of the first 10 hits of b have no label (4 % of those of a): documents \
without a label count as irrelevant.
    """
    return SENTENCES[warning.kind](warning)


def _no_shared_word_sentence(warning: NoSharedWord) -> str:
    count = shared_word_count(round(warning.without), round(warning.queries))
    return f"{count}: {first_names(warning.query_ids)}."


def _unconverted_files_sentence(warning: UnconvertedFiles) -> str:
    return f"{unconverted_count(warning.files)}."


def _unknown_repeatability_sentence(warning: UnknownRepeatability) -> str:
    names = names_or_count(warning.retrievers, 3)
    return f"{names}: repeatability unknown: set trials."


def _changed_answers_sentence(warning: ChangedAnswers) -> str:
    compared = count_of(round(warning.compared), "query")
    return (
        f"{warning.retriever} answers {warning.changed:.0f} of {compared} "
        "differently when asked again: set trials."
    )


def _short_contexts_sentence(warning: ShortContexts) -> str:
    queries = count_of(round(warning.queries), "query")
    return (
        f"{warning.retriever}: the passages of {queries} end before the "
        "measured context does; raise depth."
    )


def _whole_documents_sentence(warning: WholeDocuments) -> str:
    return f"Passages of {names_or_count(warning.retrievers, 3)} are whole documents."


def _estimated_tokens_sentence(_: EstimatedTokens) -> str:
    return (
        "Tokens are words times 4/3, rounded up for each passage; "
        "[budget] tokenizer counts them."
    )


def _half_read_sentence(warning: HalfRead) -> str:
    up_to = "up to " if warning.least_share < warning.greatest_share else ""
    share = f"{up_to}{_percent(warning.greatest_share)} of the documents"
    if warning.least_share == 1:
        share = "all documents"
    verb = "reads" if len(warning.retrievers) == 1 else "read"
    names = names_or_count(warning.retrievers, 2)
    return f"{names} {verb} only the start of {share}. Add chunk."


def _unknown_hits_sentence(warning: UnknownHits) -> str:
    counts = f"{warning.unknown:,.0f} of {count_of(round(warning.returned), 'hit')}"
    return (
        f"{warning.retriever} returned {counts} with unknown ids "
        f"(e.g. {warning.example!r}): they count as irrelevant. "
        "Check that both sides use the same ids."
    )


def _matched_ids_sentence(warning: MatchedIds) -> str:
    counts = [
        f"{count:,.0f} by {way}"
        for count, way in zip(warning.counts, warning.ways, strict=True)
    ]
    example = warning.example.rpartition(" (by ")[0] or warning.example
    return (
        f"{possessive(warning.retriever)} ids differ from those of the documents "
        f"and were matched: {', '.join(counts)} (e.g. {example})."
    )


def _unjudged_sentence(warning: Unjudged) -> str:
    worst = warning.retriever
    top = f"the first {warning.cutoff:.0f} hits of {worst}"
    hits = f"{_percent(warning.unjudged_share)} of {top} have no label"
    if worst != warning.leader:
        leader_percent = _percent(warning.unjudged_share_of_leader)
        hits += f" ({leader_percent} of those of {warning.leader})"
    return f"{hits}: {UNLABELLED_NOTE}."


def _judged_gap_sentence(warning: JudgedGap) -> str:
    more = warning.more
    shares = f"{_percent(warning.more_share)} of the hits of {more} have a label, "
    shares += f"{_percent(warning.less_share)} of those of {warning.less}"
    return f"{shares}: {UNLABELLED_NOTE}, which favours {more}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _no_hits_sentence(warning: NoHits) -> str:
    pronoun = "it scores" if warning.without == 1 else "they score"
    return (
        f"{warning.retriever} returned nothing for {warning.without:,.0f} of "
        f"{count_of(round(warning.queries), 'query')} (e.g. {warning.query!r}): "
        f"{pronoun} 0."
    )


def _tied_run_sentence(warning: TiedRun) -> str:
    count = tied_run_count(round(warning.tied), round(warning.queries))
    return f"{warning.retriever}: {count}."


def _rising_scores_sentence(warning: RisingScores) -> str:
    count = rising_run_count(round(warning.rising), round(warning.queries))
    return f"{warning.retriever}: {count}"


def _clicks_sentence(warning: ClickLabels) -> str:
    queries = count_of(round(warning.queries), "query")
    return (
        f"The labels of {queries} are clicks: they favour the search that "
        "showed the documents, and retrievers like it."
    )


def _fragile_sentence(warning: Fragile) -> str:
    return (
        "Three queries with the largest possible loss would reverse the "
        f"result of {join_names([warning.a, warning.b])}: label more queries."
    )


SENTENCES: Mapping[WarningKind, Callable[[Any], str]] = {
    WarningKind.FRAGILE: _fragile_sentence,
    WarningKind.HALF_READ: _half_read_sentence,
    WarningKind.UNKNOWN_HITS: _unknown_hits_sentence,
    WarningKind.MATCHED_IDS: _matched_ids_sentence,
    WarningKind.UNJUDGED: _unjudged_sentence,
    WarningKind.JUDGED_GAP: _judged_gap_sentence,
    WarningKind.SHORT_CONTEXTS: _short_contexts_sentence,
    WarningKind.WHOLE_DOCUMENTS: _whole_documents_sentence,
    WarningKind.ESTIMATED_TOKENS: _estimated_tokens_sentence,
    WarningKind.CHANGED_ANSWERS: _changed_answers_sentence,
    WarningKind.UNKNOWN_REPEATABILITY: _unknown_repeatability_sentence,
    WarningKind.NO_HITS: _no_hits_sentence,
    WarningKind.TIED_RUN: _tied_run_sentence,
    WarningKind.RISING_SCORES: _rising_scores_sentence,
    WarningKind.NO_SHARED_WORD: _no_shared_word_sentence,
    WarningKind.UNCONVERTED_FILES: _unconverted_files_sentence,
    WarningKind.CLICKS: _clicks_sentence,
}
