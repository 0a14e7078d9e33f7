"""What is asked of a judge of answers, and what it may say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from harness.records import ClaimPassage, Word
from retrievers.errors import Unreadable

Answer = TypeVar("Answer")
Given = TypeVar("Given")
Replies = Iterator[tuple[int, Answer | None]]
"""Places of what was asked, each with its answer, in any order: None where it could not be read; a place that does not
come was not answered."""


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

    def verdicts(self, pairs: Sequence[ClaimPassage], round_: int = 1) -> Replies[Word]:
        """Whether each text entails its claim; `round_` 2 asks the same once more, for the judge's noise."""

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence helps to answer its question."""

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its question; nothing from a judge that is no language model."""

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """The questions that each text answers; nothing from a judge that is no language model."""


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
