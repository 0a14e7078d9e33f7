"""The protocol of judges."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from harness.records.judge_readings import ClaimPassage, EntailmentWord, JudgeIdentity
from retrievers.errors import UnreadableReplies

JudgeReply = TypeVar("JudgeReply")
JudgeRequest = TypeVar("JudgeRequest")


class IndexedReply(NamedTuple, Generic[JudgeReply]):
    """The reply to one request."""

    request_index: int
    """The index of the request."""
    reply: JudgeReply | None
    """None if it is unreadable."""


JudgeReplies = Iterator[IndexedReply[JudgeReply]]
"""Replies in any order; a request whose index is missing has no reply."""


class Inquiry(NamedTuple):
    """A question, and a text that may help to answer it."""

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
        """Kind, model and threshold: all that affects a verdict, except the prompt."""

    @property
    def prompt(self) -> str:
        """A digest of the prompts; "" without prompts."""

    @property
    def unreadable_example(self) -> str:
        """The words "such as" with the first unreadable reply; "" if there was none."""

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """Whether each text entails its claim."""

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, inquiries: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each text helps to answer its question."""

    def relevance(
        self, inquiries: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """For each inquiry, one rating per wording of the prompt.

        A rating is 0, 1 or 2; None where the reply is unreadable. A judge that is not a
        language model gives none.
        """

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """The questions that each text answers.

        A judge that is not a language model gives none.
        """


def identity_of(judge: Judge) -> JudgeIdentity:
    """Return what identifies a judge in each stored row: its name and its prompts."""
    return JudgeIdentity(judge.name, judge.prompt)


def ask_missing(
    requests: Iterable[JudgeRequest],
    is_known: Callable[[JudgeRequest], bool],
    ask: Callable[[Sequence[JudgeRequest]], JudgeReplies[JudgeReply]],
) -> dict[JudgeRequest, JudgeReply | None]:
    """Request what is not known yet, each once.

    If a judge's earlier replies are known, unreadable replies now are not an error.

    Returns:
        The replies in the order of the requests; None if unreadable or missing.

    Raises:
        UnreadableReplies: there are no earlier replies, and every reply is unreadable.

    >>> count_requests = lambda missing: iter([IndexedReply(0, len(missing))])
    >>> ask_missing(["a", "b", "a"], {"b"}.__contains__, count_requests)
    {'a': 1}
    """
    distinct = list(dict.fromkeys(requests))
    missing = [request for request in distinct if not is_known(request)]
    replies: dict[int, JudgeReply | None] = {}
    try:
        if missing:
            replies.update(ask(missing))  # pairs of an index and a reply
    except UnreadableReplies:
        # Where some replies are known, the judge works: the readable ones are kept.
        if len(missing) == len(distinct):
            raise
    return {request: replies.get(index) for index, request in enumerate(missing)}
