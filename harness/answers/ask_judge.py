"""Every request to a judge."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.answers.case import Case, reference_text
from harness.answers.judge import (
    GeneratedQuestions,
    Inquiry,
    Judge,
    JudgeReplies,
    ask_missing,
    identity_of,
)
from harness.answers.rankings_judge import store_authored_claims
from harness.answers.systems import System
from harness.answers.text_tokens import split_sentences
from harness.records import judge_files
from harness.records.judge_readings import (
    ClaimPassage,
    EntailmentWord,
    JudgeReadings,
    short_digest,
)
from retrievers.errors import UnreadableReplies
from retrievers.types import Query

RequestTexts = TypeVar("RequestTexts", bound=tuple[str, ...])


def ask_judge(
    folder: Path, judge: Judge, queries: Sequence[Query], systems: Sequence[System]
) -> JudgeReadings:
    """Ask the judge for everything that is unknown, and store its replies in the folder, task by task.

    Args:
        folder: of the answers; claims.jsonl, verdicts.jsonl and opinions.jsonl are written there.
        judge: to ask.
        queries: of the data set, with their reference answers.
        systems: with the answers.

    Raises:
        BackendError: the judge failed permanently; earlier tasks are stored, a chat model's replies are cached.
    """
    by = identity_of(judge)
    known = judge_files.read_readings(folder, by)
    cases = [
        Case(query, system.answer(query.id), known)
        for query in queries
        for system in systems
    ]
    store_authored_claims(folder, queries)
    claims = ask_missing(
        texts_to_split(queries, systems),
        lambda text: known.claims.get(text) is not None,
        judge.claims,
    )
    known.claims.update(claims)
    judge_files.append_claims(folder, by, claims)
    pairs = [pair for case in cases for pair in claim_pairs(case)]
    _ask_verdicts(folder, judge, pairs, known)
    _ask_opinions(folder, judge, cases, known)
    return known


def texts_to_split(queries: Sequence[Query], systems: Sequence[System]) -> list[str]:
    """The texts to extract claims from, each once: responses, and references without claims."""
    responses = (
        system.answer(query.id).response for query in queries for system in systems
    )
    bare = (
        q.reference.answers[0]
        for q in queries
        if q.reference.answers and not q.reference.claims
    )
    return list(dict.fromkeys([*(text for text in responses if text.strip()), *bare]))


def claim_pairs(case: Case) -> Iterator[ClaimPassage]:
    """Every pair of claim and text that the measures need a verdict on, without empty texts."""
    contexts = [context.text for context in case.answer.contexts]
    made = case.response_claims or ()
    asked = [
        *((case.reference_claims, text) for text in contexts),
        *((made, text) for text in contexts),
    ]
    asked += [
        (case.reference_claims, case.answer.response),
        (made, reference_text(case.query)),
    ]
    for claims, text in asked:
        yield from (ClaimPassage(claim, text) for claim in claims if text.strip())


def _ask_verdicts(
    folder: Path, judge: Judge, pairs: Iterable[ClaimPassage], known: JudgeReadings
) -> None:
    words: dict[ClaimPassage, EntailmentWord | None] = {}  # the type, for mypy
    words |= ask_missing(
        pairs, lambda pair: known.verdict_word(*pair) is not None, judge.verdicts
    )
    known.verdicts.update(
        {(claim, short_digest(text)): word for (claim, text), word in words.items()}
    )
    judge_files.append_verdicts(folder, identity_of(judge), words)


def _ask_opinions(
    folder: Path, judge: Judge, cases: Sequence[Case], known: JudgeReadings
) -> None:
    """The other tasks; each reply is stored as JSON with its texts."""
    responses = [
        (case.answer.response,) for case in cases if case.answer.response.strip()
    ]
    passages = [
        (case, context)
        for case in cases
        for context in case.answer.contexts
        if context.text.strip()
    ]
    helps = [
        Inquiry(case.query.text, one)
        for case, context in passages
        for one in split_sentences(context.text)
    ]
    relevance = [Inquiry(case.query.text, context.text) for case, context in passages]

    def ask(
        task: str,
        wanted: Iterable[RequestTexts],
        read: Callable[[Sequence[RequestTexts]], JudgeReplies[Any]],
    ) -> None:
        try:
            replies = ask_missing(
                wanted, lambda texts: known.opinion(task, *texts) is not None, read
            )
        except (
            UnreadableReplies
        ):  # if a model fails at one task, only the measures of that task are undefined
            return
        if not any(answer is not None for answer in replies.values()):
            return
        rows: dict[tuple[str, ...], Any] = {
            tuple(texts): _plain(answer) for texts, answer in replies.items()
        }
        known.opinions.update(
            {
                (task, tuple(map(short_digest, texts))): answer
                for texts, answer in rows.items()
            }
        )
        judge_files.append_opinions(folder, identity_of(judge), task, rows)

    ask("helps", helps, judge.helps)
    ask("relevance", relevance, judge.relevance)
    ask("questions", responses, lambda some: judge.questions([t for (t,) in some]))


def _plain(answer: Any) -> Any:
    """A reply as JSON."""
    if isinstance(answer, GeneratedQuestions):
        return {
            "questions": list(answer.questions),
            "noncommittal": list(answer.noncommittal),
        }
    return list(answer) if isinstance(answer, tuple) else answer
