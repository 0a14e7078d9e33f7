"""Every request to a judge of answers.

Claims come first, since a verdict is on a claim and a text; then verdicts, then
opinions on passages and responses. What the folder has is not requested again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.answers.ask_missing import ask_missing
from harness.answers.case import Case, reference_text
from harness.answers.judge import (
    GeneratedQuestions,
    Inquiry,
    Judge,
    JudgeReplies,
    identity_of,
)
from harness.answers.rankings_judge import store_authored_claims
from harness.answers.systems import System
from harness.answers.text_tokens import split_sentences
from harness.records import judge_files
from harness.records.judge_readings import (
    ClaimPassage,
    JudgeReadings,
    short_digest,
)
from retrievers.errors import UnreadableReplies
from retrievers.types import Query

RequestTexts = TypeVar("RequestTexts", bound=tuple[str, ...])


def ask_judge(
    folder: Path, judge: Judge, queries: Sequence[Query], systems: Sequence[System]
) -> JudgeReadings:
    """Request everything that is unknown, and store the replies in the folder.

    The tasks are stored one after the other: claims, verdicts, opinions.

    Args:
        folder: of the answers; claims.jsonl, verdicts.jsonl and opinions.jsonl are
            written there.
        judge: gives the verdicts.
        queries: of the data set, with their reference answers.
        systems: with the answers.

    Raises:
        BackendError: the judge failed permanently; earlier tasks are stored, a chat
            model's replies are cached.
    """
    identity = identity_of(judge)
    readings = judge_files.read_readings(folder, identity)
    cases = [
        Case(query, system.answer(query.id), readings)
        for query in queries
        for system in systems
    ]
    store_authored_claims(folder, queries)
    claims = ask_missing(
        texts_to_split(queries, systems),
        lambda text: readings.claims.get(text) is not None,
        judge.claims,
    )
    readings.claims.update(claims)  # the cases read them there
    judge_files.append_claims(folder, identity, claims)
    pairs: list[ClaimPassage] = []
    for case in cases:
        pairs.extend(claim_pairs(case))
    _ask_verdicts(folder, judge, pairs, readings)
    _ask_opinions(folder, judge, cases, readings)
    return readings


def texts_to_split(queries: Sequence[Query], systems: Sequence[System]) -> list[str]:
    """The texts to extract claims from, each once.

    They are the responses, and each query's first reference answer, if it has no
    claims.
    """
    responses = (
        system.answer(query.id).response for query in queries for system in systems
    )
    references = (
        query.reference.answers[0]
        for query in queries
        if query.reference.answers and not query.reference.claims
    )
    texts = [text for text in responses if text.strip()]
    texts.extend(references)
    return list(dict.fromkeys(texts))


def claim_pairs(case: Case) -> Iterator[ClaimPassage]:
    """Every pair of claim and text that the measures need a verdict on.

    Empty texts are left out.
    """
    contexts = [context.text for context in case.answer.contexts]
    response_claims = case.response_claims or ()
    for text in contexts:
        yield from _pairs_with(case.reference_claims, text)
    for text in contexts:
        yield from _pairs_with(response_claims, text)
    yield from _pairs_with(case.reference_claims, case.answer.response)
    yield from _pairs_with(response_claims, reference_text(case.query))


def _pairs_with(claims: Sequence[str], text: str) -> Iterator[ClaimPassage]:
    if not text.strip():
        return
    for claim in claims:
        yield ClaimPassage(claim, text)


def _ask_verdicts(
    folder: Path, judge: Judge, pairs: Iterable[ClaimPassage], readings: JudgeReadings
) -> None:
    """Ask for the verdicts that are unknown, and store them; the readings get them."""
    verdicts = ask_missing(
        pairs, lambda pair: readings.verdict_word(*pair) is not None, judge.verdicts
    )
    for pair, word in verdicts.items():
        readings.verdicts[pair.claim, short_digest(pair.text)] = word
    judge_files.append_verdicts(folder, identity_of(judge), verdicts)


def _ask_opinions(
    folder: Path, judge: Judge, cases: Sequence[Case], readings: JudgeReadings
) -> None:
    """Ask which sentences and passages help, and for questions of each response."""
    sentences: list[Inquiry] = []
    passages: list[Inquiry] = []
    responses: list[tuple[str]] = []  # tuples: an opinion is stored by its texts
    for case in cases:
        question = case.query.text
        for context in case.answer.contexts:
            if context.text.strip():
                passages.append(Inquiry(question, context.text))
                sentences.extend(
                    Inquiry(question, sentence)
                    for sentence in split_sentences(context.text)
                )
        if case.answer.response.strip():
            responses.append((case.answer.response,))
    task = _OpinionTask(folder, judge, readings)
    task.ask("helps", sentences, judge.helps)
    task.ask("relevance", passages, judge.relevance)
    task.ask(
        "questions",
        responses,
        lambda requests: judge.questions([response for (response,) in requests]),
    )


@dataclass(frozen=True, slots=True)
class _OpinionTask:
    """Requests for opinions, each of which is stored as JSON with its texts."""

    folder: Path
    judge: Judge
    readings: JudgeReadings

    def ask(
        self,
        task: str,
        requests: Iterable[RequestTexts],
        ask: Callable[[Sequence[RequestTexts]], JudgeReplies[Any]],
    ) -> None:
        """Request the opinions that are unknown, and store them."""
        try:
            replies = ask_missing(
                requests,
                lambda texts: self.readings.opinion(task, *texts) is not None,
                ask,
            )
        except UnreadableReplies:
            # If a model fails at one task, only the measures of that task are
            # undefined.
            return
        # A judge that gives no opinions has no rows of them either.
        if not any(reply is not None for reply in replies.values()):
            return
        opinions: dict[tuple[str, ...], Any] = {}
        for texts, reply in replies.items():
            opinion = _as_json(reply)
            digests = tuple(map(short_digest, texts))
            self.readings.opinions[task, digests] = opinion
            opinions[tuple(texts)] = opinion
        judge_files.append_opinions(
            self.folder, identity_of(self.judge), task, opinions
        )


def _as_json(reply: Any) -> Any:
    if isinstance(reply, GeneratedQuestions):
        return {
            "questions": list(reply.questions),
            "noncommittal": list(reply.noncommittal),
        }
    return list(reply) if isinstance(reply, tuple) else reply
