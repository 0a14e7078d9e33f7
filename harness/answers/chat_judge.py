"""A judge by a chat model.

Texts are quoted as data, and counts must match. A passage may contain an instruction,
but it cannot end its own quotation, and can only cause an allowed verdict. A reply with
a wrong number of verdicts, or prose, is unreadable.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic

from harness.answers.chat_prompts import (
    CLAIMS_PROMPT,
    HELPS_PROMPT,
    MAX_CLAIMS_PER_REQUEST,
    PROMPTS_DIGEST,
    QUESTIONS_PROMPT,
    RELEVANCE_PROMPTS,
    VERDICTS_PROMPT,
    MarkedText,
    MarkedTexts,
    items_prompt,
    texts_prompt,
)
from harness.answers.chat_replies import (
    read_claims,
    read_questions,
    read_rating,
    read_truths,
    read_words,
)
from harness.answers.judge import (
    GeneratedQuestions,
    IndexedReply,
    Inquiry,
    JudgeReplies,
)
from harness.records.judge_readings import ClaimPassage, EntailmentWord
from retrievers.meter import Meter
from retrievers.services.chat import Chat, quote_reply
from retrievers.services.chat_replies import (
    MAX_TEXT_TOKENS,
    AnswerType,
    ChatRequest,
    ask_requests,
    shorten_text,
)


@dataclass(frozen=True, slots=True)
class _Batch:
    """One request about some items."""

    indices: Sequence[int]
    """The indices of the items."""
    request: ChatRequest


@dataclass(frozen=True, slots=True)
class _BatchReply(Generic[AnswerType]):
    """The parsed reply to one request about some items."""

    indices: Sequence[int]
    answer: AnswerType | None
    """None if the request was declined, or the reply is unreadable."""


class ModelJudge:
    """A chat model gives the verdicts.

    Replies are cached: a stopped run resumes, and no reply is paid for twice.

    A declined request or an unreadable reply gives None for its items, and the next run
    requests them again. The passage of verdicts and ratings, the question of `helps`,
    and a text by itself are truncated after a word beyond `longest` tokens; the meter
    counts the items with a truncated text (`truncated`).
    """

    prompts_digest = PROMPTS_DIGEST

    def __init__(
        self, chat: Chat, *, meter: Meter, longest: int = MAX_TEXT_TOKENS
    ) -> None:
        """Judge by a chat model.

        The meter counts calls, tokens and dollars, and has the budget.
        """
        self._chat = chat
        self._meter = meter
        self._longest = longest
        self.unreadable_example = ""
        self.name = f"openai {chat.model.model}"
        if chat.model.other_server:
            self.name += f" at {chat.model.other_server}"
        if longest != MAX_TEXT_TOKENS:
            self.name += f", first {longest} tokens"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """The verdict on each pair; a request is about one passage."""
        passages = MarkedTexts("PASSAGE", [pair.text for pair in pairs])
        claims = MarkedTexts("CLAIM", [pair.claim for pair in pairs])
        batches = self._batches_by_text(VERDICTS_PROMPT, passages, claims)
        return self._item_replies(batches, read_words)

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The claims that the model extracts from each text."""
        batches = [
            self._single_batch(index, CLAIMS_PROMPT, MarkedText("TEXT", text))
            for index, text in enumerate(texts)
        ]
        return self._single_replies(batches, read_claims)

    def helps(self, inquiries: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each sentence helps to answer its query."""
        questions = [inquiry.question for inquiry in inquiries]
        sentences = [inquiry.text for inquiry in inquiries]
        batches = self._batches_by_text(
            HELPS_PROMPT,
            MarkedTexts("QUESTION", questions),
            MarkedTexts("SENTENCE", sentences),
        )
        return self._item_replies(batches, read_truths)

    def relevance(
        self, inquiries: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """Two ratings of each passage, by two wordings, when both have a reply.

        A rating is None if its reply is unreadable.
        """
        wordings = len(RELEVANCE_PROMPTS)
        batches = [
            self._single_batch(
                index * wordings + wording,
                system_prompt,
                MarkedText("PASSAGE", inquiry.text),
                context=(MarkedText("QUESTION", inquiry.question),),
            )
            for index, inquiry in enumerate(inquiries)
            for wording, system_prompt in enumerate(RELEVANCE_PROMPTS)
        ]
        ratings: dict[int, dict[int, int | None]] = {}
        for number, rating in self._single_replies(batches, read_rating):
            index, wording = divmod(number, wordings)
            by_wording = ratings.setdefault(index, {})
            by_wording[wording] = rating
            if len(by_wording) == wordings:
                in_order = tuple(by_wording[i] for i in range(wordings))
                yield IndexedReply(index, in_order)

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """Three generated questions that each text answers."""
        batches = [
            self._single_batch(index, QUESTIONS_PROMPT, MarkedText("ANSWER", text))
            for index, text in enumerate(texts)
        ]
        return self._single_replies(batches, read_questions)

    def _single_batch(
        self,
        index: int,
        system_prompt: str,
        marked: MarkedText,
        context: Sequence[MarkedText] = (),
    ) -> _Batch:
        """Return the request about one item, truncated if it is too long.

        Its context is not truncated.
        """
        text, is_truncated = shorten_text(marked.text, self._longest)
        prompt = texts_prompt(system_prompt, *context, marked._replace(text=text))
        return _Batch([index], ChatRequest(prompt, is_truncated=is_truncated))

    def _batches_by_text(
        self, system_prompt: str, shared: MarkedTexts, items: MarkedTexts
    ) -> list[_Batch]:
        """Return requests about items with the same shared text, sorted by that text.

        A request has at most MAX_CLAIMS_PER_REQUEST items.

        Args:
            system_prompt: of every request.
            shared: for each item the text that it is compared with.
            items: the items.
        """
        order = sorted(range(len(shared.texts)), key=shared.texts.__getitem__)
        batches: list[_Batch] = []
        for shared_text, group in groupby(order, key=shared.texts.__getitem__):
            text, is_truncated = shorten_text(shared_text, self._longest)
            for indices in _chunks(list(group), MAX_CLAIMS_PER_REQUEST):
                prompt = items_prompt(
                    system_prompt,
                    MarkedText(shared.mark, text),
                    MarkedTexts(items.mark, [items.texts[i] for i in indices]),
                )
                request = ChatRequest(prompt, len(indices), is_truncated)
                batches.append(_Batch(indices, request))
        return batches

    def _item_replies(
        self,
        batches: Sequence[_Batch],
        parse: Callable[[str, int], list[Any] | None],
    ) -> JudgeReplies[Any]:
        """Yield the verdict on each item of each request."""
        for batch in self._read_replies(batches, parse):
            verdicts = batch.answer or [None] * len(batch.indices)
            for index, verdict in zip(batch.indices, verdicts, strict=True):
                yield IndexedReply(index, verdict)

    def _single_replies(
        self, batches: Sequence[_Batch], parse: Callable[[str], AnswerType | None]
    ) -> JudgeReplies[AnswerType]:
        """Yield the answer to each request about one item."""
        for batch in self._read_replies(batches, lambda text, _: parse(text)):
            yield IndexedReply(batch.indices[0], batch.answer)

    def _read_replies(
        self,
        batches: Sequence[_Batch],
        parse: Callable[[str, int], AnswerType | None],
    ) -> Iterator[_BatchReply[AnswerType]]:
        """Yield the parsed reply to each request."""
        requests = [batch.request for batch in batches]
        for number, reply, answer in ask_requests(
            self._chat, self._meter, requests, parse
        ):
            if answer is None:
                self.unreadable_example = self.unreadable_example or quote_reply(reply)
            yield _BatchReply(batches[number].indices, answer)


def _chunks(indices: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(indices), size):
        yield indices[start : start + size]
