"""A judge without a model: a claim is entailed where its words stand in the passage. Weak, offline, always the same.

It sees words and no meaning: a paraphrase is missed, a negation is overlooked, nothing is ever contradicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from harness.answers.judging import Inquiry, Questions, Replies
from harness.answers.text import sentences
from harness.records import ClaimPassage, Word
from retrievers.errors import InputError, Problem
from retrievers.words import RULE, tokenize

THRESHOLD = 0.8
"""The share of a claim's distinct tokens that have to stand in a passage."""
HELPS = 0.5
"""The share of a question's distinct tokens from which a sentence is taken to help with it."""


class LexicalJudge:
    """Calls a claim entailed where at least `threshold` of its distinct BM25 tokens stand in the passage, else neutral.

    A text's claims are its sentences; a sentence helps with a question where it holds half of the question's distinct
    tokens. It rates no relevance and makes no questions.
    """

    prompt = ""
    unread = ""

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        """Ask for a share of tokens, above 0 and at most 1."""
        if not 0 < threshold <= 1:
            raise InputError(Problem("judge.threshold", f"{threshold} is not above 0 and at most 1"))
        self.threshold = threshold
        self.name = f"lexical {RULE} {threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage], round_: int = 1) -> Replies[Word]:
        """Entailed or neutral for each pair; a claim without a token has no verdict."""
        for place, pair in enumerate(pairs):
            share = held(pair.claim, pair.text)
            yield place, None if share is None else "entailed" if share >= self.threshold else "neutral"

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The sentences of each text."""
        for place, text in enumerate(texts):
            yield place, tuple(sentences(text))

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence holds half of its question's tokens."""
        for place, one in enumerate(asked):
            share = held(one.question, one.text)
            yield place, None if share is None else share >= HELPS

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Nothing: words alone give no rating."""
        return iter(())

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """Nothing: words alone make no question."""
        return iter(())


def held(claim: str, passage: str) -> float | None:
    """The share of a claim's distinct tokens that stand in a passage; None for a claim without a token.

    >>> held("the fee is monthly", "It asks whether the fee of 300 yen is paid in advance.")
    0.75
    """
    wanted = _tokens(claim)
    return len(wanted & _tokens(passage)) / len(wanted) if wanted else None


@lru_cache(maxsize=1 << 14)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))
