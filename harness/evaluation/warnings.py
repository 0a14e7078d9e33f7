"""Warnings about a run, in words too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from harness.english import count_of, join_names, names_or_count


class WarningKind(Enum):
    """What a reader of the verdict must know."""

    FRAGILE = "fragile"
    """Few queries with a large loss would undo what is shown of two retrievers."""
    HALF_READ = "half read"
    """Models read only the start of many documents: numbers are the least and the largest share of these."""
    UNKNOWN_HITS = "unknown hits"
    """Hits of a retriever are not documents of the data set: how many, of how many; words are an example."""
    MATCHED_IDS = "matched ids"
    """A retriever's ids are written otherwise: how many were matched each way; words are the ways, then an example."""
    UNJUDGED = "unjudged"
    """The share of a retriever's first hits without a label, that of the leader's, and how many hits are first."""
    JUDGED_GAP = "judged gap"
    """What the first retriever returned was judged much more than what the second did: both shares."""
    CLICKS = "clicks"
    """The labels of so many queries are clicks."""


@dataclass(frozen=True, slots=True)
class RunWarning:
    """One thing to know, with its numbers as its kind has them."""

    kind: WarningKind
    retrievers: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ()


def warning_sentences(warnings: Sequence[RunWarning]) -> list[str]:
    """Return the warnings of a list; of the unevenly labelled retrievers only the one farthest from the leader."""
    gaps = [one for one in warnings if one.kind is WarningKind.JUDGED_GAP]
    farthest = max(gaps, key=lambda one: one.numbers[0] - one.numbers[1], default=None)
    left_out = (
        WarningKind.FRAGILE,
        WarningKind.JUDGED_GAP,
        *([WarningKind.UNJUDGED] if gaps else []),
    )
    return [
        warning_sentence(one)
        for one in warnings
        if one is farthest or one.kind not in left_out
    ]


UNLABELLED_NOTE = "documents without a label count as irrelevant"


def warning_sentence(warning: RunWarning) -> str:
    """Return one warning of a run in words.

    >>> warning_sentence(RunWarning(WarningKind.UNJUDGED, ("b", "a"), (0.25, 0.04, 10)))
    "25 % of b's first 10 hits have no label (4 % of a's): documents without a label count as irrelevant."
    """
    names, numbers, words = warning.retrievers, warning.numbers, warning.words
    match warning.kind:
        case WarningKind.HALF_READ:
            up_to = "up to " if numbers[0] < numbers[1] else ""
            return f"{names_or_count(names, 2)}: {up_to}{100 * numbers[1]:.0f} % of documents truncated; add chunk."
        case WarningKind.UNKNOWN_HITS:
            hits = f"{numbers[0]:,.0f} of {count_of(round(numbers[1]), 'hit')} with unknown ids (e.g. {words[0]!r})"
            return f"{names[0]} returned {hits}: they count as irrelevant. Check that both sides use the same ids."
        case WarningKind.MATCHED_IDS:
            told = ", ".join(
                f"{number:,.0f} by {way}"
                for number, way in zip(numbers, words, strict=False)
            )
            return f"Ids of {names[0]} differ from those of the documents, and were matched: {told} (e.g. {words[-1]})."
        case WarningKind.UNJUDGED:
            beside = (
                f" ({100 * numbers[1]:.0f} % of {names[1]}'s)"
                if names[0] != names[1]
                else ""
            )
            hits = f"{100 * numbers[0]:.0f} % of {names[0]}'s first {numbers[2]:.0f} hits have no label{beside}"
            return f"{hits}: {UNLABELLED_NOTE}."
        case WarningKind.JUDGED_GAP:
            high, low = (f"{100 * number:.0f} %" for number in numbers[:2])
            shares = f"{high} of {names[0]}'s hits have a label, {low} of {names[1]}'s"
            return f"{shares}: {UNLABELLED_NOTE}, which favours {names[0]}."
        case WarningKind.CLICKS:
            whose = f"The labels of {count_of(round(numbers[0]), 'query')} are clicks"
            return f"{whose}: they favour the search that showed the documents, and retrievers like it."
        case WarningKind.FRAGILE:
            return f"Few queries with a large loss would reverse the result of {join_names(names)}: label more queries."
