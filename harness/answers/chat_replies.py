"""Replies of the chat judge."""

from collections.abc import Callable
from typing import Any

from harness.answers.chat_prompts import QUESTIONS_PER_ANSWER
from harness.answers.judge import GeneratedQuestions
from harness.records.judge_readings import ENTAILMENT_WORDS
from retrievers.services.chat_replies import parse_single_object


def read_words(reply: str, count: int) -> list[Any] | None:
    """The verdicts of a reply; None if their number or one of them is wrong.

    >>> read_words('{"verdicts": ["entailed", "neutral"]}', 2)
    ['entailed', 'neutral']
    >>> read_words('{"verdicts": ["entailed"]}', 2) is None
    True
    """
    return _read_list(reply, "verdicts", _is_entailment_word, count)


def read_truths(reply: str, count: int) -> list[Any] | None:
    """The booleans of a reply; None if their number or one of them is wrong."""
    return _read_list(reply, "verdicts", _is_boolean, count)


def read_claims(reply: str) -> tuple[str, ...] | None:
    """The claims of a reply; None if there is no list of texts that are not blank.

    >>> read_claims('{"claims": ["The fee is 300 yen."]}')
    ('The fee is 300 yen.',)
    >>> read_claims("The fee is 300 yen.") is None
    True
    """
    claims = _read_list(reply, "claims", _is_text)
    if claims is None:
        return None
    return tuple(claim.strip() for claim in claims)


def read_rating(reply: str) -> int | None:
    """The rating 0, 1 or 2 of a reply; None if it has none."""
    rating = (parse_single_object(reply) or {}).get("rating")
    if not isinstance(rating, int) or isinstance(rating, bool):
        return None
    return rating if 0 <= rating <= 2 else None


def read_questions(reply: str) -> GeneratedQuestions | None:
    """The questions of a reply, each with whether the answer was evasive; or None."""
    questions = _read_list(reply, "questions", _is_text, QUESTIONS_PER_ANSWER)
    noncommittal = _read_list(reply, "noncommittal", _is_boolean, QUESTIONS_PER_ANSWER)
    if questions is None or noncommittal is None:
        return None
    return GeneratedQuestions(tuple(questions), tuple(noncommittal))


def _read_list(
    reply: str,
    key: str,
    is_valid: Callable[[Any], bool],
    count: int | None = None,
) -> list[Any] | None:
    """Return the list under a key; None if its length or one of its values is wrong."""
    elements = (parse_single_object(reply) or {}).get(key)
    if not isinstance(elements, list) or not all(map(is_valid, elements)):
        return None
    if count is not None and len(elements) != count:
        return None
    return elements


def _is_entailment_word(word: Any) -> bool:
    return word in ENTAILMENT_WORDS


def _is_boolean(truth: Any) -> bool:
    return isinstance(truth, bool)


def _is_text(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())
