"""Reference answers with their claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.dataset.read_problems import ReadProblems
from harness.dataset.source import SourceLocation
from harness.dataset.written_values import parse_cell
from retrievers.types import Claim, Reference


def reference_as_json(reference: Reference) -> dict[str, Any]:
    """A reference as a row of queries has it; nothing where there is none."""
    claims = [
        claim.text if claim.vital else claim._asdict() for claim in reference.claims
    ]
    return {
        key: value
        for key, value in (("reference", list(reference.answers)), ("claims", claims))
        if value
    }


def reference_from_json(row: Mapping[str, Any]) -> Reference:
    """Read what `reference_as_json` wrote."""
    claims = (
        Claim(one) if isinstance(one, str) else Claim(**one)
        for one in row.get("claims", ())
    )
    return Reference(tuple(row.get("reference", ())), tuple(claims))


def read_reference_answer(
    answers: Any, claims: Any, place: SourceLocation, problems: ReadProblems
) -> Reference:
    """Read a query's reference answers (a text, or several) and claims (a list); empty after a complaint.

    A claim is a text, or an object with `text` and `vital`: whether an answer without it would be no answer. In one
    cell of text, claims are JSON, or one per line.

    >>> claims = ["monthly", {"text": "in advance", "vital": False}]
    >>> from harness.dataset.source import SourceLocation
    >>> from harness.dataset.read_problems import ReadProblems
    >>> rent = read_reference_answer("A fee.", claims, SourceLocation("q"), ReadProblems())
    >>> rent.answers, [claim.vital for claim in rent.claims]
    (('A fee.',), [True, False])
    """
    answers = (
        [answers] if isinstance(answers, str) and answers.strip() else answers or []
    )
    if not isinstance(answers, list | tuple) or not all(
        isinstance(one, str) and one.strip() for one in answers
    ):
        problems.add(
            place,
            "'reference' is neither text nor a list of texts",
            "leave it out where empty",
        )
        answers = []
    listed = parse_cell(claims) or []
    if isinstance(listed, str) and not listed.lstrip().startswith("["):
        listed = [line.strip() for line in listed.splitlines() if line.strip()]
    parsed = (
        [_claim(one) for one in listed] if isinstance(listed, list | tuple) else [None]
    )
    if None in parsed:
        remedy = 'a list such as ["The fee is monthly.", {"text": "Students pay half.", "vital": false}]'
        problems.add(place, "'claims' is not a list of texts", remedy)
        parsed = []
    return Reference(tuple(answers), tuple(one for one in parsed if one is not None))


def _claim(claim: object) -> Claim | None:
    if isinstance(claim, str):
        return Claim(claim) if claim.strip() else None
    if isinstance(claim, dict) and claim.keys() <= {"text", "vital"}:
        text, vital = claim.get("text"), claim.get("vital", True)
        return (
            Claim(text, vital)
            if isinstance(text, str) and text.strip() and isinstance(vital, bool)
            else None
        )
    return None
