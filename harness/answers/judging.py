"""What is asked of a judge of answers, and what it may say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args

from harness.answers.nuggets import Support
from harness.measures.truth import Truth

Word = Literal["entailed", "contradicted", "neutral"]
WORDS: tuple[str, ...] = get_args(Word)
SUPPORTS: tuple[str, ...] = get_args(Support)
Answer = TypeVar("Answer")
Replies = Iterator[tuple[int, Answer | None]]
"""Places of what was asked, each with its answer, in any order: None where it could not be read; a place that does not
come was not answered."""


class Pair(NamedTuple):
    """A claim, and a text that may entail it."""

    claim: str
    text: str


class Asked(NamedTuple):
    """A question, and a text that may help to answer it."""

    question: str
    text: str


class Questions(NamedTuple):
    """What a model would have to be asked to give an answer."""

    questions: tuple[str, ...]
    noncommittal: tuple[bool, ...]
    """For each, whether the model called the answer evasive."""


class Judge(Protocol):
    """Reads texts and gives verdicts on them."""

    @property
    def name(self) -> str:
        """Kind, model and threshold: all that changes a verdict, but for the prompt."""

    @property
    def prompt(self) -> str:
        """A digest of the prompts; "" where no model is prompted."""

    def verdicts(self, pairs: Sequence[Pair], round_: int = 1) -> Replies[Word]:
        """Whether each text entails its claim; `round_` 2 asks the same once more, for the judge's noise."""

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that each text makes."""

    def supports(self, pairs: Sequence[Pair]) -> Replies[Support]:
        """How far each text holds its claim, as a nugget."""

    def helps(self, asked: Sequence[Asked]) -> Replies[bool]:
        """Whether each sentence helps to answer its question."""

    def relevance(self, asked: Sequence[Asked]) -> Replies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its question; nothing from a judge that is no language model."""

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """The questions that each text answers; nothing from a judge that is no language model."""


@lru_cache(maxsize=1 << 16)
def digest_of(text: str) -> str:
    """A short name of a text: 16 hexadecimal digits of its SHA-256.

    >>> digest_of("The fee is 300 yen.")
    'f36a08de5a65a3e3'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def truth_of(word: str | None) -> Truth:
    """Whether a verdict says that the claim is entailed; unknown without a verdict.

    >>> truth_of("entailed"), truth_of("contradicted"), truth_of(None)
    (True, False, None)
    """
    return None if word is None else word == "entailed"
