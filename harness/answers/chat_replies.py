"""Replies of the chat judge."""

from collections.abc import Callable
from typing import Any

from harness.answers.chat_prompts import QUESTIONS_PER_ANSWER
from harness.answers.judge import GeneratedQuestions
from harness.records.judge_readings import ENTAILMENT_WORDS
from retrievers.services.chat_replies import parse_single_object


def read_words(reply: str, count: int) -> list[Any] | None:
    """The verdicts of a reply; None if their number or one of them is wrong.

    >>> read_words('{"verdicts": ["entailed", "neutral"]}', 2), read_words('{"verdicts": ["entailed"]}', 2)
    (['entailed', 'neutral'], None)
    """
    return _list(reply, "verdicts", lambda one: one in ENTAILMENT_WORDS, count)


def read_truths(reply: str, count: int) -> list[Any] | None:
    """The booleans of a reply; None if their number or one of them is wrong."""
    return _list(reply, "verdicts", lambda one: isinstance(one, bool), count)


def read_claims(reply: str) -> tuple[str, ...] | None:
    """The claims of a reply; None if there is no list of texts.

    >>> read_claims('{"claims": ["The fee is 300 yen."]}'), read_claims("The fee is 300 yen.")
    (('The fee is 300 yen.',), None)
    """
    claims = _list(
        reply, "claims", lambda one: isinstance(one, str) and bool(one.strip())
    )
    return None if claims is None else tuple(one.strip() for one in claims)


def read_rating(reply: str) -> int | None:
    """The rating 0, 1 or 2 of a reply."""
    rating = (parse_single_object(reply) or {}).get("rating")
    return (
        rating
        if isinstance(rating, int) and not isinstance(rating, bool) and 0 <= rating <= 2
        else None
    )


def read_questions(reply: str) -> GeneratedQuestions | None:
    """The questions of a reply, each with whether the answer was evasive."""
    questions = _list(
        reply,
        "questions",
        lambda one: isinstance(one, str) and bool(one.strip()),
        QUESTIONS_PER_ANSWER,
    )
    evasive = _list(
        reply, "noncommittal", lambda one: isinstance(one, bool), QUESTIONS_PER_ANSWER
    )
    return (
        None
        if questions is None or evasive is None
        else GeneratedQuestions(tuple(questions), tuple(evasive))
    )


def _list(
    reply: str, key: str, fits: Callable[[Any], bool], count: int | None = None
) -> list[Any] | None:
    values = (parse_single_object(reply) or {}).get(key)
    if (
        not isinstance(values, list)
        or not all(map(fits, values))
        or (count is not None and len(values) != count)
    ):
        return None
    return values
