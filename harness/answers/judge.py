"""The protocol of judges."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from harness.records.judge_readings import ClaimPassage, EntailmentWord, JudgeIdentity
from retrievers.errors import UnreadableReplies

JudgeReply = TypeVar("JudgeReply")
JudgeRequest = TypeVar("JudgeRequest")
JudgeReplies = Iterator[tuple[int, JudgeReply | None]]
"""Indices of requests with their replies, in any order: None if unreadable; a missing index has no reply."""


class Inquiry(NamedTuple):
    """A query, and a text that may help to answer it."""

    question: str
    text: str


class GeneratedQuestions(NamedTuple):
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
    def unreadable_example(self) -> str:
        """The first unreadable reply, for a message: "such as …"; "" if there was none."""

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """Whether each text entails its claim."""

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, asked: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each sentence helps to answer its query."""

    def relevance(
        self, asked: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """Ratings 0, 1 or 2 of each passage for its query; none from a judge that is not a language model."""

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """The questions that each text answers; none from a judge that is not a language model."""


def identity_of(judge: Judge) -> JudgeIdentity:
    """The fields of every row of a judge."""
    return JudgeIdentity(judge.name, judge.prompt)


def ask_missing(
    requests: Iterable[JudgeRequest],
    is_known: Callable[[JudgeRequest], bool],
    ask: Callable[[Sequence[JudgeRequest]], JudgeReplies[JudgeReply]],
) -> dict[JudgeRequest, JudgeReply | None]:
    """Request everything that is unknown, once each.

    If a judge's earlier replies are known, unreadable replies now are not an error.

    Returns:
        The replies in the order of the requests; None if unreadable or missing.

    Raises:
        Unreadable: there are no earlier replies, and every reply is unreadable.

    >>> ask_missing(["a", "b", "a"], {"b"}.__contains__, lambda missing: iter([(0, len(missing))]))
    {'a': 1}
    """
    distinct = list(dict.fromkeys(requests))
    missing = [one for one in distinct if not is_known(one)]
    answers: dict[int, JudgeReply | None] = {}
    try:
        answers.update(ask(missing) if missing else ())
    except UnreadableReplies:
        if len(missing) == len(distinct):
            raise
    return {one: answers.get(place) for place, one in enumerate(missing)}
