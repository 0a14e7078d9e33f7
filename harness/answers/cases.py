"""All requests about answers and the judge's replies: the only inputs of the measures.

For every claim of a reference answer it shows where it was lost: in the retriever or in the generator.

answered         the response states it
contradicted     the response contradicts it (noise)
not retrieved    no context supports it, and the response does not state it (the retriever's loss)
not used         a context supports it, and the response does not state it (the generator's loss)
unknown          a verdict is missing
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from harness.answers import judging
from harness.answers.judging import (
    Inquiry,
    Judge,
    Questions,
    Replies,
    asked_once,
    signed,
)
from harness.answers.overlap import sentences
from harness.answers.ragchecker import Entailments
from harness.answers.systems import Answer, Context, System
from harness.evaluation.scores import Scores
from harness.measures.measure import Truth, any_of
from harness.records import readings
from harness.records.readings import ClaimPassage, Readings, Word
from harness.stats.differences import UNIT
from harness.stats.intervals import Interval, mean, student
from retrievers.errors import Unreadable
from retrievers.types import Query

Given = TypeVar("Given", bound=tuple[str, ...])


class Case(NamedTuple):
    """One answer to one query, with the judge's verdicts."""

    query: Query
    answer: Answer
    readings: Readings

    @property
    def wanted(self) -> tuple[str, ...]:
        """The claims of the reference answer."""
        return readings.claims_of(self.query, self.readings)

    @property
    def made(self) -> tuple[str, ...] | None:
        """The claims of the response; None if they could not be read."""
        return (
            self.readings.claims.get(self.answer.response)
            if self.answer.response.strip()
            else ()
        )

    @property
    def useful_to_the_response(self) -> list[Truth] | None:
        """For each context, whether it entails any claim of the response."""
        made = self.made
        return (
            None
            if made is None
            else [self._any(made, context) for context in self.answer.contexts]
        )

    @property
    def useful_to_the_reference(self) -> list[Truth]:
        """For each context, whether it entails any claim of the reference answer."""
        return [self._any(self.wanted, context) for context in self.answer.contexts]

    def entails(self, text: str, claim: str) -> Truth:
        """Whether a text entails a claim; an empty text entails nothing."""
        return self.readings.truth(claim, text) if text.strip() else False

    def held(self, claim: str) -> Truth:
        """Whether any context entails a claim."""
        return any_of(
            self.entails(context.text, claim) for context in self.answer.contexts
        )

    def rows(self, claims: Sequence[str]) -> list[tuple[Truth, ...]]:
        """For each claim, whether each context entails it."""
        return [
            tuple(self.entails(context.text, claim) for context in self.answer.contexts)
            for claim in claims
        ]

    def entailments(self) -> Entailments | None:
        """The verdicts for RAGChecker; None if the claims of the response could not be read."""
        made, wanted = self.made, self.wanted
        if made is None:
            return None
        return Entailments(
            tuple(
                self.entails(judging.reference_text(self.query), claim)
                for claim in made
            ),
            tuple(self.entails(self.answer.response, claim) for claim in wanted),
            self.rows(made),
            self.rows(wanted),
            len(self.answer.contexts),
        )

    def _any(self, claims: Sequence[str], context: Context) -> Truth:
        return any_of(self.entails(context.text, claim) for claim in claims)


def judge_answers(
    folder: Path, judge: Judge, queries: Sequence[Query], systems: Sequence[System]
) -> Readings:
    """Ask the judge for everything that is unknown, and store its replies in the folder, task by task.

    Args:
        folder: of the answers; claims.jsonl, verdicts.jsonl and opinions.jsonl are written there.
        judge: to ask.
        queries: of the data set, with their reference answers.
        systems: with the answers.

    Raises:
        BackendError: the judge failed permanently; earlier tasks are stored, a chat model's replies are cached.
    """
    by = signed(judge)
    known = readings.read_readings(folder, by)
    cases = [
        Case(query, system.answer(query.id), known)
        for query in queries
        for system in systems
    ]
    judging.store_authored(folder, queries)
    claims = asked_once(
        texts_to_split(queries, systems),
        lambda text: known.claims.get(text) is not None,
        judge.claims,
    )
    known.claims.update(claims)
    readings.append_claims(folder, by, claims)
    pairs = [pair for case in cases for pair in pairs_of(case)]
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


def pairs_of(case: Case) -> Iterator[ClaimPassage]:
    """Every pair of claim and text that the measures need a verdict on, without empty texts."""
    contexts = [context.text for context in case.answer.contexts]
    made = case.made or ()
    asked = [
        *((case.wanted, text) for text in contexts),
        *((made, text) for text in contexts),
    ]
    asked += [
        (case.wanted, case.answer.response),
        (made, judging.reference_text(case.query)),
    ]
    for claims, text in asked:
        yield from (ClaimPassage(claim, text) for claim in claims if text.strip())


def _ask_verdicts(
    folder: Path, judge: Judge, pairs: Iterable[ClaimPassage], known: Readings
) -> None:
    words: dict[ClaimPassage, Word | None] = {}  # the type, for mypy
    words |= asked_once(
        pairs, lambda pair: known.word(*pair) is not None, judge.verdicts
    )
    known.verdicts.update(
        {
            (claim, readings.digest_of(text)): word
            for (claim, text), word in words.items()
        }
    )
    readings.append_verdicts(folder, signed(judge), words)


