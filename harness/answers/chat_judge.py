"""A judge by a chat model.

Texts are quoted as data, and counts must match. A passage may contain an instruction, but it cannot end its own
quotation, and can only cause an allowed verdict. A reply with a wrong number of verdicts, or prose, is unreadable.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from harness.answers.chat_prompts import (
    CLAIMS_PROMPT,
    HELPS_PROMPT,
    MAX_CLAIMS_PER_REQUEST,
    PROMPTS_DIGEST,
    QUESTIONS_PROMPT,
    RELEVANCE_PROMPTS,
    VERDICTS_PROMPT,
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
from harness.answers.judge import GeneratedQuestions, Inquiry, JudgeReplies
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

_Portion = tuple[Sequence[int], ChatRequest]
"""The indices of some items, and the request about them."""


class ModelJudge:
    """Asks a chat model. Replies are cached: a stopped run resumes, and no reply is paid for twice.

    After a declined request or an unreadable reply, the items have no verdict; the next run requests them again. A text
    beyond `longest` tokens is truncated after a word; the meter counts the items with a truncated text (`truncated`).
    """

    prompt = PROMPTS_DIGEST

    def __init__(
        self, chat: Chat, *, meter: Meter, longest: int = MAX_TEXT_TOKENS
    ) -> None:
        """Judge by a chat model; the meter counts calls, tokens and dollars, and has the budget."""
        self._chat, self._meter, self._longest = chat, meter, longest
        self.unreadable_example = ""
        model = chat.model
        self.name = f"openai {model.model}" + (
            f" at {model.other_server}" if model.other_server else ""
        )
        if longest != MAX_TEXT_TOKENS:
            self.name += f", first {longest} tokens"

    def verdicts(self, pairs: Sequence[ClaimPassage]) -> JudgeReplies[EntailmentWord]:
        """The verdict on each pair: claims about one passage together, five per request."""
        texts, claims = [pair.text for pair in pairs], [pair.claim for pair in pairs]
        return self._several(
            self._by_text(VERDICTS_PROMPT, ("PASSAGE", texts), ("CLAIM", claims)),
            read_words,
        )

    def claims(self, texts: Sequence[str]) -> JudgeReplies[tuple[str, ...]]:
        """The claims that the model extracts from each text."""
        return self._single(
            [
                self._of_one(CLAIMS_PROMPT, i, "TEXT", text)
                for i, text in enumerate(texts)
            ],
            read_claims,
        )

    def helps(self, asked: Sequence[Inquiry]) -> JudgeReplies[bool]:
        """Whether each sentence helps to answer its query."""
        questions, parts = [one.question for one in asked], [one.text for one in asked]
        return self._several(
            self._by_text(HELPS_PROMPT, ("QUESTION", questions), ("SENTENCE", parts)),
            read_truths,
        )

    def relevance(
        self, asked: Sequence[Inquiry]
    ) -> JudgeReplies[tuple[int | None, ...]]:
        """Two ratings of each passage, by two wordings."""
        ratings: dict[int, dict[int, int | None]] = {}
        wordings = len(RELEVANCE_PROMPTS)
        portions = [
            self._of_one(
                system,
                place * wordings + number,
                "PASSAGE",
                one.text,
                ("QUESTION", one.question),
            )
            for place, one in enumerate(asked)
            for number, system in enumerate(RELEVANCE_PROMPTS)
        ]
        for number, rating in self._single(portions, read_rating):
            place, wording = divmod(number, wordings)
            ratings.setdefault(place, {})[wording] = rating
            if len(ratings[place]) == wordings:
                yield place, tuple(ratings[place][i] for i in range(wordings))

    def questions(self, texts: Sequence[str]) -> JudgeReplies[GeneratedQuestions]:
        """Three generated questions that each text answers."""
        return self._single(
            [
                self._of_one(QUESTIONS_PROMPT, i, "ANSWER", text)
                for i, text in enumerate(texts)
            ],
            read_questions,
        )

    def _several(
        self, portions: Sequence[_Portion], read: Callable[[str, int], list[Any] | None]
    ) -> Iterator[Any]:
        for places, verdicts in self._read(portions, read):
            yield from zip(places, verdicts or [None] * len(places), strict=True)

    def _single(
        self, portions: Sequence[_Portion], read: Callable[[str], AnswerType | None]
    ) -> JudgeReplies[AnswerType]:
        for places, answer in self._read(portions, lambda text, _: read(text)):
            yield places[0], answer

    def _read(
        self,
        portions: Sequence[_Portion],
        read: Callable[[str, int], AnswerType | None],
    ) -> Iterator[tuple[Sequence[int], AnswerType | None]]:
        """The parsed reply to each portion; None if it is unreadable."""
        for number, reply, answer in ask_requests(
            self._chat, self._meter, [asked for _, asked in portions], read
        ):
            if answer is None:
                self.unreadable_example = self.unreadable_example or quote_reply(reply)
            yield portions[number][0], answer

    def _of_one(
        self, system: str, place: int, mark: str, text: str, *before: tuple[str, str]
    ) -> _Portion:
        shown_part, cut = shorten_text(text, self._longest)
        return [place], ChatRequest(
            texts_prompt(system, *before, (mark, shown_part)), is_truncated=cut
        )

    def _by_text(
        self,
        system: str,
        against: tuple[str, Sequence[str]],
        items: tuple[str, Sequence[str]],
    ) -> list[_Portion]:
        """Portions of at most AT_ONCE items with the same text, in the order of the texts."""
        (mark, texts), (item, words) = against, items
        order = sorted(range(len(texts)), key=lambda place: texts[place])
        portions: list[_Portion] = []
        for text, group in groupby(order, key=lambda place: texts[place]):
            places, (shown_part, cut) = list(group), shorten_text(text, self._longest)
            for start in range(0, len(places), MAX_CLAIMS_PER_REQUEST):
                some = places[start : start + MAX_CLAIMS_PER_REQUEST]
                prompt = items_prompt(
                    system, (mark, shown_part), (item, [words[i] for i in some])
                )
                portions.append((some, ChatRequest(prompt, len(some), cut)))
        return portions
