"""The protocol of judges, which give verdicts on texts."""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from harness.records.judge_readings import ClaimPassage, EntailmentWord, JudgeIdentity

ReplyType = TypeVar("ReplyType")


class IndexedReply(NamedTuple, Generic[ReplyType]):
    """The reply to one of several requests."""

    request_index: int
    """The position of its request among the requests of the call."""
    reply: ReplyType | None
    """None if it is unreadable."""


JudgeReplies = Iterator[IndexedReply[ReplyType]]
"""Replies in any order; a request whose index is missing has no reply."""


class Inquiry(NamedTuple):
    """A question, and a text that may help to answer it."""

    question: str
    text: str


class GeneratedQuestions(NamedTuple):
    """Questions that a model wrote for an answer."""

    questions: tuple[str, ...]
    noncommittal: tuple[bool, ...]
    """Whether the model called the answer evasive, once for each question."""


class Judge(Protocol):
    """Gives verdicts on texts.

    Reading the replies of any method may raise `UnreadableReplies`: the first replies
    of a chat model were all unreadable, and it is sent no more requests.
    """

    @property
    def name(self) -> str:
        """All that affects a verdict except the prompts, such as kind and model."""

    @property
    def prompts_digest(self) -> str:
        """A digest of the prompts; "" without prompts."""

    @property
    def unreadable_example(self) -> str:
        """The first unreadable reply as a message quotes it; "" if there was none.

        It begins with "such as", for example: such as 'I am sorry.'
        """

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """How each text bears on its claim: entailed, contradicted or neutral."""

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The claims that each text makes."""

    def helps(self, inquiries: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each text, a sentence, helps to answer its question."""

    def relevance(
        self, inquiries: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """The ratings of each text, a passage: one for each wording of the prompt.

        A rating is 0, 1 or 2; None if the reply is unreadable. Only chat models rate:
        other judges yield no reply.
        """

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """The questions that each text answers.

        Only chat models write questions: other judges yield no reply.
        """


def identity_of(judge: Judge) -> JudgeIdentity:
    """Return what identifies a judge in each stored row: its name and its prompts."""
    return JudgeIdentity(judge.name, judge.prompts_digest)
