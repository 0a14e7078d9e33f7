"""The interface of a judge of answers; and the judge without a model, which compares words.

That judge is weak, offline and deterministic: it misses paraphrases and negations, and never reports a contradiction.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from harness.answers.overlap import sentences
from harness.records.readings import By, ClaimPassage, Word
from retrievers.errors import InputError, Problem, Unreadable
from retrievers.words import RULE, tokenize

Answer = TypeVar("Answer")
Given = TypeVar("Given")
Replies = Iterator[tuple[int, Answer | None]]
"""Indices of requests with their replies, in any order: None if unreadable; a missing index has no reply."""
THRESHOLD = 0.8
"""The share of a claim's distinct tokens that a passage must contain."""
HELPS = 0.5
"""The share of a query's distinct tokens that a helpful sentence contains."""


class Inquiry(NamedTuple):
    """A query, and a text that may help to answer it."""

    question: str
    text: str


class Questions(NamedTuple):
    """Questions that an answer would answer."""

    questions: tuple[str, ...]
    noncommittal: tuple[bool, ...]
    """For each, whether the model called the answer evasive."""


class Judge(Protocol):
    """Gives verdicts on texts."""

    @property
    def name(self) -> str:
        """Kind, model and threshold: everything that affects a verdict, except the prompt."""

    @property
    def prompt(self) -> str:
        """A digest of the prompts; "" without prompts."""

    @property
    def unread(self) -> str:
        """The first unreadable reply, for a message: "such as …"; "" if there was none."""

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Whether each text entails its claim."""

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence helps to answer its query."""

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its query; none from a judge that is not a language model."""

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """The questions that each text answers; none from a judge that is not a language model."""


def signed(judge: Judge) -> By:
    """The fields of every row of a judge."""
    return By(judge.name, judge.prompt)


def asked_once(
    wanted: Iterable[Given], known: Callable[[Given], bool], ask: Callable[[Sequence[Given]], Replies[Answer]]
) -> dict[Given, Answer | None]:
    """Request everything that is unknown, once each.

    If a judge's earlier replies are known, unreadable replies now are not an error.

    Returns:
        The replies in the order of the requests; None if unreadable or missing.

    Raises:
        Unreadable: there are no earlier replies, and every reply is unreadable.

    >>> asked_once(["a", "b", "a"], {"b"}.__contains__, lambda missing: iter([(0, len(missing))]))
    {'a': 1}
    """
    distinct = list(dict.fromkeys(wanted))
    missing = [one for one in distinct if not known(one)]
    answers: dict[int, Answer | None] = {}
    try:
        answers.update(ask(missing) if missing else ())
    except Unreadable:
        if len(missing) == len(distinct):
            raise
    return {one: answers.get(place) for place, one in enumerate(missing)}


class UnpromptedJudge:
    """The base of judges that are not chat models: a text's claims are its sentences; no ratings, no questions."""

    prompt = ""
    unread = ""

    def __init__(self, threshold: float) -> None:
        """Check the threshold of entailment, above 0 and at most 1."""
        if not 0 < threshold <= 1:
            raise InputError(Problem("judge.threshold", f"{threshold} is not above 0 and at most 1"))
        self.threshold = threshold

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The sentences of each text."""
        for place, text in enumerate(texts):
            yield place, tuple(sentences(text))

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Nothing: no rating."""
        return iter(())

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """Nothing: no question."""
        return iter(())


class LexicalJudge(UnpromptedJudge):
    """A claim is entailed if the passage has at least `threshold` of its distinct BM25 tokens, else neutral.

    A sentence helps if it has half of the query's distinct tokens.
    """

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        """Use a share of tokens, above 0 and at most 1."""
        super().__init__(threshold)
        self.name = f"lexical {RULE} {threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Entailed or neutral for each pair; a claim without a token has no verdict."""
        for place, pair in enumerate(pairs):
            share = held(pair.claim, pair.text)
            yield place, None if share is None else "entailed" if share >= self.threshold else "neutral"

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence has half of its query's tokens."""
        for place, one in enumerate(asked):
            share = held(one.question, one.text)
            yield place, None if share is None else share >= HELPS


def held(claim: str, passage: str) -> float | None:
    """The share of a claim's distinct tokens in a passage; None for a claim without a token.

    >>> held("the fee is monthly", "It asks whether the fee of 300 yen is paid in advance.")
    0.75
    """
    wanted = _tokens(claim)
    return len(wanted & _tokens(passage)) / len(wanted) if wanted else None


@lru_cache(maxsize=1 << 14)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(tokenize(text))
