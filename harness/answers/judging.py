"""What is asked of a judge of answers and what it may say; and the judge without a model, which compares words.

That one is weak, offline and always the same: it sees words and no meaning, so that a paraphrase is missed, a negation
is overlooked, and nothing is ever contradicted.
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
"""Places of what was asked, each with its answer, in any order: None where it could not be read; a place that does not
come was not answered."""
THRESHOLD = 0.8
"""The share of a claim's distinct tokens that have to stand in a passage."""
HELPS = 0.5
"""The share of a question's distinct tokens from which a sentence is taken to help with it."""


class Inquiry(NamedTuple):
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

    @property
    def unread(self) -> str:
        """The first reply that could not be read, as a message shows it: "such as …"; "" where there was none."""

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Whether each text entails its claim."""

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence helps to answer its question."""

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its question; nothing from a judge that is no language model."""

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """The questions that each text answers; nothing from a judge that is no language model."""


def signed(judge: Judge) -> By:
    """What stands in every row that a judge wrote."""
    return By(judge.name, judge.prompt)


def asked_once(
    wanted: Iterable[Given], known: Callable[[Given], bool], ask: Callable[[Sequence[Given]], Replies[Answer]]
) -> dict[Given, Answer | None]:
    """Ask for what is not known yet, each thing once.

    A judge of whom something is known was readable before: where the rest cannot be read, it stays without an answer.

    Returns:
        What came back, in the order in which it was wanted; None where it could not be read or did not come.

    Raises:
        Unreadable: nothing is known, and nothing that came back can be read.

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
    """What judges share that are not chat models: a text's claims are its sentences; no ratings, and no questions."""

    prompt = ""
    unread = ""

    def __init__(self, threshold: float) -> None:
        """Check the threshold from which a claim is entailed, above 0 and at most 1."""
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
    """Calls a claim entailed where at least `threshold` of its distinct BM25 tokens stand in the passage, else neutral.

    A sentence helps with a question where it holds half of the question's distinct tokens.
    """

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        """Ask for a share of tokens, above 0 and at most 1."""
        super().__init__(threshold)
        self.name = f"lexical {RULE} {threshold:g}"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> Replies[Word]:
        """Entailed or neutral for each pair; a claim without a token has no verdict."""
        for place, pair in enumerate(pairs):
            share = held(pair.claim, pair.text)
            yield place, None if share is None else "entailed" if share >= self.threshold else "neutral"

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence holds half of its question's tokens."""
        for place, one in enumerate(asked):
            share = held(one.question, one.text)
            yield place, None if share is None else share >= HELPS


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
