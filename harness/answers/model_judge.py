"""A language model as judge, behind any OpenAI-compatible endpoint: at most five claims a request, temperature 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from harness.answers import prompts
from harness.answers.judging import Inquiry, Questions, Replies
from harness.records import ClaimPassage, Word
from retrievers.meter import Meter
from retrievers.remote.chat import example_of
from retrievers.remote.chat_model import ChatModel
from retrievers.remote.prompts import Prompt, Reply
from retrievers.remote.redaction import as_written, shown
from retrievers.tokens import beginning

Answer = TypeVar("Answer")


LONGEST = 8_000
"""Tokens of a text that the model is shown, by an upper estimate; the rest is cut off, and counted."""


class Asks(Protocol):
    """What gives replies to prompts: a chat model, or the rehearsal of one."""

    @property
    def model(self) -> ChatModel:
        """Which model."""

    def replies(
        self, prompts: Sequence[Prompt], meter: Meter, readable: Callable[[int, Reply], bool]
    ) -> Iterator[tuple[int, Reply]]:
        """Each prompt's place with its reply; one that is not readable is not kept."""


class _Portion(NamedTuple):
    """What one request asks: the places of some items, and the prompt."""

    places: Sequence[int]
    prompt: Prompt
    cut: bool = False
    """Whether the model is shown only the beginning of a text."""


class ModelJudge:
    """Asks a chat model. Replies are cached: a run that was stopped goes on, and no answer is paid for twice.

    A request that the endpoint declines, and a reply that cannot be read, leave their items without a verdict; the next
    run asks for them again. A text
    beyond `longest` tokens is cut behind a word; the meter counts the items that were judged by a beginning
    (`truncated`).
    """

    prompt = prompts.DIGEST

    def __init__(self, chat: Asks, *, meter: Meter, longest: int = LONGEST) -> None:
        """Judge by a chat model; calls, tokens and dollars go to the meter, which holds the budget."""
        self._chat, self._meter, self._longest = chat, meter, longest
        self.unread = ""
        options = chat.model.options
        model = as_written(options.model)
        self.name = f"openai {model}" + (f" at {shown(options.base_url)}" if options.base_url else "")
        if longest != LONGEST:
            self.name += f", first {longest} tokens"

    def verdicts(self, pairs: Sequence[ClaimPassage], round_: int = 1) -> Replies[Word]:
        """The verdict on each pair: claims on one passage together, five a request."""
        return self._several(self._about_pairs(pairs, round_), prompts.read_words)

    def claims(self, texts: Sequence[str]) -> Replies[tuple[str, ...]]:
        """The claims that the model takes out of each text."""
        asked = [self._of_one(prompts.CLAIMS, place, "TEXT", text) for place, text in enumerate(texts)]
        return self._single(asked, prompts.read_claims)

    def helps(self, asked: Sequence[Inquiry]) -> Replies[bool]:
        """Whether each sentence helps with its question."""
        portions = self._by_text(
            [one.question for one in asked],
            lambda question, places: prompts.about(
                prompts.HELPS, ("QUESTION", question), ("SENTENCE", [asked[i].text for i in places])
            ),
        )
        return self._several(portions, prompts.read_truths)

    def relevance(self, asked: Sequence[Inquiry]) -> Replies[tuple[int | None, ...]]:
        """Two ratings of each passage, by two wordings."""
        ratings: dict[int, dict[int, int | None]] = {}
        wordings = len(prompts.RELEVANCE)
        portions = [
            self._of_one(system, place * wordings + number, "PASSAGE", one.text, ("QUESTION", one.question))
            for place, one in enumerate(asked)
            for number, system in enumerate(prompts.RELEVANCE)
        ]
        for number, rating in self._single(portions, prompts.read_rating):
            place, wording = divmod(number, wordings)
            ratings.setdefault(place, {})[wording] = rating
            if len(ratings[place]) == wordings:
                yield place, tuple(ratings[place][i] for i in range(wordings))

    def questions(self, texts: Sequence[str]) -> Replies[Questions]:
        """Three questions that each text answers."""
        asked = [self._of_one(prompts.QUESTIONS, place, "ANSWER", text) for place, text in enumerate(texts)]
        return self._single(asked, prompts.read_questions)

    def _about_pairs(self, pairs: Sequence[ClaimPassage], round_: int) -> list[_Portion]:
        return self._by_text(
            [pair.text for pair in pairs],
            lambda text, places: prompts.about(
                prompts.VERDICTS, ("PASSAGE", text), ("CLAIM", [pairs[i].claim for i in places]), round_
            ),
        )

    def _several(self, portions: Sequence[_Portion], read: Callable[[str, int], list[Any] | None]) -> Iterator[Any]:
        for portion, verdicts in self._read(portions, read):
            yield from zip(portion.places, verdicts or [None] * len(portion.places), strict=True)

    def _single(self, portions: Sequence[_Portion], read: Callable[[str], Answer | None]) -> Replies[Answer]:
        for portion, answer in self._read(portions, lambda text, _: read(text)):
            yield portion.places[0], answer

    def _read(
        self, portions: Sequence[_Portion], read: Callable[[str, int], Answer | None]
    ) -> Iterator[tuple[_Portion, Answer | None]]:
        """What can be read in the reply to each portion; None where nothing can."""

        def answer_in(place: int, reply: Reply) -> Answer | None:
            readable = reply.whole and not reply.declined
            return read(reply.text, len(portions[place].places)) if readable else None

        prompts_of = [portion.prompt for portion in portions]
        replies = self._chat.replies(prompts_of, self._meter, lambda *said: answer_in(*said) is not None)
        for place, reply in replies:
            if portions[place].cut:
                self._meter.count(truncated=len(portions[place].places))
            answer = answer_in(place, reply)
            if answer is None:
                self._meter.count(unreadable=len(portions[place].places))
                self.unread = self.unread or example_of(reply.declined or reply.text)
            yield portions[place], answer

    def _of_one(self, system: str, place: int, mark: str, text: str, *before: tuple[str, str]) -> _Portion:
        shown_part = beginning(text, self._longest)
        return _Portion([place], prompts.alone(system, *before, (mark, shown_part)), shown_part != text)

    def _by_text(self, texts: Sequence[str], ask: Callable[[str, Sequence[int]], Prompt]) -> list[_Portion]:
        """Portions of at most AT_ONCE places that share a text, in the order of the texts."""
        order = sorted(range(len(texts)), key=lambda place: texts[place])
        portions = []
        for text, group in groupby(order, key=lambda place: texts[place]):
            places, shown_part = list(group), beginning(text, self._longest)
            for start in range(0, len(places), prompts.AT_ONCE):
                some = places[start : start + prompts.AT_ONCE]
                portions.append(_Portion(some, ask(shown_part, some), shown_part != text))
        return portions