def _ask_opinions(
    folder: Path, judge: Judge, cases: Sequence[Case], known: Readings
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
        for one in sentences(context.text)
    ]
    relevance = [Inquiry(case.query.text, context.text) for case, context in passages]

    def ask(
        task: str,
        wanted: Iterable[Given],
        read: Callable[[Sequence[Given]], Replies[Any]],
    ) -> None:
        try:
            replies = asked_once(
                wanted, lambda texts: known.opinion(task, *texts) is not None, read
            )
        except (
            Unreadable
        ):  # if a model fails at one task, only the measures of that task are undefined
            return
        if not any(answer is not None for answer in replies.values()):
            return
        rows: dict[tuple[str, ...], Any] = {
            tuple(texts): _plain(answer) for texts, answer in replies.items()
        }
        known.opinions.update(
            {
                (task, tuple(map(readings.digest_of, texts))): answer
                for texts, answer in rows.items()
            }
        )
        readings.append_opinions(folder, signed(judge), task, rows)

    ask("helps", helps, judge.helps)
    ask("relevance", relevance, judge.relevance)
    ask("questions", responses, lambda some: judge.questions([t for (t,) in some]))


def _plain(answer: Any) -> Any:
    """A reply as JSON."""
    if isinstance(answer, Questions):
        return {
            "questions": list(answer.questions),
            "noncommittal": list(answer.noncommittal),
        }
    return list(answer) if isinstance(answer, tuple) else answer


Fate = Literal["answered", "contradicted", "not retrieved", "not used", "unknown"]
FATES: tuple[Fate, ...] = get_args(Fate)


class Traced(NamedTuple):
    """One claim of a reference answer and its fate."""

    claim: str
    fate: Fate
    held_by: tuple[str, ...]
    """The ids of the contexts that entail it."""


class TracedAnswer(NamedTuple):
    """One answer, claim by claim."""

    query: Query
    response: str
    contexts: tuple[tuple[str, str], ...]
    """The id and text of each context."""
    claims: tuple[Traced, ...]
    made: tuple[tuple[str, str], ...]
    """The claims of the response, each with its support: reference, contexts, both, nothing, or unknown."""


class FateShare(NamedTuple):
    """The frequency of one fate: the mean share of claims over queries."""

    fate: Fate
    claims: int
    mean: float
    interval: Interval


def trace(case: Case) -> TracedAnswer:
    """Trace every claim of one answer's reference."""
    contexts = case.answer.contexts
    wanted = [
        Traced(
            claim,
            _fate(case, claim),
            tuple(one.id for one in contexts if case.entails(one.text, claim)),
        )
        for claim in case.wanted
    ]
    made = [(claim, _basis(case, claim)) for claim in case.made or ()]
    return TracedAnswer(
        case.query, case.answer.response, tuple(contexts), tuple(wanted), tuple(made)
    )


def shares(
    traced: Sequence[TracedAnswer], scores: Scores, level: float = 0.95
) -> list[FateShare]:
    """The share of each fate, over the queries that have claims, with its interval.

    Args:
        traced: one system's answers.
        scores: with the weights and clusters of the queries.
        level: confidence.
    """
    counted = {
        one.query.id: Counter(claim.fate for claim in one.claims)
        for one in traced
        if one.claims
    }
    if not counted:
        return []
    units = scores.only(np.array([query in counted for query in scores.ids])).units
    shares = []
    for fate in FATES:
        values = np.array(
            [
                counted[query][fate] / counted[query].total()
                for query in scores.ids
                if query in counted
            ]
        )
        interval = student(values, level, bounds=UNIT, units=units)
        claims = sum(of[fate] for of in counted.values())
        shares.append(FateShare(fate, claims, mean(values, units.weights), interval))
    return shares


def _fate(case: Case, claim: str) -> Fate:
    stated, retrieved = case.entails(case.answer.response, claim), case.held(claim)
    if stated:
        return "answered"
    if case.readings.word(claim, case.answer.response) == "contradicted":
        return "contradicted"
    if stated is None or retrieved is None:
        return "unknown"
    return "not used" if retrieved else "not retrieved"


def _basis(case: Case, claim: str) -> str:
    right, held = (
        case.entails(judging.reference_text(case.query), claim),
        case.held(claim),
    )
    if right is None or held is None:
        return "unknown"
    named = [
        name for name, known in (("reference", right), ("contexts", held)) if known
    ]
    return " and ".join(named) or "nothing"


TracedSystems = Mapping[str, Sequence[TracedAnswer]]
"""System -> its answers, claim by claim."""
LISTED = 200
"""Most queries whose answers are shown in full, those that lost the most claims."""
MEANINGS = {
    "answered": "the response states it",
    "contradicted": "the response contradicts it: noise",
    "not retrieved": "no retrieved text supports it: the retriever lost it",
    "not used": "a retrieved text supports it, the response does not state it: the generator lost it",
    "unknown": "a verdict is missing",
}


def section_of(traced: TracedSystems, scores: Scores, level: float) -> dict[str, Any]:
    """The variables of the template: the share of each fate by system, and the answers that lost the most claims."""
    beside = side_by_side(traced)
    return {
        "fates": FATES,
        "meanings": MEANINGS,
        "shares": {
            name: shares(answers, scores, level) for name, answers in traced.items()
        },
        "answers": beside[:LISTED],
        "left": max(0, len(beside) - LISTED),
    }


def side_by_side(traced: TracedSystems) -> list[tuple[Query, dict[str, TracedAnswer]]]:
    """Query -> system -> its answer, queries with the most lost claims first."""
    found: dict[str, tuple[Query, dict[str, TracedAnswer]]] = {}
    for name, answers in traced.items():
        for one in answers:
            found.setdefault(one.query.id, (one.query, {}))[1][name] = one
    lost = {
        query: sum(
            claim.fate != "answered" for one in of.values() for claim in one.claims
        )
        for query, (_, of) in found.items()
    }
    return [
        found[query] for query in sorted(found, key=lambda query: (-lost[query], query))
    ]
