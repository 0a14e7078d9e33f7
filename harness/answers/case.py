"""One answer with its verdicts.

A `Case` looks up in the judge's readings which text entails which claim; a missing
verdict is unknown (None), never a no. `measures` and `claim_fates` compute from it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from harness.answers.ragchecker import Entailments
from harness.answers.systems import Answer, Context, System
from harness.measures.claims import Truth, any_true
from harness.records.judge_readings import JudgeReadings, claims_of_query
from retrievers.types import Query


class Case(NamedTuple):
    """One answer to one query, with the judge's verdicts."""

    query: Query
    answer: Answer
    readings: JudgeReadings

    @property
    def reference_claims(self) -> tuple[str, ...]:
        """The claims of the reference answer; empty also if they could not be read."""
        return claims_of_query(self.query, self.readings)

    @property
    def response_claims(self) -> tuple[str, ...] | None:
        """The claims of the response; None if they could not be read.

        An empty response has none.
        """
        if not self.answer.response.strip():
            return ()
        return self.readings.claims.get(self.answer.response)

    @property
    def useful_to_response(self) -> list[Truth] | None:
        """For each context, whether it entails any claim of the response.

        None if these could not be read.
        """
        response_claims = self.response_claims
        if response_claims is None:
            return None
        return [
            self._entails_any(context, response_claims)
            for context in self.answer.contexts
        ]

    @property
    def useful_to_reference(self) -> list[Truth]:
        """For each context, whether it entails any claim of the reference answer."""
        return [
            self._entails_any(context, self.reference_claims)
            for context in self.answer.contexts
        ]

    def entails(self, text: str, claim: str) -> Truth:
        """Whether a text entails a claim; an empty text entails nothing."""
        return self.readings.is_entailed(claim, text) if text.strip() else False

    def context_truth(self, claim: str) -> Truth:
        """Whether any context entails a claim."""
        return any_true(
            self.entails(context.text, claim) for context in self.answer.contexts
        )

    def context_truths(self, claims: Sequence[str]) -> list[tuple[Truth, ...]]:
        """For each claim, whether each context entails it."""
        truths: list[tuple[Truth, ...]] = []
        for claim in claims:
            by_context = (
                self.entails(context.text, claim) for context in self.answer.contexts
            )
            truths.append(tuple(by_context))
        return truths

    def entailments(self) -> Entailments | None:
        """The verdicts for RAGChecker; None if the response's claims are unreadable."""
        response_claims = self.response_claims
        if response_claims is None:
            return None
        reference_claims = self.reference_claims
        reference = reference_text(self.query)
        response = self.answer.response
        return Entailments(
            right=tuple(self.entails(reference, claim) for claim in response_claims),
            covered=tuple(self.entails(response, claim) for claim in reference_claims),
            response_in=self.context_truths(response_claims),
            reference_in=self.context_truths(reference_claims),
            passages=len(self.answer.contexts),
        )

    def _entails_any(self, context: Context, claims: Sequence[str]) -> Truth:
        return any_true(self.entails(context.text, claim) for claim in claims)


def reference_text(query: Query) -> str:
    """The reference answers of a query as one text; without one, its claims."""
    return "\n".join(
        query.reference.answers or [claim.text for claim in query.reference.claims]
    )


def build_cases(
    queries: Sequence[Query], systems: Sequence[System], readings: JudgeReadings
) -> list[Case]:
    """Every system's answer to every query."""
    return [
        Case(query, system.answer(query.id), readings)
        for system in systems
        for query in queries
    ]
