"""Warnings about a run, in words too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from harness.english import (
    count_of,
    first_names,
    join_names,
    names_or_count,
    rising_run_count,
    shared_word_count,
    tied_run_count,
)


class WarningKind(Enum):
    """What a reader of the verdict must know."""

    FRAGILE = "fragile"
    """Three queries with the largest loss would reverse the result of a pair."""
    HALF_READ = "half read"
    """Models read only the start of many documents.

    Numbers: the smallest and the largest share of these documents.
    """
    UNKNOWN_HITS = "unknown hits"
    """Hits of a retriever have unknown ids.

    Numbers: how many, of how many. Words: an example.
    """
    MATCHED_IDS = "matched ids"
    """A retriever writes ids differently.

    Numbers: how many were matched each way. Words: the ways, then an example.
    """
    UNJUDGED = "unjudged"
    """First hits of a retriever have no label.

    Numbers: their share, that of the leader's, and how many hits are first.
    """
    JUDGED_GAP = "judged gap"
    """Many more hits of the first retriever have a label than of the second.

    Numbers: both shares.
    """
    SHORT_CONTEXTS = "short contexts"
    """Passages of a retriever end before the context that is measured.

    Numbers: of how many queries.
    """
    WHOLE_DOCUMENTS = "whole documents"
    """Retrievers return no passages: whole documents are measured."""
    ESTIMATED_TOKENS = "estimated tokens"
    """The tokens of contexts are words times 4/3."""
    CHANGED_ANSWERS = "changed answers"
    """A retriever answers differently when asked again, and has one trial.

    Numbers: how many queries, of how many that were compared.
    """
    UNKNOWN_REPEATABILITY = "unknown repeatability"
    """Retrievers that may answer differently have one trial, and were not compared."""
    TIED_RUN = "tied run"
    """All hits of queries have one score in a saved run.

    Numbers: how many queries, of how many.
    """
    RISING_SCORES = "rising scores"
    """Scores of a saved run rise with rank, as distances do.

    Numbers: in how many queries, of how many.
    """
    NO_SHARED_WORD = "no shared word"
    """BM25 finds nothing for queries of which no document has a word.

    Numbers: how many queries, of how many. Words: the first of their ids.
    """
    CLICKS = "clicks"
    """The labels are clicks. Numbers: of how many queries."""


@dataclass(frozen=True, slots=True)
class RunWarning:
    """One warning; the meaning of its numbers and words depends on its kind."""

    kind: WarningKind
    retrievers: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ()


NOTE_KINDS = (
    WarningKind.UNKNOWN_REPEATABILITY,
    WarningKind.WHOLE_DOCUMENTS,
    WarningKind.ESTIMATED_TOKENS,
)
"""Kinds that say how something was measured; they change no verdict."""


def note_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the sentences that say how something was measured."""
    return [
        warning_sentence(warning) for warning in warnings if warning.kind in NOTE_KINDS
    ]


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the sentences of warnings that may change the verdict.

    Of the unevenly labelled retrievers only the one farthest from the leader.
    """
    gaps = [warning for warning in warnings if warning.kind is WarningKind.JUDGED_GAP]
    farthest = max(gaps, key=_judged_gap, default=None)
    left_out = {WarningKind.FRAGILE, WarningKind.JUDGED_GAP, *NOTE_KINDS}
    if gaps:
        left_out.add(WarningKind.UNJUDGED)
    return [
        warning_sentence(warning)
        for warning in warnings
        if warning is farthest or warning.kind not in left_out
    ]


def _judged_gap(warning: RunWarning) -> float:
    """Return the difference of both shares."""
    high, low = warning.numbers
    return high - low


UNLABELLED_NOTE = "documents without a label count as irrelevant"


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> kind = WarningKind.UNJUDGED
    >>> print(warning_sentence(RunWarning(kind, ("b", "a"), (0.25, 0.04, 10))))
    25 % of b's first 10 hits have no label (4 % of a's): documents without a label \
count as irrelevant.
    """
    return SENTENCES[warning.kind](warning)


def _no_shared_word_sentence(warning: RunWarning) -> str:
    without, queries = map(round, warning.numbers)
    count = shared_word_count(without, queries)
    names = first_names(warning.words)
    return f"{count}: {names}."


def _repeatability_sentence(warning: RunWarning) -> str:
    if warning.kind is WarningKind.UNKNOWN_REPEATABILITY:
        names = names_or_count(warning.retrievers, 3)
        return f"{names}: repeatability unknown: set trials."
    changed, compared = warning.numbers
    queries = f"{changed:.0f} of {count_of(round(compared), 'query')}"
    return (
        f"{warning.retrievers[0]} answers {queries} differently when asked again: "
        "set trials."
    )


def _context_sentence(warning: RunWarning) -> str:
    if warning.kind is WarningKind.SHORT_CONTEXTS:
        queries = count_of(round(warning.numbers[0]), "query")
        return (
            f"{warning.retrievers[0]}: the passages of {queries} end before the "
            "measured context does; raise depth."
        )
    if warning.kind is WarningKind.WHOLE_DOCUMENTS:
        names = names_or_count(warning.retrievers, 3)
        return f"Passages of {names} are whole documents."
    return (
        "Tokens are words times 4/3, rounded up for each passage; "
        "[budget] tokenizer counts them."
    )


def _half_read_sentence(warning: RunWarning) -> str:
    lowest, highest = warning.numbers
    up_to = "up to " if lowest < highest else ""
    share = f"{up_to}{_percent(highest)} of the documents"
    verb = "reads" if len(warning.retrievers) == 1 else "read"
    names = names_or_count(warning.retrievers, 2)
    return f"{names} {verb} only the start of {share}. Add chunk."


def _unknown_hits_sentence(warning: RunWarning) -> str:
    unknown, hits = warning.numbers
    (example,) = warning.words
    counts = f"{unknown:,.0f} of {count_of(round(hits), 'hit')}"
    return (
        f"{warning.retrievers[0]} returned {counts} with unknown ids "
        f"(e.g. {example!r}): they count as irrelevant. "
        "Check that both sides use the same ids."
    )


def _matched_ids_sentence(warning: RunWarning) -> str:
    *ways, example = warning.words
    counts = [
        f"{count:,.0f} by {way}"
        for count, way in zip(warning.numbers, ways, strict=True)
    ]
    return (
        f"Ids of {warning.retrievers[0]} differ from those of the documents, "
        f"and were matched: {', '.join(counts)} (e.g. {example})."
    )


def _unjudged_sentence(warning: RunWarning) -> str:
    worst, leader = warning.retrievers
    unjudged, leader_unjudged, cutoff = warning.numbers
    hits = f"{_percent(unjudged)} of {worst}'s first {cutoff:.0f} hits have no label"
    if worst != leader:
        hits += f" ({_percent(leader_unjudged)} of {leader}'s)"
    return f"{hits}: {UNLABELLED_NOTE}."


def _judged_gap_sentence(warning: RunWarning) -> str:
    first, second = warning.retrievers
    high, low = warning.numbers
    shares = f"{_percent(high)} of {first}'s hits have a label, {_percent(low)}"
    return f"{shares} of {second}'s: {UNLABELLED_NOTE}, which favours {first}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _tied_run_sentence(warning: RunWarning) -> str:
    sentence = tied_run_count(*map(round, warning.numbers))
    return f"{join_names(warning.retrievers)}: {sentence}."


def _rising_scores_sentence(warning: RunWarning) -> str:
    sentence = rising_run_count(*map(round, warning.numbers))
    return f"{join_names(warning.retrievers)}: {sentence}"


def _clicks_sentence(warning: RunWarning) -> str:
    queries = count_of(round(warning.numbers[0]), "query")
    return (
        f"The labels of {queries} are clicks: they favour the search that "
        "showed the documents, and retrievers like it."
    )


def _fragile_sentence(warning: RunWarning) -> str:
    return (
        "Three queries with the largest possible loss would reverse the "
        f"result of {join_names(warning.retrievers)}: label more queries."
    )


SENTENCES: Mapping[WarningKind, Callable[[RunWarning], str]] = {
    WarningKind.FRAGILE: _fragile_sentence,
    WarningKind.HALF_READ: _half_read_sentence,
    WarningKind.UNKNOWN_HITS: _unknown_hits_sentence,
    WarningKind.MATCHED_IDS: _matched_ids_sentence,
    WarningKind.UNJUDGED: _unjudged_sentence,
    WarningKind.JUDGED_GAP: _judged_gap_sentence,
    WarningKind.SHORT_CONTEXTS: _context_sentence,
    WarningKind.WHOLE_DOCUMENTS: _context_sentence,
    WarningKind.ESTIMATED_TOKENS: _context_sentence,
    WarningKind.CHANGED_ANSWERS: _repeatability_sentence,
    WarningKind.UNKNOWN_REPEATABILITY: _repeatability_sentence,
    WarningKind.TIED_RUN: _tied_run_sentence,
    WarningKind.RISING_SCORES: _rising_scores_sentence,
    WarningKind.NO_SHARED_WORD: _no_shared_word_sentence,
    WarningKind.CLICKS: _clicks_sentence,
}
